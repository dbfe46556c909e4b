package workload

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "w1",
		Title:      "W1 lifecycle: put, get, delete, put again, iterate; one commit each",
		Variant:    "sound",
		QuickN:     []int{10_000},
		FullN:      []int{100_000},
		ValueBytes: 4096,
		Conditions: lifecycleConditions,
		Columns:    lifecycleColumns,
		Estimate:   lifecycleEstimate,
		Run:        runLifecycle,
		Commits:    []CommitKind{PutCommits, DeleteCommits},

		QuickSynced: 2_000, // of more, the quick suite would do little else
	})
}

var lifecycleColumns = []result.Column{
	{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "get", Title: "get rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "delete", Title: "delete rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "put2", Title: "put rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "keys", Title: "iterate keys", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "pairs", Title: "iterate pairs", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "put_total", Title: "puts", Group: "totals", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "close", Title: "close", Group: "totals", Unit: result.Nanos},
	{Key: "put_close", Title: "puts+close", Group: "totals", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "total", Title: "all+close", Group: "totals", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "put_allocs", Title: "put allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
}

func lifecycleConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d sequential puts, random gets, random deletes, random puts (new values); then all keys, then all keys with values", p.N),
		"every put and every delete is a commit of its own" + syncCondition(p.Sync),
		"nothing is run before the first put: no warm-up; gets find the page cache as the puts left it",
		"after the deletes every key is checked to be gone, after close the store is opened again and every key read (not timed)",
		"puts = both rounds of puts; all = puts, gets, deletes and the iteration of pairs; sizes are taken after close",
	}
}

func syncCondition(sync bool) string {
	if sync {
		return " and asked to be durable when it returns"
	}
	return " and not synced"
}

// lifecycleEstimate: Bolt writes its list of free pages with every commit, so its
// deletes and second puts grow with the square of the number of keys. bbolt need not, and is
// told not to.
func lifecycleEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	total := starting + 2*c.opening() + times(3*p.N, c.put()) + times(3*p.N, c.get()) + times(2*p.N, c.walked())
	if e.Name == "boltdb" {
		total += times(p.N*p.N, 12*time.Nanosecond)
	}
	return total
}

func isBolt(e engine.Info) bool { return e.Name == "boltdb" || e.Name == "bbolt" }

// lifecycle is one run of W1 on one store.
type lifecycle struct {
	*expectation
	rec   *Recorder
	p     Params
	info  engine.Info
	store engine.Store
	spent map[string]time.Duration // by phase
}

func runLifecycle(rec *Recorder, d engine.Driver, dir string, p Params) error {
	return runLifecycleOn(rec, d, dir, p, expect(p), (*lifecycle).phases)
}

// runLifecycleOn is what the variants share: phases is what they do to the store.
func runLifecycleOn(rec *Recorder, d engine.Driver, dir string, p Params, e *expectation, phases func(*lifecycle) []func() error) error {
	rec.Begin()
	l := &lifecycle{expectation: e, rec: rec, p: p, info: d.Info, spent: map[string]time.Duration{}}
	opening, err := Measure(func() (err error) { l.store, err = d.Open(dir, p.options()); return err })
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	l.spent["open"] = opening.Time
	for _, phase := range phases(l) {
		if err := phase(); err != nil {
			return err
		}
	}
	closing, err := Measure(l.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	l.spent["close"] = closing.Time
	if p.Variant == "published" {
		l.totalPublished()
	} else {
		l.totals()
	}
	if err := recordDisk(rec, dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	rec.End()
	l.cannot()
	return l.survived(d, dir, p)
}

func (l *lifecycle) phases() []func() error {
	return []func() error{
		func() error { return l.putAll("put", data.Sequence(l.n)) },
		func() error { return l.getEach(data.Order(l.n, l.p.Seed, 1)) },
		func() error { return l.deleteAll(data.Order(l.n, l.p.Seed, 2)) },
		func() error { return l.noneLeft(l.store) },
		func() error { l.version++; return l.putAll("put2", data.Order(l.n, l.p.Seed, 3)) },
		l.walkKeys,
		l.walkPairs,
	}
}

func (l *lifecycle) phase(key string, fn func() error) error {
	span, err := l.rec.Phase(key, l.n, fn)
	l.spent[key] = span.Time
	return err
}

func (l *lifecycle) putAll(key string, order []int32) error {
	return l.phase(key, func() error {
		for _, i := range order {
			if err := l.store.Put(l.keys.At(int(i)), l.value(uint64(i))); err != nil {
				return fmt.Errorf("put of key %d: %w", i, err)
			}
		}
		return nil
	})
}

func (l *lifecycle) getEach(order []int32) error {
	return l.phase("get", func() error { return l.getAll(l.store, order) })
}

func (l *lifecycle) deleteAll(order []int32) error {
	return l.phase("delete", func() error { return l.deleteWith(l.store.Delete, order) })
}

func (l *lifecycle) deleteWith(remove func(key []byte) error, order []int32) error {
	for _, i := range order {
		if err := remove(l.keys.At(int(i))); err != nil {
			return fmt.Errorf("delete of key %d: %w", i, err)
		}
	}
	return nil
}

func (l *lifecycle) walkKeys() error {
	walker, ok := l.store.(engine.KeyWalker)
	if !ok {
		l.rec.None(l.info.Cannot[engine.CanKeys], "keys")
		return nil
	}
	w := l.newWalk(l.info.Can(engine.CanOrder))
	return l.phase("keys", func() error { return w.end(walker.Keys(w.key)) })
}

func (l *lifecycle) walkPairs() error {
	walker, ok := l.store.(engine.PairWalker)
	if !ok {
		l.rec.None(l.info.Cannot[engine.CanPairs], "pairs")
		return nil
	}
	w := l.newWalk(l.info.Can(engine.CanOrder))
	return l.phase("pairs", func() error { return w.end(walker.Pairs(w.pair)) })
}

func (l *lifecycle) totals() {
	puts := l.spent["put"] + l.spent["put2"]
	l.rec.Set("put_total", float64(puts))
	l.rec.Set("close", float64(l.spent["close"]))
	l.rec.Set("put_close", float64(puts+l.spent["close"]))
	all := puts + l.spent["get"] + l.spent["delete"] + l.spent["pairs"] + l.spent["close"]
	l.rec.Set("total", float64(all))
}

// cannot takes back figures that would mean nothing for this engine.
func (l *lifecycle) cannot() {
	if why, no := l.info.Cannot[engine.CanPairs]; no && l.p.Variant != "published" {
		l.rec.None("all has the iteration of pairs in it: "+why, "total")
	}
	if why, no := l.info.Cannot[engine.CanDisk]; no {
		l.rec.None(why, "disk", "disk_allocated", "close", "put_close", "total")
	}
	if why, no := l.info.Cannot[engine.CanSync]; no && l.p.Sync {
		l.rec.None(why, "put", "delete", "put2", "put_total", "put_close", "total", "put_allocs")
	}
}
