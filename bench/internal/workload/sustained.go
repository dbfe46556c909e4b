package workload

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "sustained",
		Title:      "Sustained: random puts at a fixed rate, 60 % of what the engine itself can do, for a long time; pauses, and those of the disk beside",
		Variant:    "sound",
		Timed:      true,
		Named:      true,
		QuickN:     []int{200_000},
		ValueBytes: 1024,
		Conditions: sustainedConditions,
		Columns:    sustainedColumns,
		Estimate:   sustainedEstimate,
		Run:        runSustained,
		Commits:    []CommitKind{PutCommits},
		Vary:       func(p Params, s Scale) []Params { return []Params{timed(p, s, 60)} },
	})
}

const (
	sustainedShare = 0.60    // of the throughput measured before
	sustainedPeak  = 1. / 6  // of Params.Seconds, for measuring that throughput: bursts end in that time
	sustainedAlone = 1. / 20 // of Params.Seconds, for the disk without an engine
)

var sustainedColumns = slices.Concat(putPercentiles, []result.Column{
	{Key: "longest", Title: "longest pause", Group: "pauses", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "pauses", Title: "pauses", Group: "pauses", Unit: result.Number},
	{Key: "paused", Title: "all of them", Group: "pauses", Unit: result.Nanos},
	{Key: "disk_longest", Title: "disk's longest, beside", Group: "pauses", Unit: result.Nanos},
	{Key: "disk_pauses", Title: "disk's pauses, beside", Group: "pauses", Unit: result.Number},
	{Key: "disk_alone", Title: "disk's longest, alone", Group: "pauses", Unit: result.Nanos},
}, rateColumns)

func sustainedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d keys are put first; then one goroutine puts random keys%s", p.N, rateCondition(p, sustainedPeak, sustainedShare)),
		"each put is a commit of its own" + syncCondition(p.Sync),
		"each put has an intended start; its latency counts from there, so a put that waits behind a stall counts with its waiting (no coordinated omission)",
		fmt.Sprintf("a pause is a put that takes more than %s by itself, from its real start; what is still due after %.0f s is given up and counted, without a latency", pause, p.Seconds*latencyMost),
		fmt.Sprintf("the disk beside: another goroutine writes 4 KiB over itself with fdatasync (elsewhere fsync) every %s all the while; alone: the same for %.0f s before the engine is opened", probeEvery, p.Seconds*sustainedAlone),
		"at the end every key is read after a reopen (not timed)",
	}
}

func sustainedEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	return rateEstimate(p, e, syncDelay, sustainedAlone+sustainedPeak)
}

func runSustained(rec *Recorder, d engine.Driver, dir string, p Params) error {
	if why, no := d.Info.Cannot[engine.CanSync]; no && p.Sync {
		rec.noneOf(why, sustainedColumns)
		return nil
	}
	disk, err := newDiskProbe(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("measuring the disk: %w", err)
	}
	defer disk.close()
	alone, err := disk.during(func() error { time.Sleep(p.part(sustainedAlone)); return nil })
	if err != nil {
		return err
	}
	m := newMixed(expect(p), rand.New(rand.NewPCG(p.Seed, 18)))
	m.onlyPuts = true
	rec.Begin()
	if m.store, err = d.Open(dir, p.options()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := m.load(rec, m.store, data.Order(m.n, p.Seed, 10)); err != nil {
		return err
	}
	l, err := m.loopAt(rec, p, sustainedPeak, sustainedShare)
	if err != nil {
		return err
	}
	beside, err := disk.during(func() error { return l.run(m.operation) })
	if err != nil {
		return err
	}
	rec.percentiles("put_", l.puts)
	rec.keepCurve("put", l.puts)
	rec.Set("longest", float64(l.longest))
	rec.Set("pauses", float64(l.pauses))
	rec.Set("paused", float64(l.paused))
	rec.Set("disk_longest", float64(beside.longest))
	rec.Set("disk_pauses", float64(beside.pauses))
	rec.Set("disk_alone", float64(alone.longest))
	l.report(rec)
	if err := m.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	rec.End()
	return m.reread(d, dir, p)
}
