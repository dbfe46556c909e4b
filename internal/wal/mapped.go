package wal

import (
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// The arena of a segment whose commits are not synced is its file, mapped: a commit is stored
// once, and is in the system's cache with that, so it survives the process being killed just
// as if it had been written, without a system call, and there is no second copy in memory that
// has to be found and filled. The file belongs to whoever reads the arena until Unmap: it is
// neither shortened nor used again.
//
// Where commits are synced the arena is memory of its own, for a sync protects the pages that it writes, so that the
// next store to each is a fault; unless they are long. Then the arena is the file here, too, but not provisional, and
// frames are written to it by system calls, from where the caller has them.

// CreateMapped is Create of a segment of size bytes (a multiple of 4 KiB) whose arena is its
// file. If it is to be provisional nothing is synced, until its first Sync. If the file cannot be
// mapped it is as Create makes it, and buffer is asked for an arena, of size bytes.
func CreateMapped(fsys vfs.FS, name string, num uint64, store base.ID, size int, provisional bool, buffer func() ([]byte, error)) (*Segment, error) {
	s, err := makeFile(fsys, name, num, size)
	if err != nil {
		return nil, err
	}
	if s.mapFile(size) {
		s.provisional = provisional
		err = s.beginMapped(store)
	} else if s.buf, err = buffer(); err == nil {
		err = s.begin(store, false)
	}
	if err != nil {
		s.Unmap()
		return nil, s.withdraw(fsys, err)
	}
	return s, nil
}

// beginMapped writes the header, by a system call, which says what is wrong if it cannot be done.
func (s *Segment) beginMapped(store base.ID) error {
	n, err := s.f.WriteAt(s.header(store), 0)
	s.tail.Store(int64(n))
	s.written.Store(int64(n))
	if err == nil && !s.provisional {
		err = s.Sync()
	}
	return err
}

// fillFirst writes the first zeros of a mapped segment that nothing was appended to, and brings the
// page that is stored to first into the process.
func (s *Segment) fillFirst() error {
	at := s.written.Load()
	if err := s.fillPiece(at, firstPiece); err != nil {
		return err
	}
	s.piece = firstPiece
	arena.Survives(func() { s.buf[at] = 0 }) // if not, it is noticed when something is stored
	return nil
}

// mapFile makes the file the arena, if its space is reserved, the file system can map it, and
// there is a way out when it cannot be stored to (detach).
func (s *Segment) mapFile(size int) bool {
	m, ok := s.f.(vfs.Mapper)
	if !ok || s.fill > 0 || !arena.CanDetach {
		return false
	}
	mapping, err := m.Map(0, size)
	if err != nil {
		return false
	}
	s.buf, s.mapping = mapping.Bytes(), mapping
	s.mapped.Store(true)
	return true
}

// Mapped reports whether the arena was made by mapping the file: it is not the caller's to
// recycle.
func (s *Segment) Mapped() bool { return s.mapping != nil }

// Provisional reports whether nothing of the segment was synced when it was made.
func (s *Segment) Provisional() bool { return s.provisional }

// Fetch has the system read what it has dropped of a mapped arena, all of which is about to be read: of what was
// appended.
func (s *Segment) Fetch() {
	if f, ok := s.mapping.(vfs.Fetcher); ok && s.mapped.Load() {
		f.Fetch(0, s.tail.Load())
	}
}

// Unmap ends the mapping, if there is one. Nobody reads the arena any more. The file is closed
// by itself.
func (s *Segment) Unmap() {
	s.beside.settle()
	if s.mapping != nil && s.buf != nil {
		s.mapping.Unmap() // of what Map returned it cannot fail
		s.buf = nil
	}
}

// Drop closes the file of a segment that is not needed, and ends its mapping.
func (s *Segment) Drop() {
	s.Close()
	s.Unmap()
}

// Zeros go ahead of what is stored in a mapped arena: first firstPiece bytes of them, for there
// may be few commits, then four times as many each time, up to mostPiece. What is as long itself is
// written by a system call.
const (
	firstPiece = 16 << 10
	mostPiece  = 128 << 10
)

// zerosAhead makes the place of a short frame ready, which is from offset at of a mapped arena to end.
// The page cache makes large pages for a long write, one small page for each fault of a store to a
// part of the file that was never written, and making pages is most of what a store to fresh space
// costs: 3.6 us a page of 4 KiB, and 0.06 where zeros were written before.
func (s *Segment) zerosAhead(at, end int64) {
	if s.fill < end {
		s.fill = s.beside.wait(s)
	}
	for s.fill < end {
		s.piece = nextPiece(s.piece)
		if s.fillPiece(at, s.piece) != nil {
			return // the store will tell
		}
	}
}

// nextPiece returns how long the piece behind one is.
func nextPiece(piece int64) int64 { return min(max(4*piece, firstPiece), mostPiece) }

// hasLong reports whether one of the parts is so long that it is stored by a system call.
func hasLong(parts [][]byte) bool {
	return slices.ContainsFunc(parts, func(p []byte) bool { return len(p) >= mostPiece })
}

// storeLong stores parts at offset at of a mapped arena, where a frame ends at end: those that are
// long by system calls, for which the page cache makes large pages. The page that the last one ends in is
// made by that, with zeros behind it: short frames find their place ready. Of a segment whose commits are synced the
// device is asked to begin with what is whole pages.
func (s *Segment) storeLong(parts [][]byte, at, end int64) {
	s.fill = s.beside.wait(s)
	s.piece = firstPiece / 4 // what follows may be as long, or short
	device, _ := s.f.(vfs.WriteStarter)
	begun := at &^ (pageBytes - 1)
	for _, p := range parts {
		if len(p) >= mostPiece {
			if _, err := s.f.WriteAt(p, at); err == nil {
				at += int64(len(p))
				end = max(end, (at+pageBytes-1)&^(pageBytes-1))
				if whole := at &^ (pageBytes - 1); device != nil && !s.provisional && whole-begun >= int64(AheadBytes) {
					device.StartWriteback(begun, whole-begun)
					begun = whole
				}
				continue
			}
		}
		at += int64(copy(s.buf[at:], p))
	}
	s.fill = max(s.fill, end)
}

// writeShort writes a frame that is not long, with a payload of n bytes, to offset off of a mapped segment whose commits are
// synced, and reports whether it could. To store it would make the page writable, which each sync makes read-only again:
// that and the fault take longer than a system call.
func (s *Segment) writeShort(off int64, n int, h frame.Header, payload [][]byte) bool {
	s.short = slices.Grow(s.short[:0], frame.PaddedBytes(n))[:frame.PaddedBytes(n)]
	at := frame.HeaderBytes
	for _, part := range payload {
		at += copy(s.short[at:], part)
	}
	sum := frame.Put(s.short, s.ident, off, n, h).Sum
	if _, err := s.f.WriteAt(s.short, off); err != nil {
		return false // to store it tells
	}
	s.sum, s.fill = sum, max(s.fill, off+int64(len(s.short)))
	return true
}

// easeSync prepares a sync of what lies between two offsets of a mapped arena, so that commits
// hardly wait for it. The system protects each page that is written to the device against
// stores, and tells all processors each time, unless it is not in the process. And it keeps
// large parts of the file locked at a time: a store to one, as to the page where the frames
// end, has to wait, milliseconds if the device has much to take. So all but the end is taken
// out of the process and on its way to the device first.
func (s *Segment) easeSync(from, to int64) {
	to = (to - mostPiece) &^ (mostPiece - 1)
	if w, ok := s.f.(vfs.WriteStarter); ok && from < to {
		s.mapping.LetGo(from, to)
		w.StartWriteback(from, to-from)
	}
}

// detach puts ordinary memory in the place of a mapped arena to which nothing can be stored:
// the disk is full, where reserved space does not help against that, or broken. From then on
// what is appended is written by WriteOut, which says what is wrong. Readers do not notice. If
// what is in the arena cannot be saved, which is so where somebody has cut the file, it stays,
// and the store that follows ends the process: what it was killed with is on the disk.
func (s *Segment) detach() {
	if !s.mapped.Load() {
		return
	}
	s.beside.settle()
	s.syncing.Lock() // Sync may let go of what is a mapping of the file, not of other memory
	defer s.syncing.Unlock()
	used := s.tail.Load()
	err := arena.Detach(s.buf, func(dst []byte) error {
		if !arena.Survives(func() { copy(dst, s.buf[:used]) }) {
			return fmt.Errorf("read log segment %s: memory fault", s.name)
		}
		return nil
	})
	s.mapped.Store(err != nil)
}

// Intact returns an error, which matches base.ErrCorrupt, if a mapped arena to which nothing is
// appended any more is not what was appended: since the system could not write a page to the
// device and has forgotten it, or has read another from there. Ordinary memory is trusted.
func (s *Segment) Intact() error {
	if !s.mapped.Load() {
		return nil
	}
	s.Fetch()
	w := frame.Walker{ID: s.ident, Buf: s.buf[:s.tail.Load()], Off: base.FileHeaderBytes}
	first, _ := frame.DecodeHeader(w.Buf[w.Off:], w.ID, w.Off)
	w.Sum = first.Prev
	for {
		if _, _, ok := w.Next(); !ok {
			break
		}
	}
	if w.Off < int64(len(w.Buf)) {
		return base.Corruptf(s.name, w.Off, "what was committed is not in the log any more")
	}
	return nil
}
