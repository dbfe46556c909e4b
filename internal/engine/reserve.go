package engine

import (
	"errors"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
)

// What a store does when the disk is full, and with the space that is put aside for that (package reserve).

// smallSegmentBytes is the size of a segment where there is no space for another: it
// seals the one before, so that it can be flushed.
const smallSegmentBytes = 64 << 10

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
func (e *Engine) holdsLittle(more int) bool {
	return e.counters.CommittedBytes.Load()+int64(more)+e.State().TableBytes() <= tree.LittleBytes
}

// secured reports whether space is put aside for the flush of the active memtable, to which w is about to be added, or
// none is needed, and puts it aside if not: then look again. What only deletes goes on without. commit.mu is held; it may be let
// go of.
func (e *Engine) secured(w *Write) (bool, error) {
	if w.bare {
		return true, nil
	}
	ok, err := e.secure(e.commit.mem, w.Bytes)
	if err != nil && w.fewDeletes() {
		w.bare, err = true, nil
	}
	return ok, err
}

// secure is secured where so many bytes more come to m, or to tables beside it.
func (e *Engine) secure(m *tree.Memory, more int) (bool, error) {
	c := &e.commit
	if !m.Bare || e.holdsLittle(more) {
		return true, nil
	}
	if c.preparing { // which may put it aside, or take it
		c.cond.Wait()
		return false, nil
	}
	c.preparing = true
	size := m.Seg.Capacity()
	c.mu.Unlock()
	err := e.reserve.ForMade(size)
	if reserve.IsFull(err) {
		e.removeFiles()
		err = e.reserve.ForMade(size)
	}
	c.mu.Lock()
	m.Bare = err != nil
	c.preparing = false
	c.cond.Broadcast()
	if m.Bare && e.flushErr == nil && e.oldestSealed() != nil { // a flush may have it, and gives it back
		return false, e.awaitFlush()
	}
	return false, reserve.SpaceError(err)
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
	return e.stall()
}

// mayFreeSpace reports whether a commit that found the disk full should be tried
// again: if it only deletes, it gets a fifth of the space that was put aside, or a little where that was
// given to a flush: once, until it is put aside again. commit.mu is held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !w.fewDeletes() {
		return false
	}
	largest := e.State().LargestMemory()
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	return e.reserve.Lend(smallSegmentBytes, largest)
}
