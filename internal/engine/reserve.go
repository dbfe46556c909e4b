package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// So that a full disk can heal, space is put aside for the flush of one memtable, the largest there
// is. That frees its log segment, in whose space the next one can be flushed, and so on: a store
// that was filled gets room by itself, if there is anything to delete. So that this
// holds, no segment is made unless the space is put aside, but for a small one behind a
// larger one and a part of what was put aside for deletes.

// reserveSlack is what the table may be larger than the segment it was made of.
const reserveSlack = 256 << 10

// smallSegmentBytes is the size of a segment where there is no space for another: it
// seals the one before, so that it can be flushed.
const smallSegmentBytes = 64 << 10

// withReserve makes a segment of the given size, with space put aside for its flush, and that of
// the largest there is, once the store holds more than a little. That space cannot be given to a flush
// until the segment is there: it would take it. No lock is held.
func (e *Engine) withReserve(size int, largest int64, create func() error) error {
	little := e.counters.CommittedBytes.Load()+e.State().TableBytes() <= tree.LittleBytes
	if given := e.forDeletes.Swap(0); little || int64(size) <= given {
		return create()
	}
	held := false
	err := e.reserve.Hold(max(int64(size), largest)*5/4+reserveSlack, func() error {
		held = true
		e.reserveGiven.Store(false)
		return create()
	})
	if held || vfs.IsNoSpace(err) {
		return err
	}
	return create() // other errors: then there is none
}

// diskFull reports whether the last attempt to flush found no space. commit.mu is held.
func (e *Engine) diskFull() bool {
	return reserve.IsFull(e.flushErr)
}

func (e *Engine) waitsForSpace() bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.diskFull()
}

// releaseToFlush gives the space that was put aside to the flush that found none, and reports whether there
// was any: when the merge that is under way, which could take it, has ended. The next one waits.
func (e *Engine) releaseToFlush() bool {
	e.merging.Lock()
	defer e.merging.Unlock()
	return e.reserve.Release() > 0
}

// removeFiles removes at once what would be removed sooner or later.
func (e *Engine) removeFiles() {
	e.ledger.MarkIfWaiting()
	e.Epochs.Collect()
	e.buffers.AwaitUnmapped()
	e.logs.Remove(e.cfg.FS.Remove, e.ledger.TakeObsolete())
	e.logs.Clear(e.cfg.FS.Remove)
}

// admit reports whether w may be committed while the disk is full: only what deletes
// may, since space that was put aside is for the flush. Others wait for the next
// attempt to flush. commit.mu is held; it may be let go of.
func (e *Engine) admit(w *Write) error {
	if !e.diskFull() || frame.OnlyDeletes(w.Entries) {
		return nil
	}
	return e.stall()
}

// mayFreeSpace reports whether a commit that found the disk full should be tried
// again: if it only deletes, it gets a fifth of the space that was put aside, or a little where that was
// given to a flush: once, until it is put aside again. commit.mu is held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !frame.OnlyDeletes(w.Entries) {
		return false
	}
	if e.reserveGiven.Swap(true) {
		return false
	}
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	e.forDeletes.Store(max(e.reserve.Release()/5&^4095, smallSegmentBytes))
	return true
}

// What is committed takes space that merges need, and only merges give space back of what nobody sees
// any more. So where it is known how much is free, no segment is begun unless level 0, with what memtables
// will add to it, could be joined in what is free then: merging goes on, piece by piece, however full the
// disk is. Commits wait until it has made room; if it cannot, they get ErrNoSpace, but for those that only
// delete.

// lacksRoom reports whether the next segment would take space that merges need. commit.mu is held.
func (e *Engine) lacksRoom() bool {
	rs := e.State()
	if len(rs.Version.L0) < 2 {
		return false
	}
	next, _ := e.commit.shape.Next(0, 0, e.cfg.SegmentLimit())
	free, known := e.freeSpace()
	return known && free < rs.Version.Bytes(0)+rs.LogBytes()+2*int64(next)
}

// patience is after what time a commit does not wait for another merge: while others delete there is always
// something to merge, which need not make room.
var patience = 5 * time.Second

// awaitMerge waits until a compaction has merged something, adds how long that took, and returns why none
// could, or not enough. commit.mu is held; it is let go of.
func (e *Engine) awaitMerge(waited *time.Duration) error {
	c, start := &e.commit, time.Now()
	e.stalled.Add(1)
	e.tight.Add(1)
	tried, flushes := e.mergeTries, e.flushTries
	if m := c.mem; m != nil && m.Len() > 0 && (m.Seg.Capacity() > smallSegmentBytes || len(e.State().Version.L0) < manyRuns) {
		e.beginSmall()
	}
	c.sealed.Signal()
	signal(e.wakeMerge)
	for e.mergeTries == tried && e.refuse() == nil && (e.flushErr == nil || e.flushTries < flushes+2) { // to the second the space put aside is given
		c.cond.Wait()
	}
	e.tight.Add(-1)
	e.stalled.Add(-1)
	*waited += time.Since(start)
	e.counters.StallNanos.Add(int64(time.Since(start)))
	switch {
	case e.mergeTries == tried:
		return reserve.SpaceError(e.flushErr)
	case (!e.merged || *waited > patience) && e.lacksRoom(): // what was merging when this was called may have made some
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
	plan := segments.Plan{Relaxed: c.shape.MostRelaxed(), Size: smallSegmentBytes, Records: smallSegmentBytes/16 + 64}
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
	for waited := time.Duration(0); e.refuse() == nil && e.flushErr == nil && e.lacksRoom(); {
		if e.awaitMerge(&waited) != nil {
			return
		}
	}
}

// noteMerge tells commits that wait for it how a compaction went: whether something was merged.
func (e *Engine) noteMerge(did bool) {
	if did {
		e.removeFiles()
	}
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if did || !c.flushing && e.oldestSealed() == nil { // else there is more to merge soon
		e.mergeTries++
		e.merged = did
		c.cond.Broadcast()
	}
}

// pick picks a compaction: where there is not space for it, or a commit waits and there is none, one for
// which there is; what was put aside and no flush needs is space too. What found none is not tried again
// until tables have changed, or there is more. merging is held.
func (e *Engine) pick(v *manifest.Version, in compact.Inputs) (compact.Job, bool) {
	job, ok := compact.Pick(v, in)
	if ok && job.Move || !ok && e.tight.Load() == 0 {
		return job, ok
	}
	free, known := e.freeSpace()
	if !known || ok && job.Bytes() <= free {
		return job, ok
	}
	for range 2 {
		in.Room = max(free, 1)
		if fitting, some := compact.Pick(v, in); some {
			return fitting, true
		}
		e.shrinkReserve()
		free, _ = e.freeSpace()
	}
	if ok = ok && (e.doomed.of != v || free > e.doomed.free); ok { // it may write less than its inputs tell
		e.doomed.of, e.doomed.free = v, free
	}
	return job, ok
}

// shrinkReserve gives back what was put aside and no memtable needs that there is.
func (e *Engine) shrinkReserve() {
	c := &e.commit
	c.mu.Lock()
	if c.preparing || c.spare != nil {
		c.mu.Unlock()
		return
	}
	c.preparing = true // a commit that needs a segment, and space put aside for it, waits
	needed := max(e.State().LargestMemory(), smallSegmentBytes)
	c.mu.Unlock()
	e.reserve.Shrink(needed*5/4 + reserveSlack)
	e.prepared()
}

// freeSpace returns how many bytes the disk has left, and whether that is known.
func (e *Engine) freeSpace() (bytes int64, known bool) { return vfs.FreeSpace(e.cfg.FS, e.cfg.Dir) }
