// Package engine puts the parts together: it opens and recovers a store, commits,
// flushes memtables to tables, compacts tables, and closes. What is read, and how, is
// package view's.
//
// # What it provides
//
// Engine, over internal keys. Package txn puts transactions on top of it, and the
// root package a thin face over both.
//
// # Concurrency
//
// commit.mu is the commit lock: it guards the active segment, the memtable's
// single writer, the queue of commits and the publication of States. No
// input or output happens under it but what E8 names, and nothing is given back but
// what a failed large transaction held. The ledger's lock serialises edits; it is taken before commit.mu,
// never after.
//
// # Invariants
//
// docs/INVARIANTS.md, cited by number where the code keeps them.
package engine
