package crashtest

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/faultfs"
)

// Workload is a scripted use of a store.
type Workload struct {
	Name    string
	Relaxed bool // commits are relaxed unless they say otherwise
	Mapped  bool // log segments of relaxed commits are mapped
	Failing bool // some operations fail on purpose
	// Concurrent: several goroutines commit, so that nobody knows at any moment what
	// the store ought to show.
	Concurrent bool
	Do         func(r *Run)
}

// Workloads are all there are.
var Workloads = []*Workload{
	{Name: "first-open", Do: opened(firstOpen)},
	{Name: "single-commits", Do: opened(singleCommits)},
	{Name: "group-commit", Concurrent: true, Do: gathering(groupCommit)},
	{Name: "relaxed", Relaxed: true, Do: opened(relaxedCommits)},
	{Name: "mixed-durability", Relaxed: true, Concurrent: true, Do: gathering(mixedDurability)},
	{Name: "segment-change", Concurrent: true, Do: gathering(segmentChange)},
	{Name: "long-frames", Concurrent: true, Do: gathering(longFrames)},
	{Name: "long-frames-mapped", Mapped: true, Concurrent: true, Do: gathering(longFrames)},
	{Name: "long-commits-mapped", Mapped: true, Do: opened(longCommits)},
	{Name: "segment-change-relaxed", Relaxed: true, Concurrent: true, Do: gathering(segmentChange)},
	{Name: "flush", Do: opened(flush)},
	{Name: "compaction", Do: opened(compaction)},
	{Name: "rest", Do: opened(rest)},
	{Name: "rest-relaxed", Relaxed: true, Do: opened(rest)},
	{Name: "scanned", Do: opened(scanned)},
	{Name: "scanned-relaxed", Relaxed: true, Do: opened(scanned)},
	{Name: "reopen", Do: reopen},
	{Name: "manifest-rotation", Do: opened(manifestRotation)},
	{Name: "close", Do: closing},
	{Name: "large-transaction", Do: opened(largeTransaction)},
	{Name: "large-relaxed", Relaxed: true, Do: opened(largeTransaction)},
	{Name: "range-deletes", Do: opened(rangeDeletes)},
	{Name: "relaxed-mapped", Relaxed: true, Mapped: true, Do: opened(relaxedCommits)},
	{Name: "mixed-durability-mapped", Relaxed: true, Mapped: true, Concurrent: true, Do: gathering(mixedDurability)},
	{Name: "segment-change-mapped", Relaxed: true, Mapped: true, Concurrent: true, Do: gathering(segmentChange)},
	{Name: "provisional-mapped", Relaxed: true, Mapped: true, Do: opened(provisional)},
	{Name: "rest-mapped", Relaxed: true, Mapped: true, Do: opened(rest)},
	{Name: "rest-mixed-mapped", Relaxed: true, Mapped: true, Do: opened(restMixed)},
	{Name: "scanned-mapped", Relaxed: true, Mapped: true, Do: opened(scanned)},
	{Name: "large-mapped", Relaxed: true, Mapped: true, Do: opened(largeTransaction)},
	{Name: "anything", Do: anything},
	{Name: "anything-mapped", Relaxed: true, Mapped: true, Do: anything},
	{Name: "failed-write", Failing: true, Do: opened(failedWrite)},
	{Name: "failed-write-group", Failing: true, Relaxed: true, Concurrent: true, Do: gathering(failedWriteGroup)},
	{Name: "no-space", Failing: true, Do: opened(noSpace)},
}

// opened puts a script between the opening and the closing of the store.
func opened(script func(r *Run)) func(r *Run) {
	return func(r *Run) {
		r.Open()
		script(r)
		r.Close()
	}
}

// gathering is opened for a script whose commits are to gather behind syncs.
func gathering(script func(r *Run)) func(r *Run) {
	return func(r *Run) {
		r.SlowSync()
		opened(script)(r)
	}
}

// step makes the i-th commit of a simple workload: puts, an overwrite, now and
// then a delete.
func step(r *Run, i, size int) []Op {
	ops := []Op{r.Put(fmt.Sprintf("k/%04d/a", i), 1+r.Int(size)), r.Put(fmt.Sprintf("hot/%d", i%3), 1+r.Int(size))}
	if i%4 == 3 {
		ops = append(ops, Delete(fmt.Sprintf("k/%04d/a", r.Int(i))), Delete("absent"))
	}
	return ops
}

// steps commits n steps, one by one.
func steps(r *Run, first, n, size int) {
	for i := range n {
		r.Commit(step(r, first+i, size)...)
	}
}

// together commits n steps on each of several goroutines, each with keys of its
// own; durable decides about the i-th of goroutine g.
func together(r *Run, goroutines, n, size int, durable func(g, i int) bool) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range n {
				r.CommitAs(durable(g, i), step(r, g*100+i, size)...)
			}
		})
	}
	wg.Wait()
}

