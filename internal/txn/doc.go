// Package txn provides transactions and one-shot writes over internal keys.
//
// # What it provides
//
// Tx: a snapshot with the transaction's own writes on top, its iterators, its read
// set, and private runs on disk for what does not fit into memory. Put, Delete and
// Apply are commits without reads.
//
// # State
//
// What a Tx writes stands as entries in a buffer, the way the log will hold them,
// with a memtable over it. When that grows too large it becomes a private run:
// tables that no edit names, which the commit publishes with one ingest frame. What
// it holds is counted to the budget of the store, and it may hold less while all
// transactions together hold much. Its tables are merged as they become many.
//
// # Concurrency
//
// A Tx and its iterators are for one goroutine at a time. One-shot writes that are
// too large for a frame take turns.
//
// # Lifetimes
//
// Slices from Get last until the transaction ends: it pins the memtable or page
// they stand in, or copies them where much is pinned already. An iterator keeps
// memory alive only while it stands somewhere, but for the tables of its transaction's
// own writes, which it keeps from when it is made.
package txn
