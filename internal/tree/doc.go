// Package tree is what a reader sees of a store at one moment.
//
// # What it provides
//
// State: layers (memtables, and runs that large transactions have ingested) above
// runs of tables, newest first; point lookup in it; and the check of a
// transaction's reads against what has been committed since.
//
// # State
//
// A State never changes; the engine replaces it. It has references to its
// memtables and tables.
//
// # Concurrency
//
// Everything may be read by any number of goroutines. The caller is inside the
// epoch while it follows pointers from a State it has no reference to.
//
// # Invariants
//
// E1: along a State the sequences of one key only fall, so the first hit is the
// newest version.
//
// # Lifetimes
//
// The last reference to a Memory gives its buffers back, the last one to a Handle
// calls OnUnused, which closes the table.
package tree
