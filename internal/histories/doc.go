// Package histories runs concurrent transactions against a store and checks that
// what they saw is what one after the other would have seen. It is imported from
// tests only.
//
// # What it provides
//
// Run lets workers commit transactions of many shapes (write skew, phantoms,
// read-modify-write, range deletes, scans both ways, blind writes, compare and
// swap, some of them too large for memory) on few keys, records every read with
// what it returned and every write, and afterwards replays the commits in the order
// of their sequences on a model. Every write has a value of its own, so a read
// tells exactly which version it saw.
//
// # State
//
// A store under Run holds keys of this package only: cell i is absent or has the
// number of the write that set it.
//
// # The argument
//
// A store that validates reads at commit serializes transactions in the order of
// their commits. So each read must return what the model holds right before its
// transaction's commit, changed by the transaction's own earlier writes; and a
// read-only transaction must see the model as of its snapshot. Any lost update,
// write skew, phantom, dirty, torn or stale read shows as a difference. That is
// stronger than asking for some serial order, and needs no search.
//
// # Concurrency
//
// Run starts its own goroutines and has ended them when it returns.
package histories
