package engine

import (
	"cmp"
	"errors"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tree"
)

// What a store does when the disk is full, and with the space that is put aside for that (package reserve).

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

// holdsLittle reports whether the store, with so many bytes more, holds so little that no space is put aside for it.
func (e *Engine) holdsLittle(more int64) bool {
	return e.events.CommittedBytes.Load()+more+e.State().TableBytes() <= tree.LittleBytes
}

// secured reports whether space is put aside for the flush of the active memtable, to which w is about to be added, or
// none is needed, and puts it aside if not: then look again. What only deletes goes on without. commit.mu is held; it may be let
// go of.
func (e *Engine) secured(w *Write) (bool, error) {
	if e.covered(0, int64(w.Bytes)) || w.fewDeletes() && (e.diskFull() || e.bare()) {
		return true, nil
	}
	ok, err := e.secure(0, int64(w.Bytes))
	if err != nil && w.fewDeletes() {
		err = nil
	}
	return ok, err
}

// covered reports whether space is put aside for the flush of the largest memtable, or that of a segment of so many bytes
// behind it, or none is needed, with so many bytes more. commit.mu is held.
func (e *Engine) covered(segment, more int64) bool {
	return e.reserve.Holds(max(e.State().LargestMemory(), segment)) || e.holdsLittle(more)
}

// bare reports whether space could not be put aside, and nothing was let go of since. commit.mu is held.
func (e *Engine) bare() bool { return e.commit.triedAt == e.installer.LetGo+1 }

// secure is secured where so many bytes more come to the active memtable, or to one of a segment of so many bytes.
func (e *Engine) secure(segment, more int64) (bool, error) {
	c := &e.commit
	switch {
	case e.covered(segment, more):
		return true, nil
	case e.diskFull(): // the flush has it
		return false, e.stall()
	case c.preparing: // which may put it aside, or take it
		c.cond.Wait()
		return false, nil
	}
	largest := max(e.State().LargestMemory(), segment)
	c.preparing = true
	c.mu.Unlock()
	err := e.putAside(largest)
	c.mu.Lock()
	c.preparing = false
	c.cond.Broadcast()
	if err == nil {
		return false, nil
	}
	c.triedAt = e.installer.LetGo + 1
	if !reserve.IsFull(err) {
		return false, err
	}
	// Once it rests, its next segment is one for whose flush there is space.
	e.spaceShort.Store(true)
	if e.flushErr == nil && e.oldestSealed() != nil { // a flush may have it, and gives it back
		return false, e.awaitFlush()
	}
	return false, reserve.SpaceError(err)
}

// putAside puts space aside for the flush of the largest memtable, of so many bytes, where that was not done, or what was
// has gone. No lock is held.
func (e *Engine) putAside(largest int64) error {
	err := e.reserve.ForMade(largest)
	if reserve.IsFull(err) {
		e.removeFiles()
		err = e.reserve.ForMade(largest)
	}
	return err
}

// putAsideAgain puts space aside after a flush that was given what was: it has freed more than it took. If not, the next commit
// is told. Not while Close flushes, which may need it.
func (e *Engine) putAsideAgain() {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	n := e.State().LargestMemory()
	if n > 0 && !e.closes() && e.putAside(n) == nil && e.State().LargestMemory() < n { // nor is as much needed any more
		e.shrinkReserve()
	}
}

// keepAside puts aside, for a store at rest that is not small, what a segment of deletes takes: a flush, or deletes, may have
// had all of it. Where it cannot be had it is tried again.
func (e *Engine) keepAside() {
	c := &e.commit
	c.mu.Lock()
	lacks := c.commits > 0 && !c.closing && len(e.State().Layers) == 0 && !e.covered(segments.SmallBytes, 0)
	c.mu.Unlock()
	if lacks {
		_ = e.reserve.ForMade(segments.SmallBytes)
	}
}

// fewDeletes reports whether w only deletes, which makes room and is let pass where others are not, and is no
// long frame, which would take more than it makes.
func (w *Write) fewDeletes() bool {
	return w.Bytes <= frame.MaxShortBytes && frame.OnlyDeletes(w.Entries)
}

// admit reports whether w may be committed while the disk is full: only what deletes
// may, since space that was put aside is for the flush. Others wait for the next
// attempt to flush. commit.mu is held; it may be let go of.
func (e *Engine) admit(w *Write) error {
	if !e.diskFull() || w.fewDeletes() {
		return nil
	}
	return cmp.Or(e.stall(), e.refuse())
}

// mayFreeSpace reports whether a commit that found the disk full should be tried
// again: if it only deletes, it gets a fifth of the space that was put aside, or a little where that was
// given to a flush: once, until it is put aside again. commit.mu is held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !w.fewDeletes() {
		return false
	}
	return e.lend()
}

// lend gives the next segment a part of the space that was put aside, once, see reserve.Space.Lend. commit.mu is held, and let go of.
func (e *Engine) lend() bool {
	largest := e.State().LargestMemory()
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	return e.reserve.Lend(segments.SmallBytes, largest)
}
