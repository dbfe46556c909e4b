// Package view is what those who read an open store see of it, and what keeps it there
// for them.
//
// # What it provides
//
// View: the current State, the greatest sequence that may be seen, point reads of both,
// snapshots, and who holds the store open. Package engine is the one that shows more of
// it, and replaces the State.
//
// # State
//
// One atomically published State names everything a reader needs: the layers
// (memtables, and runs ingested by large transactions whose turn to be recorded
// has not come) and the version (levels of tables). It is replaced, never changed.
//
// # Concurrency
//
// All methods may be called at once, but for Show, Publish and Drop, which the engine
// calls one at a time. Reads take no lock: they enter an epoch, load the State, and leave.
//
// # Invariants
//
// E2 and E7 of docs/INVARIANTS.md: what may be seen only grows, and is loaded after the
// State.
//
// # Lifetimes
//
// A State is referenced by the View while it is current, by iterators that
// stand on it (Reader.Hold), and protected by the epoch for everybody else. It references its
// memtables and tables; the last reference returns an arena to the pool, closes a
// table, and lets an obsolete file be removed. Of a snapshot that was never ended the
// collector's cleanup gives back what the reader held, but for the memtables that
// iterators stood in, of which slices may still be in use.
package view
