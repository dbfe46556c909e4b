// Package pace says when the work of a store is done: when commits are slowed for what flushes and
// compactions owe (Brake), when memtables that wait are flushed and how many of them together,
// when a store that nobody writes to comes to rest (Quiet), and when relaxed commits are synced (Syncer). What is flushed and merged, and how, is
// not its business.
//
// The decisions are functions of a tree.State, which must be held, and of what was noted before.
//
// # Concurrency
//
// Brake, Burst and the methods of Pace may be called by any goroutines at once. Quiet is for one. Syncer runs in one,
// and is told of commits under the commit lock.
package pace
