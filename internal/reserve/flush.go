package reserve

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/cairndb/cairn/vfs"
)

// So that a full disk can heal, a store puts space aside for the flush of one memtable, the largest there
// is. That frees its log segment, in whose space the next one can be flushed, and so on: a store
// that was filled gets room by itself, if there is anything to delete. So that this
// holds, no segment is made unless the space is put aside, but for a small one behind a
// larger one and a part of what was put aside for deletes.

// slack is what a table may be larger than the segment it was made of.
const slack = 256 << 10

// ForFlush returns how much is put aside for the flush of a memtable over so many bytes of log.
func ForFlush(segment int64) int64 { return segment*5/4 + slack }

// ForSegment makes a segment of the given size, with space put aside for its flush, and that of
// the largest there is. That space cannot be given to a flush until the segment is there: it would take it. Of a store
// that holds so little that its flush takes no more than little bytes do, if that is not 0, the space has only to be there.
// Nothing is put aside for a segment in what was lent to deletes; nor does anything stay so for one that there is no space for.
func (s *Space) ForSegment(size, largest, little int64, create func() error) error {
	if lent := s.lent.Swap(0); size <= lent {
		return create()
	}
	flushed := max(size, largest)
	if little > 0 {
		flushed = min(flushed, little)
	}
	if s.lacks(size, flushed) {
		return fmt.Errorf("a log segment of %d bytes and its flush: %w", size, vfs.ErrNoSpace)
	}
	if little > 0 {
		return create()
	}
	err := s.hold(flushed, create)
	if vfs.IsNoSpace(err) {
		s.Shrink(ForFlush(largest))
	}
	return err
}

// ForMade puts space aside for the flush of a segment that was made without: for a store that held little, or since what
// was put aside has gone.
func (s *Space) ForMade(size int64) error {
	return s.hold(size, func() error { return nil })
}

// hold is Hold for the flush of a segment. Where space cannot be put aside at all, or its file is somebody else's, there is none.
func (s *Space) hold(segment int64, use func() error) error {
	held := false
	err := s.Hold(ForFlush(segment), func() error {
		held = true
		s.given.Store(false)
		return use()
	})
	if held || !neverPutAside(err) {
		return err
	}
	s.mu.Lock()
	s.aside.Store(math.MaxInt64)
	s.given.Store(false)
	s.mu.Unlock()
	return use()
}

// neverPutAside reports whether an error of Hold says that space cannot be put aside at all, now or later.
func neverPutAside(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrExist) || errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, fs.ErrPermission)
}

// Lend gives all of the space back, so that the next segment, which only deletes are for, may take a fifth of it, or
// least bytes where it was given to a flush, and reports whether it did: once, until there is space put aside again, or
// as much can be as the flush of a segment of least bytes, and that of the largest there is, takes.
func (s *Space) Lend(least, largest int64) bool {
	if s.given.Load() {
		_ = s.hold(max(least, largest), func() error { return nil })
	}
	if s.given.Swap(true) {
		return false
	}
	s.lent.Store(max(s.Release()/5&^4095, least))
	return true
}

// Lent returns how many bytes were lent to the next segment.
func (s *Space) Lent() int64 { return s.lent.Load() }

// Holds reports whether space is put aside for the flush of a segment of so many bytes, or none can be.
func (s *Space) Holds(segment int64) bool { return s.aside.Load() >= ForFlush(segment) }

// lacks reports whether the disk is known not to have what a segment and the flush of one of flushed bytes take. What is
// put aside already need not be let go of then, and held anew, which others could come between.
func (s *Space) lacks(segment, flushed int64) bool {
	s.mu.Lock()
	grows := ForFlush(flushed) - s.bytes
	s.mu.Unlock()
	if grows <= 0 {
		return false
	}
	free, known := vfs.FreeSpace(s.fs, filepath.Dir(s.name))
	return known && free < grows+segment
}
