package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "w4",
		Title:      "W4 whole set: put the set in one batch, put it again, get every key",
		Variant:    "sound",
		QuickN:     []int{10, 10_000},
		FullN:      []int{100_000},
		ValueBytes: 1480,
		Conditions: wholeSetConditions,
		Columns:    wholeSetColumns,
		Estimate:   wholeSetEstimate,
		Run:        runWholeSet,
		Repeat:     wholeSetRepeats,
		Commits:    []CommitKind{BatchCommits},
	})
}

var wholeSetColumns = []result.Column{
	{Key: "put", Title: "put new", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "close", Title: "close", Group: "time", Unit: result.Nanos},
	{Key: "put_close", Title: "put+close", Group: "time", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "reopen", Title: "reopen", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "again", Title: "put again", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "get", Title: "get all", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "put_B", Title: "put B/op", Group: "space", Unit: result.BytesPerOp, Ranked: true},
	{Key: "put_allocs", Title: "put allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get_B", Title: "get B/op", Group: "space", Unit: result.BytesPerOp, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_end", Title: "at the end", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_end_allocated", Title: "allocated", Group: "space", Unit: result.Bytes, Ranked: true},
}

// Small sets are put and read several times, for one pass is too short to time. More
// than some passes would tell of nothing but the measuring, which stops the program
// twice for each.
func putPasses(n int) int { return min(10, max(1, 10_000/n)) }
func getPasses(n int) int { return min(100, max(1, 50_000/n)) }

// wholeSetRepeats: of a small set the first put is a batch of some microseconds.
func wholeSetRepeats(p Params) int {
	if p.N <= 100 {
		return 15
	}
	return 1
}

func wholeSetConditions(p Params) []string {
	return []string{
		fmt.Sprintf("the whole set of %d pairs in one batch, keys in shuffled order, into a new store; close; sizes; reopen; every key read (not timed)", p.N),
		fmt.Sprintf("put again: the same keys with new values, %s; then every key in another order, %s, in one read transaction where the engine has one, every byte compared",
			passes(putPasses(p.N)), passes(getPasses(p.N))),
		"times, B/op and allocs/op are per pair; the batch is built inside the time; what an engine maps beside the Go heap is not in B/op",
		"no warm-up; the page cache is as the puts left it; disk = after the first close, at the end = after the second; then the store is opened once more and every key read (not timed)",
		"each batch is one commit where the engine allows it," + syncCondition(p.Sync),
	}
}

func passes(n int) string {
	if n == 1 {
		return "one pass"
	}
	return fmt.Sprintf("median of %d passes", n)
}

// wholeSetEstimate: Bolt shifts its one big node for every pair of a batch, and
// engines without batches sync each pair.
func wholeSetEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	puts, gets := 1+putPasses(p.N), 2+getPasses(p.N)
	total := starting + 3*c.opening() + times(p.N*puts, c.batched()) + times(p.N*gets, c.get()) + times(puts+gets, measuring)
	if isBolt(e) {
		total += times(p.N*p.N, 3*time.Nanosecond)
	}
	return total
}

// wholeSet is one run of W4.
type wholeSet struct {
	*expectation
	rec   *Recorder
	p     Params
	d     engine.Driver
	dir   string
	store engine.Store
}

func runWholeSet(rec *Recorder, d engine.Driver, dir string, p Params) error {
	w := &wholeSet{expectation: expect(p), rec: rec, p: p, d: d, dir: dir}
	rec.Begin()
	for _, step := range []func() error{w.open, w.putNew, w.reopen, w.check, w.putAgain, w.getPasses, w.finish} {
		if err := step(); err != nil {
			return err
		}
	}
	w.cannot()
	return nil
}

func (w *wholeSet) open() (err error) {
	if w.store, err = w.d.Open(w.dir, w.p.options()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

func (w *wholeSet) putNew() error {
	order := data.Order(w.n, w.p.Seed, 4)
	_, err := w.rec.Phase("put", w.n, func() error { return w.putSet(order) })
	return err
}

// putSet writes the set in one batch, or pair by pair if there are no batches.
func (w *wholeSet) putSet(order []int32) error {
	return set{w.expectation, order}.put(w.rec, w.d.Info, w.store)
}

// reopen closes and opens the store, if it keeps anything.
func (w *wholeSet) reopen() error {
	if !w.d.Info.Can(engine.CanDisk) {
		return nil
	}
	closing, err := Measure(w.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	w.rec.Set("close", float64(closing.Time))
	w.rec.Set("put_close", w.rec.Metrics["put"]*float64(w.n)+float64(closing.Time))
	if err := recordDisk(w.rec, w.dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	opening, err := Measure(w.open)
	w.rec.Set("reopen", float64(opening.Time))
	return err
}

// check reads everything before it is overwritten. It is not timed.
func (w *wholeSet) check() error { return w.getAll(w.store, data.Sequence(w.n)) }

func (w *wholeSet) putAgain() error {
	order := data.Order(w.n, w.p.Seed, 5)
	return w.median("again", putPasses(w.n), func() error {
		w.version++
		return w.putSet(order)
	})
}

func (w *wholeSet) getPasses() error {
	order := data.Order(w.n, w.p.Seed, 6)
	return w.median("get", getPasses(w.n), func() error {
		return view(w.rec, w.d.Info, w.store, func(r engine.Reader) error { return w.getAll(r, order) })
	})
}

// median measures fn several times and records the middle time, and the mean of allocations.
func (w *wholeSet) median(key string, passes int, fn func() error) error {
	spans, all := make([]Span, 0, passes), Span{}
	for range passes {
		span, err := Measure(fn)
		if err != nil {
			return err
		}
		spans = append(spans, span)
		all.add(span)
	}
	slices.SortFunc(spans, func(a, b Span) int { return int(a.Time - b.Time) })
	each := uint64(passes)
	w.rec.PerOp(key, Span{spans[len(spans)/2].Time, all.Bytes / each, all.Allocs / each}, w.n)
	return nil
}

func (w *wholeSet) finish() error {
	if err := w.store.Close(); err != nil {
		return fmt.Errorf("second close: %w", err)
	}
	if err := recordDisk(w.rec, w.dir, "disk_end", "disk_end_allocated"); err != nil {
		return err
	}
	w.rec.End()
	return w.survived(w.d, w.dir, w.p)
}

// cannot takes back figures that would mean nothing for this engine.
func (w *wholeSet) cannot() {
	if why, no := w.d.Info.Cannot[engine.CanDisk]; no {
		w.rec.None(why, "close", "put_close", "reopen", "disk", "disk_allocated", "disk_end", "disk_end_allocated")
	}
	if why, no := w.d.Info.Cannot[engine.CanSync]; no && w.p.Sync {
		w.rec.None(why, "put", "again", "put_B", "put_allocs")
	}
}
