// Package mvcc decides which transactions may commit.
//
// # What it provides
//
// A ReadSet remembers what a read-write transaction has read: exact keys, and the
// half-open ranges its scans walked, gaps included. A transaction is serializable
// if nothing it read was written by a commit sequenced after its snapshot (that
// preventing read-write conflicts suffices, and write-write conflicts need no
// check, is shown in Yabandeh and Gomez Ferro, "A Critique of Snapshot Isolation",
// EuroSys 2012). Every such commit is still at hand: as records of a memtable, in
// the order of their sequences, or in a table.
//
// # Concurrency
//
// A ReadSet is for one goroutine at a time.
//
// # Invariants
//
//	C1 a key read and found absent is in the read set like any other
//	C2 a range reaches to the last key looked at, or to the scan's bound if the
//	   scan ran out: so a phantom falls into it
//	C3 coarsening (SetLimit) only ever widens what is read
//
// # Memory
//
// A ReadSet keeps to a limit, whatever is read: beyond it what stands close to each
// other becomes one range (coarsen.go). The price is conflicts with writes to keys
// that were not read.
//
// # Lifetimes
//
// Everything added is copied.
package mvcc
