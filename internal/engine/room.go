package engine

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/vfs"
)

// What is committed takes space that merges need, and only merges give space back of what nobody sees
// any more. So where it is known how much is free, no segment is begun unless level 0, with what memtables
// will add to it, could be joined in what is free then: merging goes on, piece by piece, however full the
// disk is. Commits wait until it has made room; if it cannot, they get ErrNoSpace, but for those that only
// delete.

// lacksRoom reports whether the next segment, whose first commit takes need bytes, would take space that
// merges need. commit.mu is held.
func (e *Engine) lacksRoom(need int) bool {
	rs := e.State()
	if len(rs.Version.L0) < 2 {
		return false
	}
	next, _ := e.commit.shape.Next(need, 0, e.cfg.SegmentLimit())
	free, known := e.freeSpace()
	return known && free < rs.Version.Bytes(0)+rs.LogBytes()+2*int64(next)
}

// patience is after what time a commit does not wait for another merge: while others delete there is always
// something to merge, which need not make room.
var patience = 5 * time.Second

// awaitMerge waits until a compaction has merged something, adds how long that took, and returns why none
// could, or not enough for a segment for need bytes. commit.mu is held; it is let go of.
func (e *Engine) awaitMerge(need int, waited *time.Duration) error {
	c, start := &e.commit, time.Now()
	e.stalled.Add(1)
	e.tight.Add(1)
	if m := c.mem; m != nil && m.Len() > 0 && (m.Seg.Capacity() > segments.SmallBytes || len(e.State().Version.L0) < manyRuns) {
		e.beginSmall()
	}
	tried, flushes := e.mergeTries, e.flushTries
	c.sealed.Signal()
	signal(e.wakeMerge)
	for e.mergeTries == tried && e.refuse() == nil && (e.flushErr == nil || e.flushTries < flushes+2) { // to the second the space put aside is given
		c.cond.Wait()
	}
	e.tight.Add(-1)
	e.stalled.Add(-1)
	*waited += time.Since(start)
	e.events.StallNanos.Add(int64(time.Since(start)))
	switch {
	case e.mergeTries == tried:
		return reserve.SpaceError(e.flushErr)
	case (!e.merged || *waited > patience) && e.lacksRoom(need): // what was merging when this was called may have made some
		return fmt.Errorf("%w: what is left is for merging, which makes no room", base.ErrNoSpace)
	}
	return nil
}

// manyRuns: where level 0 has so many a small memtable is not sealed for whoever waits for room; each would
// be another one.
const manyRuns = 16

// beginSmall seals the active memtable, so that what it deletes, or writes again, makes room. The segment
// behind it is small: for deletes, which need no space of the flush's then. commit.mu is held; it is let
// go of meanwhile.
func (e *Engine) beginSmall() {
	c := &e.commit
	if c.preparing {
		return
	}
	mem, spare := c.mem, c.spare
	c.preparing, c.spare = true, nil
	plan := segments.Plan{Relaxed: c.shape.MostRelaxed(), Size: segments.SmallBytes, Records: segments.SmallBytes/16 + 64}
	c.mu.Unlock()
	if spare != nil {
		e.dropSpare(spare)
	}
	m, err := e.segments.Make(plan)
	c.mu.Lock()
	c.preparing, c.spare = false, m
	c.cond.Broadcast()
	if err == nil && c.mem == mem && !c.broken && e.refuse() == nil {
		e.rotate(c.lastEnd())
	}
}

// AwaitRoom waits, before a large transaction writes its first table, until there is the room on the disk
// that merges need, or as much of it as they can make: with its tables there would be less.
func (e *Engine) AwaitRoom() {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for waited := time.Duration(0); e.refuse() == nil && e.flushErr == nil && e.lacksRoom(0); {
		if e.awaitMerge(0, &waited) != nil {
			return
		}
	}
}

// flushesEnded returns how many flushes have ended, and whether there is nothing to flush, nor will be soon.
func (e *Engine) flushesEnded() (tries uint64, all bool) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.flushTries, !c.flushing && !c.preparing && e.oldestSealed() == nil && e.installer.Edited == e.installer.LetGo
}

// mergeAwaited is compactOnce where commits wait for it. They learn how it went: whether something was merged.
// That nothing was means nothing if meanwhile a memtable was flushed, whose table there may be something to merge
// with: then it is to be called again.
func (e *Engine) mergeAwaited(thorough bool) (bool, error) {
	before, idle := e.flushesEnded()
	did, err := e.compactOnce(true, thorough)
	merged := did && err == nil
	e.removeFiles() // also of what was merged, or flushed, before: the room it makes counts
	if after, still := e.flushesEnded(); merged || idle && still && after == before {
		e.noteMerge(merged)
	}
	return did, err
}

// noteMerge tells commits that wait for one how a compaction went.
func (e *Engine) noteMerge(merged bool) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	e.mergeTries++
	e.merged = merged
	c.cond.Broadcast()
}

// shrinkReserve gives back what was put aside and no memtable needs that there is, the spare included.
func (e *Engine) shrinkReserve() {
	c := &e.commit
	c.mu.Lock()
	if c.preparing {
		c.mu.Unlock()
		return
	}
	c.preparing = true // a commit that needs a segment, and space put aside for it, waits
	needed := max(e.State().LargestMemory(), segments.SmallBytes)
	if c.spare != nil {
		needed = max(needed, int64(c.spare.Seg.Capacity()))
	}
	c.mu.Unlock()
	e.reserve.Shrink(reserve.ForFlush(needed))
	e.prepared()
}

// freeSpace returns how many bytes the disk has left, and whether that is known.
func (e *Engine) freeSpace() (bytes int64, known bool) { return vfs.FreeSpace(e.cfg.FS, e.cfg.Dir) }
