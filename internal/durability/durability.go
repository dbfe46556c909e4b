// Package durability keeps how far the log of an open store is known durable.
//
// # What it provides
//
// Log: the segments that are not known durable as a whole, and the position before which everything is. A
// segment's bytes are not enough: a provisional one (package ledger) may go with a power cut, and with
// it all of the log behind it, whatever of that was synced, so it has to be confirmed as well.
//
// # Invariants
//
// Of docs/INVARIANTS.md: E2 (what is shown as durable is), E4 (a log segment is recorded before it is used,
// and either durable as a whole by then or provisional).
//
// # Concurrency
//
// The list and the position are guarded by the commit lock; nothing is synced while it is held. The ledger's
// lock is taken before the commit lock, never after.
package durability

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/wal"
)

// Log is a store's log as far as syncs are concerned. The exported fields are set before it is used.
type Log struct {
	Commits *sync.Mutex // the commit lock
	Ledger  *ledger.Ledger
	Poison  func(error) // is told of an error after which nobody knows what the disk holds, without the commit lock

	segments []*wal.Segment // oldest first, the active one last
	end      wal.Position
}

// Add appends a segment, in which writing goes on. The commit lock is held.
func (l *Log) Add(s *wal.Segment) { l.segments = append(slices.Clip(l.segments), s) }

// Drop takes out a segment that need not be synced any more: what it holds is in tables. The commit lock is held.
func (l *Log) Drop(s *wal.Segment) {
	l.segments = slices.DeleteFunc(slices.Clone(l.segments), func(o *wal.Segment) bool { return o == s })
}

// End returns the position before which everything is known durable. The commit lock is held.
func (l *Log) End() wal.Position { return l.end }

// Segments returns those that are not known durable as a whole, oldest first, the active one with them, in the
// memory of reuse if they fit. The commit lock is held.
func (l *Log) Segments(reuse []*wal.Segment) []*wal.Segment { return append(reuse[:0], l.segments...) }

// Abandon gives up in all segments what was appended and not written. The commit lock is held.
func (l *Log) Abandon() {
	for _, s := range l.segments {
		s.Abandon()
	}
}

// Close closes the segments and forgets them. The commit lock is held.
func (l *Log) Close() {
	for _, s := range l.segments {
		s.Close()
	}
	l.segments = nil
}

// Advance moves End to where segments are synced and confirmed, and forgets those that need no more of that.
// Segments are synced oldest first, so there is no gap before End. The commit lock is held.
func (l *Log) Advance() {
	for len(l.segments) > 0 {
		s := l.segments[0]
		if p := l.Ledger.FirstProvisional(); p != 0 && s.Num >= p {
			return // synced, perhaps, but a power cut may take it away
		}
		// A mark into a segment says that its link is durable: the header alone is
		// no place behind the segment before, and recovery could not find it.
		if s.Synced().Offset() > base.FileHeaderBytes {
			l.end = max(l.end, s.Synced())
		}
		tail, _ := s.Tail()
		if len(l.segments) == 1 || s.Synced() < tail {
			return
		}
		l.segments = l.segments[1:]
	}
}

// Sync makes durable what has been written to segments, oldest first, and that they are there; Advance comes next.
// An error that does not match base.ErrPoisoned says that the latter was not tried. No lock is held.
func (l *Log) Sync(segments []*wal.Segment) error {
	if err := wal.SyncAll(segments); err != nil {
		return fmt.Errorf("%w: %w", base.ErrPoisoned, err)
	}
	if len(segments) == 0 {
		return nil
	}
	last := segments[len(segments)-1].Num
	if first := l.Ledger.FirstProvisional(); first == 0 || first > last {
		return nil
	}
	l.Ledger.Lock()
	defer l.Ledger.Unlock()
	return l.Ledger.Confirm(last)
}

// MustSync is Sync where commits wait for it whose bytes are on the disk already: what was
// not tried, for want of a descriptor, say, is tried again for a while.
func (l *Log) MustSync(segments []*wal.Segment) error {
	err := l.Sync(segments)
	for try := 0; try < confirmTries && err != nil && !errors.Is(err, base.ErrPoisoned); try++ {
		time.Sleep(confirmPause)
		err = l.Sync(segments)
	}
	return err
}

const (
	confirmTries = 50
	confirmPause = 10 * time.Millisecond
)

// SyncWritten makes durable what has been written by now, beside the rounds of commits. Errors are those of Sync. No lock is
// held.
func (l *Log) SyncWritten() error {
	l.Commits.Lock()
	segments := l.Segments(nil)
	l.Commits.Unlock()
	if err := l.Sync(segments); err != nil {
		return err
	}
	l.Commits.Lock()
	defer l.Commits.Unlock()
	l.Advance()
	return nil
}

// SyncForSegment makes durable what a segment that is not provisional needs: its name, and the
// segments before it. The ledger is locked.
func (l *Log) SyncForSegment() error {
	switch {
	case !l.Ledger.Live(): // a new manifest syncs the directory itself, before it counts
		return nil
	case l.Ledger.State().FirstProvisional() == 0:
		return l.Ledger.SyncDir()
	}
	l.Commits.Lock()
	segments := l.Segments(nil)
	l.Commits.Unlock()
	if err := wal.SyncAll(segments); err != nil {
		l.Poison(err)
		return fmt.Errorf("%w: %w", base.ErrPoisoned, err)
	}
	return l.Ledger.Confirm(uint64(math.MaxUint64))
}

// SyncUnused makes the header of a segment that will not be used durable, if it is not: whoever
// confirms a later segment confirms this one (ledger.Confirm). The commit lock is not held.
func (l *Log) SyncUnused(seg *wal.Segment) {
	if err := seg.Sync(); err != nil {
		l.Poison(err)
	}
}
