// Package engine puts the parts together: it opens and recovers a store, commits,
// reads, flushes memtables to tables, compacts tables, and closes.
//
// # What it provides
//
// Engine, over internal keys. Package txn puts transactions on top of it, and the
// root package a thin face over both.
//
// # State
//
// One atomically published State names everything a reader needs: the layers
// (memtables, and runs ingested by large transactions whose turn to be recorded
// has not come) and the version (levels of tables). It is replaced, never changed.
//
// # Concurrency
//
// commit.mu is the commit lock: it guards the active segment, the memtable's
// single writer, the queue of commits and the publication of States. No
// input or output happens under it except when a segment has to be made in a
// hurry. manifestMu serialises edits; it is taken before commit.mu, never after.
// Reads take no lock: they enter an epoch, load the State, and leave.
//
// # Invariants
//
// docs/INVARIANTS.md, cited by number where the code keeps them.
//
// # Lifetimes
//
// A State is referenced by the engine while it is current, by iterators that
// stand on it, and protected by the epoch for everybody else. It references its
// memtables and tables; the last reference returns an arena to the pool, closes a
// table, and lets an obsolete file be removed.
package engine
