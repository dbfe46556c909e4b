package engine

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tree"
)

// putNoise puts a value that does not compress.
func putNoise(e *Engine, key, size int) error {
	value := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(key), byte(key >> 8)}).Read(value)
	return commitOne(e, base.KindPut, indexTestKey(key), value)
}

// TestPutsNeedSpaceAside, whatever has taken what was: a flush that found none, or deletes, to which it was lent. Deletes go on without.
func TestPutsNeedSpaceAside(t *testing.T) {
	e, disk := onSmallDisk(t)
	holdMerges(t, e)
	held := func() bool { return e.reserve.Holds(e.State().LargestMemory()) }
	for i := range 100 {
		if err := putNoise(e, i, 4000); err != nil {
			t.Fatal(err)
		}
	}
	if !held() || e.reserve.Release() == 0 || held() {
		t.Fatal("nothing was put aside, or it cannot be taken away")
	}
	if err := putNoise(e, 1, 4000); err != nil || !held() {
		t.Errorf("a put: %v, with space put aside: %v", err, held())
	}
	e.reserve.Release()
	e.removeFiles()
	disk.SetCapacity(disk.Used())
	for i := range 3 {
		if err := putNoise(e, i, 400); !errors.Is(err, base.ErrNoSpace) {
			t.Errorf("a put for whose flush there is no space: %v", err)
		}
		if err := commitOne(e, base.KindDelete, indexTestKey(i), nil); err != nil {
			t.Errorf("a delete: %v", err)
		}
	}
	disk.SetCapacity(0)
	if err := putNoise(e, 1, 400); err != nil || !held() {
		t.Errorf("a put where there is space again: %v, with space put aside: %v", err, held())
	}
}

// TestFlushPutsSpaceAsideAgain: a flush that was given what was put aside has freed a log segment when it is done. So it is
// put aside again at once, before somebody else comes, and not by the next commit only.
func TestFlushPutsSpaceAsideAgain(t *testing.T) {
	e, disk := onSmallDisk(t)
	release := holdFlushes(t, e)
	for i := 0; len(e.State().Layers) < 3; i++ {
		if err := putNoise(e, i, 4000); err != nil {
			t.Fatal(err)
		}
	}
	c := &e.commit
	c.mu.Lock()
	for c.preparing {
		c.cond.Wait()
	}
	c.preparing = true // the store does not come to rest
	c.mu.Unlock()
	t.Cleanup(e.prepared)
	disk.SetCapacity(disk.Used() + 20_000)
	release()
	flushAtOnce(e)
	eventually(t, "flushed", func() bool { return len(e.State().Layers) == 1 })
	if e.Stats().BackgroundError == nil {
		t.Fatal("the flush found space of its own")
	}
	eventually(t, "space put aside", func() bool { return e.reserve.Holds(e.State().LargestMemory()) })
}

// TestLargeSegmentsHaveSpaceAside, also of a store that holds little: one half as large may have it where a large one has not.
func TestLargeSegmentsHaveSpaceAside(t *testing.T) {
	e, disk := onSmallDisk(t)
	c := &e.commit
	c.mu.Lock()
	for c.preparing {
		c.cond.Wait()
	}
	if c.spare != nil {
		e.dropSpare(c.spare)
		c.spare = nil
	}
	for range 6 {
		c.shape.Note(nil, e.cfg.SegmentLimit())
	}
	c.mu.Unlock()
	disk.SetCapacity(disk.Used() + 8<<20)
	if size, err := prepareFor(e, 100); err != nil || size <= tree.RelaxedSegment || size > 4<<20 || !e.reserve.Holds(int64(size)) {
		t.Errorf("a segment of %d bytes, %v, with space put aside: %v", size, err, e.reserve.Holds(int64(size)))
	}
}

// TestRestKeepsSpaceAside: a flush that had what was put aside may leave no memtable, for which space would be put aside
// again; a store at rest has nothing else that a full disk could heal with. One to which nothing was written needs none.
func TestRestKeepsSpaceAside(t *testing.T) {
	e, disk := onSmallDisk(t)
	for i := range 100 {
		if err := putNoise(e, i, 4000); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "at rest", func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return len(e.State().Layers) == 0 && e.commit.spare == nil && !e.commit.preparing
	})
	e.reserve.Release()
	e.tidy(false)
	if !e.reserve.Holds(segments.SmallBytes) {
		t.Error("nothing is put aside")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := indexTestConfig("/db", 256<<20)
	cfg.FS = disk
	e = mustOpen(t, cfg)
	e.tidy(false)
	if e.reserve.Holds(1) {
		t.Error("space is put aside for a store that is only read")
	}
}
