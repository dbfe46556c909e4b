package engine

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// reserve is space put aside on the disk, so that when it is full one memtable can
// still be flushed. That frees its log segment, in whose space the next one can be,
// and so on: a store that was filled gets room by itself, if there is anything to
// delete. So that this holds, no segment is made unless the space is put aside.
type reserve struct {
	file  sync.Mutex // held while the file is made or removed; taken before commit.mu
	bytes int64
	given bool // to deletes; segments are made without it until it is put aside again
}

// reserveSlack is what the table may be larger than the segment it was made of.
const reserveSlack = 256 << 10

// smallSegmentBytes is the size of a segment where there is no space for another: it
// seals the one before, so that it can be flushed.
const smallSegmentBytes = 64 << 10

// holdReserve puts space aside for the flush of a segment of the given size, once the
// store has written more than a little. No lock is held.
func (e *Engine) holdReserve(size int) error {
	e.reserve.file.Lock()
	defer e.reserve.file.Unlock()
	want := int64(size)*5/4 + reserveSlack
	c := &e.commit
	c.mu.Lock()
	enough := want <= e.reserve.bytes || e.counters.committedBytes.Load() <= minSegmentBytes
	c.mu.Unlock()
	if enough {
		return nil
	}
	err := e.makeReserve(want)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		e.reserve.bytes, e.reserve.given = want, false
	}
	if e.reserve.given || !vfs.IsNoSpace(err) { // other errors: then there is none
		return nil
	}
	return err
}

// makeReserve makes the file that takes the space, or larger. If it fails what was
// put aside still is.
func (e *Engine) makeReserve(bytes int64) error {
	name := e.path(base.FileReserve, 0)
	f, err := e.cfg.FS.OpenReadWrite(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = e.cfg.FS.Create(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Preallocate(0, bytes)
}

// releaseReserve gives the space back to the disk and reports whether there was any.
func (e *Engine) releaseReserve() bool {
	e.reserve.file.Lock()
	defer e.reserve.file.Unlock()
	c := &e.commit
	c.mu.Lock()
	e.reserve.bytes = 0
	c.mu.Unlock()
	return e.cfg.FS.Remove(e.path(base.FileReserve, 0)) == nil
}

// diskFull reports whether the last attempt to flush found no space. commit.mu is held.
func (e *Engine) diskFull() bool {
	return e.flushErr != nil && errors.Is(SpaceError(e.flushErr), base.ErrNoSpace)
}

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

// admit reports whether w may be committed while the disk is full: only what deletes
// may, since space that was put aside is for the flush. Others wait for the next
// attempt to flush. commit.mu is held; it may be let go of.
func (e *Engine) admit(w *Write) error {
	if !e.diskFull() || w.onlyDeletes() {
		return nil
	}
	return e.stall()
}

// mayFreeSpace reports whether a commit that found the disk full should be tried
// again: if it only deletes, it gets the space that was put aside. commit.mu is
// held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !w.onlyDeletes() {
		return false
	}
	if e.reserve.given {
		return false
	}
	e.reserve.given = true
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	e.releaseReserve()
	return true
}

func (w *Write) onlyDeletes() bool {
	for rest := w.Payload; len(rest) > 0; {
		ent, n := frame.DecodeEntry(rest)
		if ent.Kind == base.KindPut {
			return false
		}
		rest = rest[n:]
	}
	return len(w.Payload) > 0
}
