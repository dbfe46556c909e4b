package engine

import (
	"errors"
	"math"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// So that a full disk can heal, space is put aside for the flush of one memtable. That
// frees its log segment, in whose space the next one can be flushed, and so on: a store
// that was filled gets room by itself, if there is anything to delete. So that this
// holds, no segment is made unless the space is put aside. Where it was not enough, what
// memtables hold is written together, without what the newer ones hide.

// reserveSlack is what the table may be larger than the segment it was made of.
const reserveSlack = 256 << 10

// smallSegmentBytes is the size of a segment where there is no space for another: it
// seals the one before, so that it can be flushed.
const smallSegmentBytes = 64 << 10

// holdReserve puts space aside for the flush of a segment of the given size, once the
// store has written more than a little. No lock is held.
func (e *Engine) holdReserve(size int) error {
	if e.counters.CommittedBytes.Load() <= tree.MinSegment {
		return nil
	}
	err := e.reserve.Hold(int64(size)*5/4 + reserveSlack)
	if err == nil {
		e.reserveGiven.Store(false)
	}
	if e.reserveGiven.Load() || !vfs.IsNoSpace(err) { // other errors: then there is none
		return nil
	}
	return err
}

// diskFull reports whether the last attempt to flush found no space. commit.mu is held.
func (e *Engine) diskFull() bool {
	return isFull(e.flushErr)
}

func isFull(err error) bool { return errors.Is(err, base.ErrNoSpace) || vfs.IsNoSpace(err) }

func (e *Engine) waitsForSpace() bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.diskFull()
}

// freeSpace removes at once what would be removed sooner or later.
func (e *Engine) freeSpace() {
	e.markIfQuiet()
	e.epochs.Collect()
	e.removeObsolete()
}

// flushTogether flushes all sealed memtables as one, where there is no space to flush the
// oldest; with the active one, if what that deletes makes the difference.
func (e *Engine) flushTogether() error {
	_, err := e.flush(all)
	if !isFull(err) || !e.activeHelps() {
		return err
	}
	if err := e.sealActive(); err != nil {
		return err
	}
	_, err = e.flush(all)
	return err
}

const all = math.MaxInt

// activeHelps tries whether there is space for what sealed memtables and the active one
// hold together.
func (e *Engine) activeHelps() bool {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	r := e.readers.Get().(*Reader)
	defer e.readers.Put(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	ingested := func(l *tree.Layer) bool { return l.Mem == nil }
	if len(rs.Layers) > maxSealed+1 || rs.Layers[0].Mem.Len() == 0 || slices.ContainsFunc(rs.Layers, ingested) {
		return false
	}
	tables, err := e.writeMemories(rs.Layers, rs.Version.NumTables() == 0)
	e.tables.Discard(tables)
	return err == nil
}

// sealActive makes a small segment the active one.
func (e *Engine) sealActive() error {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.spare == nil || c.broken {
		if err := e.refuse(); err != nil {
			return err
		}
		if c.broken {
			c.cond.Wait()
		} else if err := e.prepareSpare(0, 0, sealing); err != nil {
			return err
		}
	}
	end, sum := c.lastEnd()
	e.rotate(end, sum)
	return nil
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
// again: if it only deletes, it gets the space that was put aside. commit.mu is
// held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !frame.OnlyDeletes(w.Entries) {
		return false
	}
	if e.reserveGiven.Swap(true) {
		return false
	}
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	e.reserve.Release()
	return true
}