// asUsual is together's durable for commits as durable as those of steps.
func (r *Run) asUsual(g, i int) bool { return !r.relaxed }

// flush only flushes: no workload has keys in the range that it has merged.
func (r *Run) flush() { r.Compact("zz", "zzz") }

func firstOpen(r *Run) { r.Commit(r.Put("a", 10)) }

func singleCommits(r *Run) { steps(r, 0, 30, 100) }

func groupCommit(r *Run) { together(r, 5, 8, 200, r.asUsual) }

func relaxedCommits(r *Run) {
	for round := range 3 {
		steps(r, round*13, 13, 150)
		r.Sync()
	}
	steps(r, 39, 1, 150)
}

func mixedDurability(r *Run) {
	together(r, 4, 10, 200, func(g, i int) bool { return (i+g)%4 == 0 })
}

func segmentChange(r *Run) { together(r, 2, 20, 9000, r.asUsual) }

// longCommits has synced commits so long that their log is mapped, and then short ones, across the ends of segments,
// a flush and a merge.
func longCommits(r *Run) {
	for round := range 3 {
		for i := range 5 {
			r.Commit(r.Put(fmt.Sprintf("long/%d", i), 9000+r.Int(20000)), r.Put(fmt.Sprintf("k/%d", i), 20))
		}
		for i := range 10 {
			r.Commit(r.Put(fmt.Sprintf("k/%d/%d", round, i), 300), Delete(fmt.Sprintf("k/%d", i)))
		}
		if round == 1 {
			r.flush()
		}
	}
}

// longFrames has frames that go ahead, beside short ones, some of them across the end of a segment.
func longFrames(r *Run) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 8 {
			r.CommitAs(i%3 != 1, r.Put(fmt.Sprintf("long/%d", i%3), 12000+r.Int(16000)), r.Put(fmt.Sprintf("k/%d", i), 20))
		}
	})
	wg.Go(func() {
		for i := range 16 {
			r.CommitAs(i%4 != 0, step(r, i, 900)...)
		}
	})
	wg.Wait()
}

// provisional has segments change, and be synced at different times after that.
func provisional(r *Run) {
	for i := range 30 {
		switch steps(r, i, 1, 9000); i % 4 {
		case 1:
			r.CommitAs(true, step(r, 100+i, 50)...)
		case 3:
			r.Sync()
		}
	}
}

func flush(r *Run) {
	for round := range 3 {
		steps(r, round*100, 5, 400)
		r.flush()
	}
	steps(r, 999, 1, 50)
}

func compaction(r *Run) {
	for round := range 4 {
		steps(r, round*100, 4, 300)
		r.flush()
	}
	r.Here()
	r.Compact("a", "zz")
	steps(r, 500, 1, 50)
	r.Compact("a", "zz")
}

func rest(r *Run) {
	for round := range 2 {
		steps(r, round*100, 5, 9000) // in one segment, mostly: then the store rests at once
		r.Rest()
		steps(r, round*100+50, 1, 50)
	}
}

// restMixed has the store rest behind relaxed commits and more durable ones: the segment that was made for the former is not
// needed any more, and the next one is made for the latter.
func restMixed(r *Run) {
	for round := range 3 {
		steps(r, round*100, 5, 9000)
		time.Sleep(5 * time.Millisecond) // for the next segment
		for i := range 12 {
			r.CommitAs(true, step(r, round*100+10+i, 50)...)
		}
		r.Rest()
		r.CommitAs(true, step(r, round*100+50, 50)...)
	}
}

// scanned has memtables and a table merged because they are scanned, while there are
// commits: so often that the store does not rest.
func scanned(r *Run) {
	for round := range 2 {
		steps(r, round*100, 3, 2000)
		r.flush()
		steps(r, round*100+10, 8, 6000)
		merged := r.LogBytes() / 2
		r.WhileScanned(func() {
			for i := 0; i < 40 && r.LogBytes() > merged; i++ {
				time.Sleep(4 * time.Millisecond)
				if !r.Commit(step(r, round*100+50+i, 50)...) {
					break
				}
			}
		})
	}
}

func reopen(r *Run) {
	for round := range 4 {
		r.Open()
		steps(r, round*100, 3, 100)
		r.Close()
	}
}

// manifestRotation uses keys so long that a few flushes make the manifest, which
// names the bounds of tables, outgrow its first snapshot.
func manifestRotation(r *Run) {
	for round := range 7 {
		r.Commit(r.Put(longKey(r, "a", round), 10), r.Put(longKey(r, "z", round), 10))
		r.Commit(r.Put("k", 30))
		r.flush()
	}
	r.Commit(r.Put("last", 30))
}

func longKey(r *Run, first string, round int) string {
	return fmt.Sprintf("%s%d%s", first, round, r.Value(22000))
}

