package crashtest

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/faultfs"
)

// Workload is a scripted use of a store.
type Workload struct {
	Name    string
	Relaxed bool // commits are relaxed unless they say otherwise
	Failing bool // some operations fail on purpose
	// Concurrent: several goroutines commit, so that nobody knows at any moment what
	// the store ought to show.
	Concurrent bool
	Do         func(r *Run)
}

// Workloads are all there are.
var Workloads = []*Workload{
	{Name: "first-open", Do: firstOpen},
	{Name: "single-commits", Do: singleCommits},
	{Name: "group-commit", Concurrent: true, Do: groupCommit},
	{Name: "relaxed", Relaxed: true, Do: relaxedCommits},
	{Name: "mixed-durability", Relaxed: true, Concurrent: true, Do: mixedDurability},
	{Name: "segment-change", Concurrent: true, Do: segmentChange},
	{Name: "segment-change-relaxed", Relaxed: true, Concurrent: true, Do: segmentChange},
	{Name: "flush", Do: flush},
	{Name: "compaction", Do: compaction},
	{Name: "reopen", Do: reopen},
	{Name: "manifest-rotation", Do: manifestRotation},
	{Name: "close", Do: closing},
	{Name: "large-transaction", Do: largeTransaction},
	{Name: "large-relaxed", Relaxed: true, Do: largeTransaction},
	{Name: "range-deletes", Do: rangeDeletes},
	{Name: "failed-write", Failing: true, Do: failedWrite},
	{Name: "failed-write-group", Failing: true, Relaxed: true, Concurrent: true, Do: failedWriteGroup},
	{Name: "no-space", Failing: true, Do: noSpace},
}

func firstOpen(r *Run) {
	r.Open()
	r.Commit(r.Put("a", 10))
	r.Close()
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

func singleCommits(r *Run) {
	r.Open()
	for i := range 30 {
		r.Commit(step(r, i, 100)...)
	}
	r.Close()
}

// together runs f on n goroutines.
func together(n int, f func(g int)) {
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

func groupCommit(r *Run) {
	r.SlowSync()
	r.Open()
	together(5, func(g int) {
		for i := range 8 {
			r.Commit(step(r, g*100+i, 200)...)
		}
	})
	r.Close()
}

func relaxedCommits(r *Run) {
	r.Open()
	for i := range 40 {
		r.Commit(step(r, i, 150)...)
		if i%13 == 12 {
			r.Sync()
		}
	}
	r.Close()
}

func mixedDurability(r *Run) {
	r.SlowSync()
	r.Open()
	together(4, func(g int) {
		for i := range 10 {
			r.CommitAs((i+g)%4 == 0, step(r, g*100+i, 200)...)
		}
	})
	r.Close()
}

func segmentChange(r *Run) {
	r.SlowSync()
	r.Open()
	together(2, func(g int) {
		for i := range 20 {
			r.Commit(step(r, g*100+i, 9000)...)
		}
	})
	r.Close()
}

func flush(r *Run) {
	r.Open()
	for round := range 3 {
		for i := range 5 {
			r.Commit(step(r, round*100+i, 400)...)
		}
		r.Compact("zz", "zzz")
	}
	r.Commit(step(r, 999, 50)...)
	r.Close()
}

func compaction(r *Run) {
	r.Open()
	for round := range 4 {
		for i := range 4 {
			r.Commit(step(r, round*100+i, 300)...)
		}
		r.Compact("zz", "zzz")
	}
	r.Here()
	r.Compact("a", "zz")
	r.Commit(step(r, 500, 50)...)
	r.Compact("a", "zz")
	r.Close()
}

func reopen(r *Run) {
	for round := range 4 {
		r.Open()
		for i := range 3 {
			r.Commit(step(r, round*100+i, 100)...)
		}
		r.Close()
	}
}

// manifestRotation uses keys so long that a few flushes make the manifest, which
// names the bounds of tables, outgrow its first snapshot.
func manifestRotation(r *Run) {
	r.Open()
	for round := range 7 {
		r.Commit(r.Put(longKey(r, "a", round), 10), r.Put(longKey(r, "z", round), 10))
		r.Commit(r.Put("k", 30))
		r.Compact("zz", "zzz")
	}
	r.Commit(r.Put("last", 30))
	r.Close()
}

func longKey(r *Run, first string, round int) string {
	return fmt.Sprintf("%s%d%s", first, round, r.Value(22000))
}

func closing(r *Run) {
	r.Open()
	for i := range 12 {
		r.Commit(step(r, i, 800)...)
	}
	r.Here()
	r.Close()
	r.Open()
	r.Close()
}

func largeTransaction(r *Run) {
	r.Open()
	for round := range 2 {
		for i := range 3 {
			r.Commit(step(r, round*100+i, 200)...)
		}
		ops := []Op{DeleteRange("k/0001", "k/0002")}
		for i := range 40 {
			ops = append(ops, r.Put(fmt.Sprintf("large/%02d", i), 4000))
		}
		r.Commit(ops...)
		r.Commit(step(r, round*100+50, 200)...)
	}
	r.Close()
}

func rangeDeletes(r *Run) {
	r.Open()
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
			r.Compact("zz", "zzz")
		}
	}
	r.Compact("a", "zz")
	r.Close()
}

