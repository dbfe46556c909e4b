package engine

import (
	"errors"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/reserve"
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
	if e.reserveGiven.Swap(true) {
		return false
	}
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	e.forDeletes.Store(max(e.reserve.Release()/5&^4095, smallSegmentBytes))
	return true
}
