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
		Name:       "large",
		Title:      "large values: put, get, overwrite and delete of 16 KiB and 1 MiB, one commit each",
		Variant:    "sound",
		QuickN:     []int{512},
		FullN:      []int{8192},
		ValueBytes: 16 << 10,
		Vary:       largeSizes,
		Unfit:      largeUnfit,
		Conditions: largeConditions,
		Columns:    largeColumns,
		Estimate:   largeEstimate,
		Run:        runLarge,
		Repeat:     largeRepeats,
	})
}

// largeSizes adds a cell of values of 1 MiB, fewer of them.
func largeSizes(p Params, s Scale) []Params {
	if s.ValueBytes > 0 {
		return []Params{p}
	}
	big := p
	big.ValueBytes = data.MaxValueBytes
	switch {
	case len(s.Counts) > 0:
	case p.N > 512:
		big.N = p.N / 16
	default:
		big.N = p.N / 64
	}
	return []Params{p, big}
}

// largeRepeats: values of 8 MiB together are put within some milliseconds, and a few of
// them, with syncs, in not much more.
func largeRepeats(p Params) int {
	switch {
	case int64(p.N)*int64(p.ValueBytes) > 8<<20:
		return 1
	case !p.Sync:
		return 5
	case p.N <= 100:
		return 3
	}
	return 1
}

func largeUnfit(s Scale) string {
	if s.Data != nil {
		return "its sizes of values are what it is about"
	}
	return ""
}

// largeReads is how long gets are made at least, each time the whole is done.
const largeReads = 20 * time.Millisecond

var largeColumns = []result.Column{
	{Key: "put", Title: "put", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "get", Title: "get rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "overwrite", Title: "overwrite", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "delete", Title: "delete", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "close", Title: "close", Group: "time", Unit: result.Nanos},
	{Key: "disk", Title: "disk overwritten", Group: "space", Unit: result.Bytes, Ranked: true, Open: true},
	{Key: "disk_allocated", Title: "allocated", Group: "space", Unit: result.Bytes, Ranked: true, Open: true},
	{Key: "disk_end", Title: "disk emptied", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_end_allocated", Title: "allocated emptied", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "put_B", Title: "put B/op", Group: "space", Unit: result.BytesPerOp, Ranked: true},
	{Key: "get_B", Title: "get B/op", Group: "space", Unit: result.BytesPerOp, Ranked: true},
}

func largeConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d values of %d B put in order of the keys, got at random, overwritten at random with others, read again (not timed), deleted at random, close",
			p.N, p.ValueBytes),
		"every put, overwrite and delete is a commit of its own" + syncCondition(p.Sync) + "; every value read is compared",
		fmt.Sprintf("the random gets are made again until %s are over, and all of them count", largeReads),
		"disk overwritten = before the deletes, the store open; disk emptied = after all are deleted and the store is closed",
		"values are windows into 8 MiB of text, so those of 1 MiB have parts in common, which none of these engines look for; after close the store is opened again, every key checked to be gone, and where pairs can be iterated that there is none (not timed)",
	}
}

func largeEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	gets := times(p.N, c.get())
	return starting + 3*c.opening() + times(2*p.N, c.put()) + times(p.N, c.synced()) + gets + max(gets, largeReads)
}

// large is one run of it.
type large struct {
	*expectation
	rec   *Recorder
	p     Params
	d     engine.Driver
	dir   string
	store engine.Store
}

func runLarge(rec *Recorder, d engine.Driver, dir string, p Params) (err error) {
	l := &large{expectation: expect(p), rec: rec, p: p, d: d, dir: dir}
	rec.Begin()
	if l.store, err = d.Open(dir, p.options()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for _, step := range []func() error{
		func() error { return l.putAll("put", data.Sequence(l.n)) },
		l.get,
		func() error { l.version++; return l.putAll("overwrite", data.Order(l.n, p.Seed, 16)) },
		func() error { return recordDisk(rec, dir, "disk", "disk_allocated") },
		func() error { return l.getAll(l.store, data.Sequence(l.n)) },
		l.deleteAll,
		func() error { return l.noneLeft(l.store) },
		l.close,
		l.stillEmpty,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *large) putAll(key string, order []int32) error {
	all := set{l.expectation, order}
	_, err := l.rec.Phase(key, l.n, func() error { return putOneByOne(l.store, all.pairs) })
	return err
}

func (l *large) get() error {
	order := data.Order(l.n, l.p.Seed, 15)
	return l.rec.Reads("get", l.n, largeReads, func() error { return l.getAll(l.store, order) })
}

func (l *large) deleteAll() error {
	order := data.Order(l.n, l.p.Seed, 17)
	_, err := l.rec.Phase("delete", l.n, func() error {
		for _, i := range order {
			if err := l.store.Delete(l.keys.At(int(i))); err != nil {
				return fmt.Errorf("delete of key %d: %w", i, err)
			}
		}
		return nil
	})
	return err
}

func (l *large) close() error {
	span, err := Measure(l.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	l.rec.Set("close", float64(span.Time))
	if err := recordDisk(l.rec, l.dir, "disk_end", "disk_end_allocated"); err != nil {
		return err
	}
	l.rec.End()
	if why, no := l.d.Info.Cannot[engine.CanDisk]; no {
		l.rec.None(why, "close", "disk", "disk_allocated", "disk_end", "disk_end_allocated")
	}
	if why, no := l.d.Info.Cannot[engine.CanSync]; no && l.p.Sync {
		l.rec.None(why, "put", "overwrite", "delete", "put_B")
	}
	return nil
}

// stillEmpty opens the store again: what was deleted must stay so. It is not timed.
func (l *large) stillEmpty() error {
	if !l.d.Info.Can(engine.CanDisk) {
		return nil
	}
	store, err := l.d.Open(l.dir, l.p.options())
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	if err = l.noneLeft(store); err == nil {
		err = l.empty(l.d.Info, store)
	}
	if err != nil {
		return fmt.Errorf("after close and open: %w", err)
	}
	return store.Close()
}
