// Package epoch provides safe reclamation for readers that take no lock, and
// the list of snapshots that transactions have open.
//
// A reader encloses its accesses in Slot.Enter and Slot.Exit. Whoever takes an
// object out of a shared structure hands Domain.Retire a function that frees
// it; the function runs once every reader that could have found the object has
// left. A reader pays two atomic stores to a cache line of its own and one load
// of a line that changes only when something is retired, or with Used.
//
// # State
//
// The domain has a counter, the global epoch, which starts at 1 and advances
// with each Retire and each Used. Each slot has a local epoch, with a bit that says whether
// its owner is inside, or was then and not since (0: never), and a snapshot word
// (0: none, all ones: pending, otherwise the sequence + 1). Slots live in chunks
// of 64 which are linked into a list that only grows; a bitmap per chunk says
// which slots are registered, so scans skip the others.
//
// # Concurrency
//
// A Domain may be used by any number of goroutines. A Slot belongs to one
// goroutine at a time; handing it on needs a happens-before edge (a channel, a
// mutex, a pool). Functions given to Retire run on the goroutine of some Retire
// or Collect call, outside the domain's locks, in the order in which they were
// retired as far as one call runs them, and exactly once; they may call Retire
// themselves. No call waits for a reader: what cannot run yet stays queued, so
// somebody must call Collect (or Retire) after the last reader has left.
//
// # Invariant 1: a retired object is freed only when no reader can hold it
//
// Go's atomics are sequentially consistent, so all of the operations below have
// a place in one total order. Let U be the store that unlinks the object, R the
// increment by Retire (after U), r the epoch before it. Suppose a reader holds
// the object: in its outermost Enter it loaded the global epoch (value e), then
// stored e to its slot, then loaded the pointer and found the object, so that
// load precedes U:
//
//	load e  <  store e to the slot  <  load pointer  <  U  <  R
//
// (1) Since the epoch was loaded before R, e <= r. (2) Since the store precedes
// R, each scan made after R that finds the reader still inside finds an epoch
// e <= r there. Collect runs the function only after a scan, made after R, in
// which every slot was outside or > r; so the reader has left, by a store that the
// scan saw, which orders its accesses before the free. A reader that was
// delayed between the load and the store of e, and was missed for that reason,
// has its pointer load after the scan and so after U: it does not find the
// object. Its stale e merely holds other frees back a little.
//
// # Invariant 2: no scan misses a participant
//
// A scan follows the list of chunks and reads each bitmap. Register links the
// chunk and sets the bit before it returns the slot; if a scan reads the list or
// the bitmap before that, everything the owner does with the slot comes after
// that read, as if the scan had found the slot empty at that moment. Chunks are
// never unlinked, and a bit is cleared only when the slot is empty.
//
// # Invariant 3: no snapshot is missed
//
// A compaction that may drop versions loads the visible sequence, V, and then
// calls Snapshots. A snapshot the call does not return has a sequence >= V.
// BeginSnapshot loads visible, publishes what it got, and loads visible again: if
// nothing has changed, that is the snapshot. If not it stores the pending mark,
// loads visible once more and publishes that. Either way the load that gave or
// confirmed the sequence comes after a store to the word. A scan that returns
// another sequence, or none, has read the word before that store (where it reads
// the pending mark it waits), hence before that load, and V was loaded before the
// scan: as visible never decreases, the sequence is >= V.
//
// # Lifetimes
//
// A slot lives from Register to Release; one that is dropped without Release
// is lost for good and is scanned for ever, so owners that are pooled and may be
// dropped by the garbage collector (sync.Pool) need a cleanup that does. A domain needs no closing;
// what is still queued when it is dropped never runs.
package epoch
