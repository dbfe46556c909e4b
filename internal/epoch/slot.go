package epoch

import (
	"runtime"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/invariants"
)

// Values of Slot.snapshot that are not a sequence + 1.
const (
	snapshotNone    = uint64(0)
	snapshotPending = ^uint64(0)
)

// slotBytes is two cache lines, because processors prefetch lines in pairs.
const slotBytes = 128

// inside is set in Slot.local from the outermost Enter to its Exit.
const inside = 1

// slotFieldBytes is what the named fields of Slot take where pointers have 8 bytes.
const slotFieldBytes = 40

// Slot is one participant of a Domain: a place for the epoch its owner entered
// in and for the snapshot it has open. One goroutine at a time may use it,
// except Snapshot, which any goroutine may call.
type Slot struct {
	local    atomic.Uint64 // twice the epoch of the outermost Enter, + 1 inside; 0: not used yet
	snapshot atomic.Uint64 // snapshotNone, snapshotPending or the sequence + 1
	domain   *Domain
	home     *chunk
	depth    int32 // of nested Enters; the owner's alone
	index    int32 // within home
	_        [slotBytes - slotFieldBytes]byte
}

// Enter begins a critical section: nothing that the owner can reach from now on
// is freed before the matching Exit. It nests; only the outermost counts. It
// costs one atomic load and one atomic store.
func (s *Slot) Enter() {
	s.depth++
	if s.depth == 1 {
		s.local.Store(s.domain.global.Load()<<1 | inside)
	}
}

// Exit ends the critical section begun by the matching Enter. Nothing found
// inside the outermost one may be used after it, unless it is pinned otherwise.
func (s *Slot) Exit() {
	if s.depth == 1 {
		s.local.Store(s.local.Load() &^ inside)
	}
	s.depth--
	if invariants.Enabled && s.depth < 0 {
		panic("cairn: epoch.Slot: Exit without Enter")
	}
}

// Glance calls f between Enter and Exit, which Domain.Used does not notice once they are over.
func (s *Slot) Glance(f func()) {
	before := s.local.Load()
	s.Enter()
	defer func() {
		if s.Exit(); s.depth == 0 {
			s.local.Store(before)
		}
	}()
	f()
}

// Inside reports whether the owner is between Enter and Exit. For assertions;
// only the owner may ask.
func (s *Slot) Inside() bool { return s.depth > 0 }

// BeginSnapshot loads the visible sequence and publishes it as this slot's
// snapshot in such a way that Domain.Snapshots either returns it or was given
// nothing that is newer: see invariant 3 in the package comment. visible must
// never decrease. It returns the sequence. The slot must have no snapshot.
func (s *Slot) BeginSnapshot(visible *atomic.Uint64) uint64 {
	if invariants.Enabled && s.snapshot.Load() != snapshotNone {
		panic("cairn: epoch.Slot: a snapshot is open already")
	}
	seq := visible.Load()
	s.snapshot.Store(seq + 1)
	if visible.Load() != seq {
		s.snapshot.Store(snapshotPending)
		seq = visible.Load()
		s.snapshot.Store(seq + 1)
	}
	return seq
}

// Snapshot returns the sequence of this slot's snapshot, 0 if it has none.
func (s *Slot) Snapshot() uint64 {
	seq, _ := s.published()
	return seq
}

// ClearSnapshot withdraws the slot's snapshot, if it has one.
func (s *Slot) ClearSnapshot() { s.snapshot.Store(snapshotNone) }

// published returns the snapshot's sequence, waiting out a pending mark: its
// owner is between two instructions of BeginSnapshot.
func (s *Slot) published() (seq uint64, ok bool) {
	for {
		switch w := s.snapshot.Load(); w {
		case snapshotNone:
			return 0, false
		case snapshotPending:
			runtime.Gosched()
		default:
			return w - 1, true
		}
	}
}

// Release gives the slot back; the owner must be outside and may not use it any
// more. An open snapshot is cleared.
func (s *Slot) Release() {
	invariants.Assert(s.depth == 0, "epoch.Slot released at depth %d", s.depth)
	s.local.Store(0)
	s.snapshot.Store(snapshotNone)
	s.domain.registry.release(s)
}
