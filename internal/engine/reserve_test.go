package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// onSmallDisk returns a durable store on a disk whose capacity can be set, until the test ends.
func onSmallDisk(t *testing.T) (*Engine, *memfs.FS) {
	t.Helper()
	disk := memfs.New()
	disk.StopJournal()
	cfg := indexTestConfig("/db", 256<<20)
	cfg.FS, cfg.Relaxed = disk, false
	e := mustOpen(t, cfg)
	t.Cleanup(func() { disk.SetCapacity(0) })
	return e, disk
}

// waitingLarge returns a store with two memtables of 2 MiB and more, of which the older waits for a
// flush that does not begin, and for which nothing is put aside: a flush has had it. It has learnt
// nothing of how large its next segment should be.
func waitingLarge(t *testing.T) (*Engine, *memfs.FS) {
	t.Helper()
	e, disk := onSmallDisk(t)
	holdFlushes(t, e)
	holdMerges(t, e)
	for i := range 2 {
		if err := commitOne(e, base.KindPut, indexTestKey(i), make([]byte, 2<<20)); err != nil {
			t.Fatal(err)
		}
	}
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.preparing {
		c.cond.Wait()
	}
	if spare := c.spare; spare != nil {
		c.spare = nil
		e.dropSpare(spare)
	}
	c.asked, c.commits, c.shape = true, 1, tree.Shape{} // behind a first commit the keeper makes no spare
	e.reserve.Release()
	return e, disk
}

// prepareFor makes a spare for a commit of need bytes and returns its size.
func prepareFor(e *Engine, need int) (int, error) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := e.prepareSpare(need, 1, false); err != nil {
		return 0, err
	}
	return c.spare.Seg.Capacity(), nil
}

// TestReserveForTheLargest: once a flush had been given what was put aside, as much was put aside again as
// the next segment needed, which may be smaller than one that waits. The flush of that never had space.
func TestReserveForTheLargest(t *testing.T) {
	e, _ := waitingLarge(t)
	size, err := prepareFor(e, 100)
	if err != nil || size >= 2<<20 {
		t.Fatalf("the next segment has %d bytes: %v", size, err)
	}
	if n := e.reserve.Release(); n < reserve.ForFlush(2<<20) {
		t.Errorf("%d bytes were put aside, two memtables of 2 MiB wait", n)
	}
}

// TestLargeCommitsLeaveTheFlushItsSpace: only a small segment is made where nothing can be put aside.
func TestLargeCommitsLeaveTheFlushItsSpace(t *testing.T) {
	e, disk := waitingLarge(t)
	disk.SetCapacity(disk.Used() + 2<<20)
	if size, err := prepareFor(e, 1<<20); !errors.Is(err, base.ErrNoSpace) {
		t.Errorf("a segment of %d bytes was made, %v; the flush needs what is free", size, err)
	}
	if size, err := prepareFor(e, 100); err != nil || size != segments.SmallBytes {
		t.Errorf("a segment of %d bytes was made, %v; not a small one", size, err)
	}
}

// TestDeletesTakeAPart: of what is put aside, once, however many segments are asked for, until a flush has made room.
func TestDeletesTakeAPart(t *testing.T) {
	e, disk := waitingLarge(t)
	if _, err := prepareFor(e, 100); err != nil { // and puts space aside
		t.Fatal(err)
	}
	held := int(reserve.ForFlush(2 << 20))
	disk.SetCapacity(disk.Used())
	e.commit.mu.Lock()
	e.dropSpare(e.commit.spare)
	e.commit.spare = nil
	e.commit.mu.Unlock()
	again := func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		w := &Write{Entries: [][]byte{frame.AppendEntry(nil, base.KindDelete, testBucket, nil)}, Count: 1}
		return e.mayFreeSpace(w, base.ErrNoSpace)
	}
	if !again() {
		t.Error("deletes are not tried again")
	}
	if size, err := prepareFor(e, 100); err != nil || size < held/8 || size > held/4 {
		t.Errorf("deletes got a segment of %d bytes of %d put aside: %v", size, held, err)
	}
	if again() {
		t.Error("deletes are tried again, though what is left is for a flush")
	}
	if size, err := prepareFor(e, segments.SmallBytes+1); !errors.Is(err, base.ErrNoSpace) {
		t.Errorf("another of %d bytes: %v", size, err)
	}
}

// runsOfLevel0 returns a store with three runs of the same keys in level 0, about a megabyte each, which
// are not merged, and a small active memtable, for whose flush far more is put aside than it needs.
func runsOfLevel0(t *testing.T) (*Engine, *memfs.FS) {
	t.Helper()
	e, disk := onSmallDisk(t)
	holdMerges(t, e)
	noise := rand.NewChaCha8([32]byte{})
	value := make([]byte, 40<<10)
	for range 3 {
		for i := range 25 {
			noise.Read(value)
			if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.flushAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.commit.mu.Lock()
	for e.commit.preparing {
		e.commit.cond.Wait()
	}
	e.beginSmall()
	e.commit.mu.Unlock()
	if _, err := e.flushAll(t.Context()); err != nil { // of the segment before the small one
		t.Fatal(err)
	}
	eventually(t, "one log file is left", func() bool {
		e.removeFiles()
		names, _ := disk.List("/db")
		return len(slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })) == 1
	})
	return e, disk
}

