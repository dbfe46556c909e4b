package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// pages is how many stores the pairs are spread over.
const pages = 10

func init() {
	Register(Workload{
		Name:       "w0",
		Title:      "W0 paged: ten stores of a tenth each, batch-written; then every key of all ten is read",
		Variant:    "sound",
		QuickN:     []int{20_000},
		FullN:      []int{500_000},
		ValueBytes: 50,
		Modes:      unsynced,
		Conditions: pagedConditions,
		Columns:    pagedColumns,
		Estimate:   pagedEstimate,
		Run:        runPaged,
		Commits:    []CommitKind{BatchCommits},
		Repeat:     pagedRepeats,
	})
	Register(Workload{
		Name:       "w0",
		Title:      "W0 paged, as published: keys of a 3-character prefix and a counter, values of one byte",
		Variant:    "published",
		QuickN:     []int{20_000},
		FullN:      []int{500_000},
		ValueBytes: 1,
		Modes:      unsynced,
		Unfit:      asPublished,
		Conditions: pagedPublishedConditions,
		Columns:    pagedColumns,
		Estimate:   pagedEstimate,
		Run:        runPaged,
		Commits:    []CommitKind{BatchCommits},
		Article:    []string{"lmdb", "boltdb", "leveldb"},
	})
}

var pagedColumns = []result.Column{
	{Key: "write", Title: "write all", Group: "time", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "read", Title: "read all", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "put", Title: "put", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "get", Title: "get", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "reopen", Title: "reopen all", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "disk", Title: "disk per group", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "allocated", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "put_allocs", Title: "put allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
}

// pagedRepeats: some thousand pairs in each of ten stores take some milliseconds.
func pagedRepeats(p Params) int {
	if p.N <= 20_000 {
		return 3
	}
	return 1
}

func pagedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d groups of %d pairs, each written in one batch in shuffled order to a new store, which is closed", pages, p.N/pages),
		fmt.Sprintf("keys of %d B, values of %d B from the pool, every one another", p.keyBytes(), p.ValueBytes),
		"then each store is opened again and every key of it read in another order, in one read transaction where the engine has one, every byte compared",
		"write all = open, batch and close of all ten; put = the batches alone, get and read all = the reads alone; reopen is not in them",
		"sizes after the first close, a tenth of the whole; each batch is one commit where the engine allows it," + syncCondition(p.Sync),
	}
}

func pagedPublishedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d groups of %d pairs, each written in one batch in the order of the counter to a new store, which is closed; then every key of all ten is read in the same order",
			pages, p.N/pages),
		"keys are the group's prefix of 3 characters and a counter without zeros in front, values one byte: the article's page names neither, and its LevelDB has 7.6 B for each, compressed",
		"unsound: with values of one byte the keys are all that is stored, shared prefixes make them shrink as no real ones do, and a value of another key can pass for the right one",
		"unsound: the article does not say how it synced; by their defaults Bolt and LMDB sync each commit and LevelDB does not (one commit for each group): compare its Bolt and LMDB with sync=on (-sync on, or -full), its LevelDB with sync=off",
		"the article does not say whether its times have opening and closing in them, nor in which order it writes and reads: write all has both, read all has not",
		"sizes after the first close, a tenth of the whole; each batch is one commit where the engine allows it," + syncCondition(p.Sync),
	}
}

func pagedEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	return starting + times(2*pages, c.opening()) + times(p.N, c.batched()+c.get())
}

// paged is one run of W0.
type paged struct {
	*expectation
	rec       *Recorder
	p         Params
	d         engine.Driver
	dir       string
	published bool
	stores    []engine.Store // open ones of an engine that keeps nothing on disk
	opened    time.Duration
	put       Span
	closed    time.Duration
	reopened  time.Duration
	get       Span
}

