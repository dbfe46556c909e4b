package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "latency",
		Title:      "Latency: puts and gets at a fixed rate, 70 % of what the engine itself can do; stalls count",
		Variant:    "sound",
		Timed:      true,
		FullOnly:   true,
		QuickN:     []int{20_000},
		FullN:      []int{200_000},
		ValueBytes: 1024,
		Conditions: latencyConditions,
		Columns:    latencyColumns,
		Estimate:   latencyEstimate,
		Run:        runLatency,
		Commits:    []CommitKind{PutCommits},
		Vary: func(p Params, s Scale) []Params {
			if p.N > 100_000 {
				return []Params{timed(p, s, 10)}
			}
			return []Params{timed(p, s, 4)}
		},
	})
}

const (
	latencyShare  = 0.70 // of the throughput measured just before
	latencyCloser = 0.25 // of Params.Seconds, for measuring that throughput
	latencyMost   = 2    // times Params.Seconds: then what is still due is given up
)

var latencyColumns = slices.Concat(putPercentiles, []result.Column{
	{Key: "get_p50", Title: "get p50", Group: "gets", Unit: result.Nanos, Ranked: true},
	{Key: "get_p99", Title: "p99", Group: "gets", Unit: result.Nanos, Ranked: true},
	{Key: "get_p999", Title: "p99.9", Group: "gets", Unit: result.Nanos, Ranked: true},
	{Key: "get_max", Title: "max", Group: "gets", Unit: result.Nanos, Ranked: true},
}, rateColumns)

func latencyConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d keys are put first; then one goroutine puts (half) and gets (half) random keys%s", p.N, rateCondition(p, latencyCloser, latencyShare)),
		"each put is a commit of its own" + syncCondition(p.Sync),
		"each operation has an intended start; its latency counts from there, so an operation that waits behind a stall counts with its waiting (no coordinated omission)",
		fmt.Sprintf("what is still due after %.0f s is given up and counted, without a latency", p.Seconds*latencyMost),
		"waits above 200 us sleep and the last part spins; sleeping late counts as latency, for all engines alike; every value read is compared; at the end every key is read after a reopen (not timed)",
	}
}

func latencyEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	return rateEstimate(p, e, syncDelay, latencyCloser)
}

// mixed does puts, and gets unless there shall be none, of random keys and knows every
// key's version.
type mixed struct {
	*expectation
	onlyPuts bool
	store    engine.Store
	rng      *rand.Rand
	versions []uint64
	look     *lookup
}

func newMixed(e *expectation, rng *rand.Rand) *mixed {
	return &mixed{expectation: e, rng: rng, versions: make([]uint64, e.n), look: newLookup(e.compare)}
}

func runLatency(rec *Recorder, d engine.Driver, dir string, p Params) error {
	if why, no := d.Info.Cannot[engine.CanSync]; no && p.Sync {
		rec.noneOf(why, latencyColumns)
		return nil
	}
	m := newMixed(expect(p), rand.New(rand.NewPCG(p.Seed, 11)))
	rec.Begin()
	store, err := d.Open(dir, p.options())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	m.store = store
	if err := m.load(rec, store, data.Order(m.n, p.Seed, 10)); err != nil {
		return err
	}
	l, err := m.loopAt(rec, p, latencyCloser, latencyShare)
	if err != nil {
		return err
	}
	if err := l.run(m.operation); err != nil {
		return err
	}
	rec.percentiles("put_", l.puts)
	rec.percentiles("get_", l.gets)
	rec.keepCurve("put", l.puts)
	rec.keepCurve("get", l.gets)
	l.report(rec)
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	rec.End()
	return m.reread(d, dir, p)
}

// load puts every key, in batches where the engine has them. It is not timed.
func (e *expectation) load(rec *Recorder, store engine.Store, order []int32) error {
	b, ok := store.(engine.Batcher)
	if !ok {
		for _, i := range order {
			if err := store.Put(e.keys.At(int(i)), e.value(uint64(i))); err != nil {
				return fmt.Errorf("loading key %d: %w", i, err)
			}
		}
		return nil
	}
	for len(order) > 0 {
		piece := order[:min(loadBatch, len(order))]
		order = order[len(piece):]
		note, err := b.PutBatch(func(yield func(key, value []byte) bool) {
			for _, i := range piece {
				if !yield(e.keys.At(int(i)), e.value(uint64(i))) {
					return
				}
			}
		})
		if rec.Note(note); err != nil {
			return fmt.Errorf("loading a batch: %w", err)
		}
	}
	return nil
}

// operation puts or gets one random key; of only puts it puts one.
func (m *mixed) operation() (put bool, err error) {
	id := m.rng.Uint64N(uint64(m.n))
	key := m.keys.At(int(id))
	if m.onlyPuts || m.rng.Uint64()&1 == 0 {
		if err := m.store.Put(key, m.source.Value(id, m.versions[id]+1, m.size)); err != nil {
			return true, fmt.Errorf("put of key %d: %w", id, err)
		}
		m.versions[id]++
		return true, nil
	}
	return false, m.get(m.store, id)
}

func (m *mixed) get(r engine.Reader, id uint64) error {
	m.version = m.versions[id]
	return m.look.get(r, id, m.keys.At(int(id)))
}

// reread opens the store again, reads every key and walks all pairs. It is not timed.
func (m *mixed) reread(d engine.Driver, dir string, p Params) error {
	if !d.Info.Can(engine.CanDisk) {
		return nil
	}
	store, err := d.Open(dir, p.options())
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	for id := range uint64(m.n) {
		if err := m.get(store, id); err != nil {
			return fmt.Errorf("after close and open: %w", err)
		}
	}
	err = m.exact(d.Info, store, func(id uint64, got []byte) error {
		m.version = m.versions[id]
		return m.compare(id, got)
	})
	if err != nil {
		return fmt.Errorf("after close and open: %w", err)
	}
	return store.Close()
}