// TestMergesGetWhatNoFlushNeeds: where a commit waits for a merge that does not fit what is free, what was put
// aside for larger memtables than there are is given back. It was kept, and puts refused for good, on a disk of
// which somebody else had taken the rest, though nearly everything in the store was deleted.
func TestMergesGetWhatNoFlushNeeds(t *testing.T) {
	e, disk := runsOfLevel0(t)
	before := disk.Used()
	disk.SetCapacity(before + 10<<10)
	e.tight.Add(1)
	defer e.tight.Add(-1)
	job, ok := e.fitting.Pick(e.State().Version, e.merger.Inputs(true), true)
	if given := before - disk.Used(); given < 1<<20 {
		t.Errorf("%d bytes were given back", given)
	}
	if free, _ := e.freeSpace(); !ok || job.Bytes() > free {
		t.Errorf("found a job: %v, of %d bytes; %d are free", ok, job.Bytes(), free)
	}
}

// TestDoomedMergeIsTriedOnce: a merge for which there is no space is tried, since it may write less than it reads,
// and not again before anything has changed: it would fill the disk each time.
func TestDoomedMergeIsTriedOnce(t *testing.T) {
	e, disk := runsOfLevel0(t)
	e.reserve.Release()
	disk.SetCapacity(disk.Used() + 100<<10)
	e.tight.Add(1)
	defer e.tight.Add(-1)
	pick := func() bool {
		job, ok := e.fitting.Pick(e.State().Version, e.merger.Inputs(true), true)
		if free, _ := e.freeSpace(); ok && job.Bytes() <= free {
			t.Fatalf("a job of %d bytes fits", job.Bytes())
		}
		return ok
	}
	if !pick() || pick() || pick() {
		t.Error("it is not tried, or again and again")
	}
	disk.SetCapacity(disk.Used() + 200<<10)
	if !pick() || pick() {
		t.Error("with more space it is not tried, or again and again")
	}
}

// TestPatienceEnds: a large transaction does not wait for ever for merges while there is always something to merge
// which makes no room.
func TestPatienceEnds(t *testing.T) {
	patience = 50 * time.Millisecond
	defer func() { patience = 5 * time.Second }()
	e, disk := runsOfLevel0(t)
	disk.SetCapacity(disk.Used() + 100<<10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.AwaitRoom()
	}()
	for deadline := time.After(time.Minute); ; {
		select {
		case <-done:
			return
		case <-deadline:
			t.Fatal("it waits")
		case <-time.After(time.Millisecond):
			e.noteMerge(true)
		}
	}
}

// meanwhileFS does something when it is asked how much is free.
type meanwhileFS struct {
	vfs.FS
	asked atomic.Int32
	do    atomic.Pointer[func()]
}

func (f *meanwhileFS) FreeSpace(dir string) (int64, error) {
	f.asked.Add(1)
	if do := f.do.Load(); do != nil {
		(*do)()
	}
	return f.FS.(vfs.SpaceTeller).FreeSpace(dir)
}

// TestMergeBesideFlush: that there was nothing to merge is no answer to a commit that waits for room if a memtable
// was flushed meanwhile. It was one, and puts were refused on a disk of which most was about to be free.
func TestMergeBesideFlush(t *testing.T) {
	disk := memfs.New()
	disk.SetCapacity(1 << 30)
	fs, cfg := &meanwhileFS{FS: disk}, indexTestConfig("/db", 256<<20)
	cfg.FS = fs
	e := mustOpen(t, cfg)
	if err := commitOne(e, base.KindPut, indexTestKey(0), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := e.Compact(t.Context(), nil, nil); err != nil { // nothing is left to merge
		t.Fatal(err)
	}
	flush := func() { e.setFlushError(nil) }
	fs.do.Store(&flush)
	tries := func() uint64 {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.mergeTries
	}
	before := tries()
	e.tight.Add(1)
	defer e.tight.Add(-1)
	signal(e.wakeMerge)
	eventually(t, "the compactor looks again and again", func() bool { return fs.asked.Load() > 20 })
	if after := tries(); after != before {
		t.Errorf("%d answers while memtables are flushed", after-before)
	}
	fs.do.Store(nil)
	eventually(t, "there is an answer", func() bool { return tries() > before })
}

// TestRoomIsAboutToBe: a commit that finds no space while what a flush has made useless is about to go waits for that.
func TestRoomIsAboutToBe(t *testing.T) {
	e, disk := onSmallDisk(t)
	if err := commitOne(e, base.KindPut, indexTestKey(0), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	c := &e.commit
	c.mu.Lock()
	for c.preparing {
		c.cond.Wait()
	}
	e.installer.Edited++
	c.mu.Unlock()
	disk.SetCapacity(disk.Used())
	done := make(chan error)
	go func() { done <- commitOne(e, base.KindPut, indexTestKey(1), make([]byte, 4<<20)) }()
	select {
	case err := <-done:
		t.Fatal("it does not wait:", err)
	case <-time.After(50 * time.Millisecond):
	}
	disk.SetCapacity(0)
	c.mu.Lock()
	e.installer.LetGo++
	c.cond.Broadcast()
	c.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