var errDisk = fmt.Errorf("injected: %w", syscall.EIO)

// expect lets a workload meet errors that match one of targets.
func (r *Run) expect(targets ...error) func() {
	old := r.OnError
	r.OnError = func(call string, err error) {
		for _, t := range targets {
			if errors.Is(err, t) {
				return
			}
		}
		if old != nil {
			old(call, err)
		} else if r.err == nil {
			r.err = fmt.Errorf("%s: %w", call, err)
		}
	}
	return func() { r.OnError = old }
}

// allBytes as the argument of faultfs.Short lets the whole write through: it fails
// and yet is there.
const allBytes = 1 << 30

// failedWrite has a write of the log fail every few commits: nothing of it is
// written, half, or all.
func failedWrite(r *Run) {
	fail := []faultfs.Action{faultfs.Fail(errDisk), faultfs.Short(faultfs.Half, errDisk), faultfs.Short(allBytes, errDisk)}
	r.Open()
	for i := range 18 {
		r.Commit(step(r, i, 300)...)
		if i%3 == 2 {
			r.failNextWrite(fail[i/3%3], step(r, 500+i, 300)...)
		}
	}
	r.Close()
}

func (r *Run) failNextWrite(do faultfs.Action, ops ...Op) {
	defer r.expect(errDisk)()
	rule := r.Faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Do: do})
	r.Commit(ops...)
	rule.Stop()
}

// failedWriteGroup has writes fail while several goroutines commit, some of them
// across the end of a segment.
func failedWriteGroup(r *Run) {
	r.SlowSync()
	r.Open()
	r.Commit(r.Put("first", 10))
	defer r.expect(errDisk)()
	for i, at := range []int64{3, 9, 12, 17, 25} {
		r.Faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", At: at, Do: faultfs.Short([]int{faultfs.Half, allBytes}[i%2], errDisk)})
	}
	together(4, func(g int) {
		for i := range 10 {
			r.CommitAs(i%2 == 0, step(r, g*100+i, 6000)...)
		}
	})
	r.Close()
}

// noSpace fills the disk and frees it again, several times.
func noSpace(r *Run) {
	r.Open()
	r.Commit(step(r, 0, 100)...)
	for round := range 3 {
		func() {
			defer r.expect(base.ErrNoSpace)()
			r.Disk.SetCapacity(r.Disk.Used() + int64(r.Int(8))*4096)
			for i := range 15 {
				r.Commit(step(r, round*100+i, 9000)...)
			}
		}()
		r.Disk.SetCapacity(0)
		r.settle()
		for i := range 3 {
			r.Commit(step(r, round*100+50+i, 300)...)
		}
	}
	r.Close()
}

// settle waits until a commit works again: a flush that failed is tried again
// only after a moment.
func (r *Run) settle() {
	defer r.expect(base.ErrNoSpace)()
	r.Compact("zz", "zzz")
}
