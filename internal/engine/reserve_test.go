package engine

import (
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs/memfs"
)

// waitingLarge returns a store with two memtables of 2 MiB and more, of which the older waits for a
// flush that does not begin, and for which nothing is put aside: a flush has had it. It has learnt
// nothing of how large its next segment should be.
func waitingLarge(t *testing.T) (*Engine, *memfs.FS) {
	t.Helper()
	cfg, _ := onFaults()
	disk := memfs.New()
	disk.StopJournal()
	cfg.FS, cfg.Relaxed = disk, false
	e := mustOpen(t, cfg)
	t.Cleanup(func() { disk.SetCapacity(0) })
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
	c.asked, c.shape = true, tree.Shape{}
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
	if n := e.reserve.Release(); n < (2<<20)*5/4+reserveSlack {
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
	if size, err := prepareFor(e, 100); err != nil || size != smallSegmentBytes {
		t.Errorf("a segment of %d bytes was made, %v; not a small one", size, err)
	}
}

// TestDeletesTakeAPart: of what is put aside, once, however many segments are asked for.
func TestDeletesTakeAPart(t *testing.T) {
	e, disk := waitingLarge(t)
	if _, err := prepareFor(e, 100); err != nil { // and puts space aside
		t.Fatal(err)
	}
	const held = (2<<20)*5/4 + reserveSlack
	disk.SetCapacity(disk.Used())
	e.commit.mu.Lock()
	e.dropSpare(e.commit.spare)
	e.commit.spare = nil
	for want := true; ; want = false { // the second time it has been given
		w := &Write{Entries: [][]byte{frame.AppendEntry(nil, base.KindDelete, testBucket, nil)}, Count: 1}
		if got := e.mayFreeSpace(w, base.ErrNoSpace); got != want {
			t.Fatalf("deletes are tried again: %v", got)
		}
		if !want {
			break
		}
	}
	e.commit.mu.Unlock()
	if size, err := prepareFor(e, 100); err != nil || size < held/8 || size > held/4 {
		t.Errorf("deletes got a segment of %d bytes of %d put aside: %v", size, held, err)
	}
	if size, err := prepareFor(e, smallSegmentBytes+1); !errors.Is(err, base.ErrNoSpace) {
		t.Errorf("another of %d bytes: %v", size, err)
	}
}
