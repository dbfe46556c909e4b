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
		Name:       "load",
		Title:      "load: many small values in random order, settle, random gets, scans, reopen",
		Variant:    "sound",
		QuickN:     []int{100_000},
		FullN:      []int{1_000_000},
		ValueBytes: 100,
		Modes:      unsynced,
		Skewed:     true,
		Conditions: loadConditions,
		Columns:    loadColumns,
		Estimate:   loadEstimate,
		Run:        runLoad,
		Commits:    []CommitKind{BatchCommits},
	})
}

const (
	loadBatch = 1000
	loadRange = 100 // pairs of a range scan
	loadReads = 100 * time.Millisecond
)

func loadRanges(n int) int { return min(10_000, max(1, n/20)) }

var loadColumns = []result.Column{
	{Key: "load", Title: "load", Group: "writes", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "settle", Title: "settle", Group: "writes", Unit: result.Nanos},
	{Key: "close", Title: "close", Group: "writes", Unit: result.Nanos},
	{Key: "load_all", Title: "load+settle+close", Group: "writes", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "reopen", Title: "reopen", Group: "writes", Unit: result.Nanos, Ranked: true},
	{Key: "get", Title: "get rnd", Group: "reads", Unit: result.NanosPerOp, Ranked: true},
	{Key: "get2", Title: "get, 2 goroutines", Group: "reads", Unit: result.NanosPerOp, Ranked: true},
	{Key: "keys", Title: "scan keys", Group: "reads", Unit: result.NanosPerOp, Ranked: true},
	{Key: "pairs", Title: "scan pairs", Group: "reads", Unit: result.NanosPerOp, Ranked: true},
	{Key: "range", Title: "100-key scan", Group: "reads", Unit: result.NanosPerOp, Ranked: true},
	{Key: "disk_settled", Title: "disk settled", Group: "space", Unit: result.Bytes, Ranked: true, Open: true},
	{Key: "disk_settled_allocated", Title: "allocated", Group: "space", Unit: result.Bytes, Ranked: true, Open: true},
	{Key: "disk", Title: "disk closed", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "allocated closed", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "load_allocs", Title: "load allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
}

func loadConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d pairs in random order, in batches of %d; each batch is one commit where the engine allows it,%s", p.N, loadBatch, syncCondition(p.Sync)),
		"settle = until flushes and compactions that are due have ended, where the engine lets one see it: up to the first of 50 ms without any",
		loadGets(p),
		fmt.Sprintf("then all keys, all pairs, and %d scans of %d pairs from random keys (time per scan); every value compared, order and completeness checked", loadRanges(p.N), loadRange),
		fmt.Sprintf("each kind of read is made again until %s are over, and all of it counts", loadReads),
		"reads are made after settling, before close, the page cache as the load left it; after close the store is opened again (reopen) and every key read (not timed)",
	}
}

func loadGets(p Params) string {
	if p.Theta > 0 {
		return fmt.Sprintf("%d gets of keys by Zipf with theta %v, scrambled, by one goroutine, then as many by two; each get is one by itself", p.N, p.Theta)
	}
	return fmt.Sprintf("%d gets of random keys by one goroutine, then as many by two; each get is one by itself", p.N)
}

func loadEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	gets, walk := times(p.N, c.get()), times(p.N, c.walked())
	total := starting + 2*c.opening() + times(p.N, c.batched()) + gets + 2*max(gets, loadReads) + walk + 2*max(walk, loadReads)
	if e.Can(engine.CanScan) {
		total += max(times(loadRanges(p.N), c.scanned(loadRange)), loadReads)
	}
	if c.sync {
		total += times(p.N/loadBatch, c.put())
	}
	return total
}

// load is one run of it.
type load struct {
	*expectation
	rec   *Recorder
	p     Params
	d     engine.Driver
	dir   string
	store engine.Store
	spent time.Duration // load, settle and close
	gets  [][]int32     // for one goroutine, then for each of two
}

func runLoad(rec *Recorder, d engine.Driver, dir string, p Params) error {
	l := &load{expectation: expect(p), rec: rec, p: p, d: d, dir: dir}
	if err := l.drawGets(); err != nil {
		return err
	}
	rec.Begin()
	for _, step := range []func() error{l.open, l.fill, l.settle, l.readAll, l.close, l.reopen} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) drawGets() error {
	dist, counts := data.Uniform, []int{l.n, l.n - l.n/2, l.n / 2}
	if l.p.Theta > 0 {
		dist = data.Scrambled
	}
	for i, count := range counts {
		chooser, err := data.NewChooser(dist, l.n, l.p.Theta, l.p.Seed, 12)
		if err != nil {
			return err
		}
		chooser.Skip(i * l.n)
		l.gets = append(l.gets, chooser.Draw(count))
	}
	return nil
}

func (l *load) open() (err error) {
	if l.store, err = l.d.Open(l.dir, l.p.options()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

func (l *load) fill() error {
	all := set{l.expectation, data.Order(l.n, l.p.Seed, 13)}
	span, err := l.rec.Phase("load", l.n, func() error { return all.putBatches(l.rec, l.d.Info, l.store, loadBatch) })
	l.spent += span.Time
	return err
}

func (l *load) settle() error {
	if settler, ok := l.store.(engine.Settler); ok {
		begun := time.Now()
		since, err := settler.Settle()
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		l.rec.Set("settle", float64(since.Sub(begun)))
		l.spent += since.Sub(begun)
	} else {
		l.rec.None(l.d.Info.Cannot[engine.CanSettle], "settle")
	}
	return recordDisk(l.rec, l.dir, "disk_settled", "disk_settled_allocated")
}

func (l *load) readAll() error {
	if err := l.rec.Reads("get", l.n, loadReads, func() error { return l.getAll(l.store, l.gets[0]) }); err != nil {
		return err
	}
	if why, no := l.d.Info.Cannot[engine.CanShare]; no {
		l.rec.None(why, "get2")
	} else {
		err := l.rec.Reads("get2", l.n, loadReads, func() error {
			return together(2, func(g int) error { return l.getAll(l.store, l.gets[1+g]) })
		})
		if err != nil {
			return err
		}
	}
	for _, scan := range []func() error{l.walkKeys, l.walkPairs, l.walkRanges} {
		if err := scan(); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) close() error {
	span, err := Measure(l.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	l.rec.Set("close", float64(span.Time))
	l.rec.Set("load_all", float64(l.spent+span.Time))
	return recordDisk(l.rec, l.dir, "disk", "disk_allocated")
}

// reopen is timed, what it finds is looked at without the clock.
func (l *load) reopen() error {
	defer l.cannot()
	if !l.d.Info.Can(engine.CanDisk) {
		l.rec.End()
		return nil
	}
	span, err := Measure(l.open)
	if err != nil {
		return err
	}
	l.rec.Set("reopen", float64(span.Time))
	l.rec.End()
	if err := l.all(l.d.Info, l.store); err != nil {
		return fmt.Errorf("after close and open: %w", err)
	}
	return l.store.Close()
}

// cannot takes back figures that would mean nothing for this engine.
func (l *load) cannot() {
	if why, no := l.d.Info.Cannot[engine.CanDisk]; no {
		l.rec.None(why, "close", "load_all", "reopen", "disk_settled", "disk_settled_allocated", "disk", "disk_allocated")
	}
	if why, no := l.d.Info.Cannot[engine.CanSync]; no && l.p.Sync {
		l.rec.None(why, "load", "load_allocs")
	}
}
