package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "durable",
		Title:      "Durable: single puts of several goroutines, each durable before it is acknowledged",
		Variant:    "sound",
		QuickN:     []int{3_000},
		FullN:      []int{20_000},
		ValueBytes: 100,
		Conditions: durableConditions,
		Columns:    durableColumns,
		Estimate:   durableEstimate,
		Run:        runDurable,
		Commits:    []CommitKind{PutCommits, SharedCommits},
		WritesOnly: true,
		Vary:       varyDurable,
	})
}

var durableColumns = []result.Column{
	{Key: "commit", Title: "time/commit", Group: "commits", Unit: result.NanosPerOp, Ranked: true},
	{Key: "per_second", Title: "commits/s", Group: "commits", Unit: result.PerSecond},
	{Key: "p50", Title: "p50", Group: "commits", Unit: result.Nanos, Ranked: true},
	{Key: "p99", Title: "p99", Group: "commits", Unit: result.Nanos, Ranked: true},
	{Key: "p999", Title: "p99.9", Group: "commits", Unit: result.Nanos, Ranked: true},
	{Key: "max", Title: "max", Group: "commits", Unit: result.Nanos},
	{Key: "raw", Title: "raw sync p50", Group: "commits", Unit: result.Nanos},
	{Key: "raw_max", Title: "raw max", Group: "commits", Unit: result.Nanos},
}

// varyDurable makes a cell for each number of goroutines. Without syncs there is
// nothing to measure here.
func varyDurable(p Params, _ Scale) []Params {
	if !p.Sync {
		return nil
	}
	var cells []Params
	for _, g := range []int{1, 4, 32} {
		p.Goroutines, p.Writers = g, g
		cells = append(cells, p)
	}
	return cells
}

func durableConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d puts of different keys by %d goroutines at once, each waiting for its own commit before it begins the next", p.N, p.Goroutines),
		"every put is a commit of its own" + syncCondition(p.Sync) + "; an engine may let one sync serve several commits that wait at the same time, and is told how many goroutines there are (Bolt and bbolt put by DB.Batch where there are several)",
		"time/commit = time of all divided by their number, so it falls where commits share a sync; the percentiles are what one put waits",
		"raw sync = the floor of this disk in the same process just before: the key's and value's bytes appended to a file, fdatasync (elsewhere fsync), one at a time",
		"afterwards every key is read, before and after a reopen (not timed)",
	}
}

// durableEstimate: the delay is that of 4 KiB; one put is less.
func durableEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	syncDelay = syncDelay * 3 / 4
	if p.Goroutines > 1 && !e.Can(engine.CanShare) {
		return idle
	}
	total := starting + times(p.N, p.cost(e, syncDelay).put())
	if p.Goroutines > 1 {
		total -= times(p.N/2, syncDelay) // some engines let commits share a sync
	}
	return total + rawSyncs*syncDelay
}

func runDurable(rec *Recorder, d engine.Driver, dir string, p Params) error {
	if why := durableImpossible(d.Info, p); why != "" {
		for _, c := range append(durableColumns, Common...) {
			rec.None(why, c.Key)
		}
		return nil
	}
	e := expect(p)
	raw, err := rawSync(filepath.Dir(dir), len(e.keys.At(0))+p.ValueBytes)
	if err != nil {
		return fmt.Errorf("measuring the disk: %w", err)
	}
	rec.Set("raw", float64(raw.ValueAtPercentile(50)))
	rec.Set("raw_max", float64(raw.Max()))
	rec.Begin()
	store, err := d.Open(dir, p.options())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	took, latencies, err := e.putShared(store, p.Goroutines)
	if err != nil {
		return err
	}
	rec.Set("commit", float64(took)/float64(p.N))
	rec.Set("per_second", float64(p.N)/took.Seconds())
	rec.percentiles("", latencies)
	rec.keepCurve("put", latencies)
	canGet := d.Info.Can(engine.CanGet)
	if canGet {
		if err := e.getAll(store, data.Sequence(e.n)); err != nil {
			return err
		}
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	rec.End()
	if !canGet {
		return nil
	}
	return e.survived(d, dir, p)
}

func durableImpossible(e engine.Info, p Params) string {
	if why, no := e.Cannot[engine.CanSync]; no {
		return why
	}
	if why, no := e.Cannot[engine.CanShare]; no && p.Goroutines > 1 {
		return why
	}
	return ""
}

// putShared puts every key, the goroutines taking turns in the numbers, and returns
// the time of all and the latencies of each.
func (e *expectation) putShared(store engine.Store, goroutines int) (time.Duration, *hdrhistogram.Histogram, error) {
	errs, parts := make([]error, goroutines), make([]*hdrhistogram.Histogram, goroutines)
	for g := range parts {
		parts[g] = newHistogram()
	}
	var all sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		all.Go(func() { errs[g] = e.putEvery(store, g, goroutines, parts[g]) })
	}
	all.Wait()
	took := time.Since(start)
	for _, h := range parts[1:] {
		parts[0].Merge(h)
	}
	return took, parts[0], errors.Join(errs...)
}

func (e *expectation) putEvery(store engine.Store, first, step int, h *hdrhistogram.Histogram) error {
	for i := first; i < e.n; i += step {
		start := time.Now()
		if err := store.Put(e.keys.At(i), e.value(uint64(i))); err != nil {
			return fmt.Errorf("put of key %d: %w", i, err)
		}
		record(h, time.Since(start))
	}
	return nil
}

// rawSyncs is how many syncs the floor of the disk is measured by.
const rawSyncs = 100

// rawSync measures appends of size bytes with a sync each.
func rawSync(dir string, size int) (*hdrhistogram.Histogram, error) {
	f, err := os.CreateTemp(dir, "raw-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	h, block := newHistogram(), make([]byte, size)
	for range rawSyncs {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := engine.DataSync(f); err != nil {
			return nil, err
		}
		record(h, time.Since(start))
	}
	return h, nil
}