func runPaged(rec *Recorder, d engine.Driver, dir string, p Params) error {
	w := &paged{rec: rec, p: p, d: d, dir: dir, published: p.Variant == "published"}
	w.expectation = expect(p)
	if w.published {
		w.keys = pagedKeys(p.N)
	}
	rec.Begin()
	for _, step := range []func(group int) error{w.write, w.read} {
		for group := range pages {
			if err := step(group); err != nil {
				return fmt.Errorf("group %d: %w", group, err)
			}
		}
		if _, measured := rec.Metrics["disk"]; !measured {
			if err := w.size(); err != nil {
				return err
			}
		}
	}
	rec.End()
	w.record()
	return nil
}

// pagedKeys are those of the article: a prefix for the group and a counter.
func pagedKeys(n int) data.Keys {
	keys := make([][]byte, n)
	per := n / pages
	for i := range keys {
		group := min(i/max(per, 1), pages-1)
		keys[i] = fmt.Appendf(nil, "g%02d%d", group, i-group*per)
	}
	return data.OwnKeys(keys)
}

// ids of a group in the order they are written (purpose 7) or read (8).
func (w *paged) ids(group int, purpose uint64) []int32 {
	per := w.n / pages
	low, high := group*per, (group+1)*per
	if group == pages-1 {
		high = w.n
	}
	ids := data.Sequence(high - low)
	if !w.published {
		ids = data.Order(high-low, w.p.Seed, purpose)
	}
	for i := range ids {
		ids[i] += int32(low)
	}
	return ids
}

func (w *paged) open(group int) (store engine.Store, err error) {
	dir := filepath.Join(w.dir, fmt.Sprintf("group%d", group))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	store, err = w.d.Open(dir, engine.Options{Sync: w.p.Sync, Keys: w.p.N / pages})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return store, nil
}

func (w *paged) write(group int) error {
	ids := w.ids(group, 7)
	var store engine.Store
	opening, err := Measure(func() (err error) { store, err = w.open(group); return err })
	if err != nil {
		return err
	}
	putting, err := Measure(func() error { return set{w.expectation, ids}.put(w.rec, w.d.Info, store) })
	if err != nil {
		return err
	}
	w.opened += opening.Time
	w.put.add(putting)
	if !w.d.Info.Can(engine.CanDisk) {
		w.stores = append(w.stores, store)
		return nil
	}
	closing, err := Measure(store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	w.closed += closing.Time
	return nil
}

func (w *paged) read(group int) error {
	ids := w.ids(group, 8)
	if len(w.stores) > 0 {
		return w.readAll(w.stores[group], ids)
	}
	var store engine.Store
	opening, err := Measure(func() (err error) { store, err = w.open(group); return err })
	if err != nil {
		return err
	}
	w.reopened += opening.Time
	if err := w.readAll(store, ids); err != nil {
		return err
	}
	return store.Close()
}

func (w *paged) readAll(store engine.Store, ids []int32) error {
	span, err := Measure(func() error {
		return view(w.rec, w.d.Info, store, func(r engine.Reader) error { return w.getAll(r, ids) })
	})
	w.get.add(span)
	return err
}

func (w *paged) size() error {
	apparent, allocated, err := diskUse(w.dir)
	if err != nil {
		return fmt.Errorf("measuring the size on disk: %w", err)
	}
	w.rec.Set("disk", float64(apparent)/pages)
	w.rec.Set("disk_allocated", float64(allocated)/pages)
	return nil
}

func (w *paged) record() {
	w.rec.PerOp("put", w.put, w.n)
	w.rec.PerOp("get", w.get, w.n)
	w.rec.Set("write", float64(w.opened+w.put.Time+w.closed))
	w.rec.Set("read", float64(w.get.Time))
	w.rec.Set("reopen", float64(w.reopened))
	if why, no := w.d.Info.Cannot[engine.CanDisk]; no {
		w.rec.None(why, "write", "reopen", "disk", "disk_allocated")
	}
	if why, no := w.d.Info.Cannot[engine.CanSync]; no && w.p.Sync {
		w.rec.None(why, "write", "put", "put_allocs")
	}
}
