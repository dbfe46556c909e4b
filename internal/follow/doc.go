// Package follow reads a store that another process may be writing, as far as that shows it.
//
// # What it provides
//
// Follower keeps a view up to date: with what nobody writes, as the manifest and the log have it, and with
// what somebody does, as far as package shm says that it may be seen.
//
// # State
//
// Of a store that is being written: the manifest as it was read last, its tables, opened, and for the log
// behind them memtables of this process's own, which are filled from the log's files, oldest frame first; of a
// segment that the writer has mapped the file itself is what they index.
// A file is open before it is needed and may be removed meanwhile, and the file of a segment that nobody has
// mapped used again for another one: what it holds then does not verify, or is not what the manifest names, and
// everything is looked at once more. So is any error that comes while the manifest changes.
//
// # Concurrency
//
// CatchUp and CatchUpTables may be called at once by many, inside the epoch or while the view is held; Open before
// that, Close when the view is shut and nobody is inside the epoch any more.
//
// # Invariants
//
// E16 of docs/INVARIANTS.md: what is seen is a prefix of the commits that the writer has shown, whole, and not
// older than what was shown when the read began.
//
// # Lifetimes
//
// Everything of a State is kept by its references: memtables, and the open files of tables, whatever becomes
// of their names.
package follow
