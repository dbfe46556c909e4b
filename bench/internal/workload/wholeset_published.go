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
		Name:       "w4",
		Title:      "W4 whole set, as published: the same set put again and again into one store, then read",
		Variant:    "published",
		QuickN:     []int{10, 10_000},
		FullN:      []int{100_000},
		ValueBytes: 1480,
		Unfit:      asPublished,
		Conditions: wholeSetPublishedConditions,
		Columns:    wholeSetPublishedColumns,
		Estimate:   wholeSetPublishedEstimate,
		Run:        runWholeSetPublished,
		Commits:    []CommitKind{BatchCommits},
		Article:    []string{"tokyo-hash", "tokyo-btree", "goleveldb", "boltdb", "bbolt", "pogreb", "pebble"},
	})
}

var wholeSetPublishedColumns = []result.Column{
	{Key: "put", Title: "put set", Group: "time", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "put_B", Title: "put B/pass", Group: "time", Unit: result.Bytes, Ranked: true},
	{Key: "put_allocs", Title: "put allocs/pass", Group: "time", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get", Title: "get set", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "get_B", Title: "get B/pass", Group: "time", Unit: result.Bytes, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/pass", Group: "time", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
}

// As Go's benchmarks do for about a second: many passes of a small set, one of a
// large one.
func publishedPutPasses(n int) int { return min(100, max(1, 10_000/n)) }
func publishedGetPasses(n int) int { return min(1000, max(1, 50_000/n)) }

func wholeSetPublishedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("the whole set of %d pairs in one batch, %d times over, the same values each time, into one store; then every key, %d times, in one read transaction where the engine has one, every byte compared",
			p.N, publishedPutPasses(p.N), publishedGetPasses(p.N)),
		"times, bytes and allocations are per pass over the whole set, the mean of all passes; the batch is built inside the time",
		fmt.Sprintf("the article's pairs have %s; here all values have %d B", "785 B (10 pairs), 1,465 B (10,000) or 1,556 B (100,000) each on average", p.ValueBytes),
		"unsound: the mean mixes the first pass into an empty store with overwrites, by a count of passes that Go chose for each engine (here it is the same for all); the store is not closed in between and closing is not timed, so a store that puts work off looks faster; rewriting equal values rewards noticing it",
		"unsound: the article compares defaults, Bolt and bbolt with syncs, goleveldb, Pogreb and Tokyo Cabinet without: compare the first two with sync=on, the others with sync=off (of its Pebble only that its set was not one batch); by its allocations goleveldb put the pairs one by one, here they are one batch, which it syncs in both modes if it is above 4 MiB",
		"sizes are taken after close; then the store is opened again and every key read (not timed)",
		"each batch is one commit where the engine allows it," + syncCondition(p.Sync),
	}
}

func wholeSetPublishedEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	puts, gets := publishedPutPasses(p.N), 1+publishedGetPasses(p.N)
	total := starting + 2*c.opening() + times(p.N*puts, c.batched()) + times(p.N*gets, c.get())
	if isBolt(e) {
		total += times(p.N*p.N, 3*time.Nanosecond)
	}
	if c.sync {
		total += times(puts, 3*syncDelay)
	}
	return total
}

func runWholeSetPublished(rec *Recorder, d engine.Driver, dir string, p Params) error {
	w := &wholeSet{expectation: expect(p), rec: rec, p: p, d: d, dir: dir}
	rec.Begin()
	if err := w.open(); err != nil {
		return err
	}
	order := data.Order(w.n, w.p.Seed, 4)
	err := w.mean("put", publishedPutPasses(w.n), func() error { return w.putSet(order) })
	if err != nil {
		return err
	}
	order = data.Order(w.n, w.p.Seed, 6)
	err = w.mean("get", publishedGetPasses(w.n), func() error {
		return view(w.rec, w.d.Info, w.store, func(r engine.Reader) error { return w.getAll(r, order) })
	})
	if err != nil {
		return err
	}
	if err := w.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := recordDisk(rec, dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	rec.End()
	w.cannotPublished()
	return w.survived(d, dir, p)
}

// mean measures several passes together and records one of them.
func (w *wholeSet) mean(key string, passes int, fn func() error) error {
	span, err := Measure(func() error {
		for range passes {
			if err := fn(); err != nil {
				return err
			}
		}
		return nil
	})
	w.rec.PerOp(key, span, passes)
	return err
}

func (w *wholeSet) cannotPublished() {
	if why, no := w.d.Info.Cannot[engine.CanDisk]; no {
		w.rec.None(why, "disk", "disk_allocated")
	}
	if why, no := w.d.Info.Cannot[engine.CanSync]; no && w.p.Sync {
		w.rec.None(why, "put", "put_B", "put_allocs")
	}
}