// anything does what the others do in an order that the seed has drawn.
func anything(r *Run) {
	r.Open()
	for i := 0; i < 200; i += 10 {
		switch r.Int(12) {
		case 0, 1:
			r.Rest()
		case 2:
			r.flush()
		case 3:
			r.Compact("a", "zz")
		case 4:
			r.Close()
			r.Open()
		case 5:
			r.Sync()
		case 6:
			r.Commit(largeSet(r)...)
		case 7:
			r.CommitAs(r.Int(2) == 0, DeleteRange(fmt.Sprintf("k/%04d", r.Int(i+1)), fmt.Sprintf("k/%04d", r.Int(200))))
		default:
			durable, size := r.Int(2) == 0, []int{50, 9000}[r.Int(2)]
			for j := range 1 + r.Int(20) {
				r.CommitAs(durable, step(r, i+j, size)...)
			}
			if r.Int(2) == 0 {
				time.Sleep(2 * time.Millisecond) // for the next segment
			}
		}
	}
	r.Close()
}

func closing(r *Run) {
	r.Open()
	steps(r, 0, 12, 800)
	r.Here()
	r.Close()
	r.Open()
	r.Close()
}

func largeTransaction(r *Run) {
	for round := range 2 {
		steps(r, round*100, 3, 200)
		r.Commit(largeSet(r)...)
		steps(r, round*100+50, 1, 200)
	}
}

// largeSet returns what makes a large transaction.
func largeSet(r *Run) []Op {
	ops := []Op{DeleteRange("k/0001", "k/0002")}
	for i := range 40 {
		ops = append(ops, r.Put(fmt.Sprintf("large/%02d", i), 4000))
	}
	return ops
}

func rangeDeletes(r *Run) {
	for i := range 24 {
		ops := step(r, i, 200)
		if i%3 == 2 {
			low := r.Int(i)
			ops = append(ops, DeleteRange(fmt.Sprintf("k/%04d", low), fmt.Sprintf("k/%04d", low+1+r.Int(6))))
		}
		if i%5 == 4 {
			ops = append([]Op{DeleteRange("hot/", "hot/9")}, ops...)
		}
		r.Commit(ops...)
		if i%8 == 7 {
			r.flush()
		}
	}
	r.Compact("a", "zz")
}

var errDisk = fmt.Errorf("injected: %w", syscall.EIO)

// expecting does script, which may meet errors that match target.
func (r *Run) expecting(target error, script func()) {
	old := r.OnError
	defer func() { r.OnError = old }()
	r.OnError = func(call string, err error) {
		switch {
		case errors.Is(err, target):
		case old != nil:
			old(call, err)
		case r.err == nil:
			r.err = fmt.Errorf("%s: %w", call, err)
		}
	}
	script()
}

// allBytes as the argument of faultfs.Short lets the whole write through: it fails
// and yet is there.
const allBytes = 1 << 30

// failWrite makes the at-th write of the log from now on fail; 0: the next one.
func (r *Run) failWrite(at int64, do faultfs.Action) *faultfs.Handle {
	return r.Faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", At: at, Do: do})
}

// failedWrite has a write of the log fail every few commits: nothing of it is
// written, half, or all.
func failedWrite(r *Run) {
	fail := []faultfs.Action{faultfs.Fail(errDisk), faultfs.Short(faultfs.Half, errDisk), faultfs.Short(allBytes, errDisk)}
	for round := range 6 {
		steps(r, round*3, 3, 300)
		r.expecting(errDisk, func() {
			ops := step(r, 502+round*3, 300)
			rule := r.failWrite(0, fail[round%3])
			r.Commit(ops...)
			rule.Stop()
		})
	}
}

// failedWriteGroup has writes fail while several goroutines commit, some of them
// across the end of a segment.
func failedWriteGroup(r *Run) {
	r.Commit(r.Put("first", 10))
	for i, at := range []int64{3, 9, 12, 17, 25} {
		r.failWrite(at, faultfs.Short([]int{faultfs.Half, allBytes}[i%2], errDisk))
	}
	r.expecting(errDisk, func() {
		together(r, 4, 10, 6000, func(g, i int) bool { return i%2 == 0 })
		r.Close() // it writes too
	})
}

// noSpace fills the disk and frees it again, several times.
func noSpace(r *Run) {
	steps(r, 0, 1, 100)
	for round := range 3 {
		r.expecting(base.ErrNoSpace, func() {
			r.Disk.SetCapacity(r.Disk.Used() + int64(r.Int(8))*4096)
			steps(r, round*100, 15, 9000)
			r.Disk.SetCapacity(0)
			r.flush() // one that failed is tried again only after a moment, and until then commits may fail
		})
		steps(r, round*100+50, 3, 300)
	}
}
