// Package sorted puts the rows of a State in one order beforehand.
//
// # What it provides
//
// Rows: what a snapshot sees of a State, in the order of the keys, with the place of each
// row, for who scans a store again and again that is not merged: a walk over Rows is a walk
// along an array, where one over all memtables and tables compares the keys of each with
// those of the others. Iter walks them. What is committed after the snapshot is merged in by
// the caller, from an order of its own (Rows.Since). The idea is that of REMIX (Zhong et al.,
// FAST 2021), for memtables as for tables, and in memory only.
//
// # State
//
// 16 bytes a row, of the Go heap. Nothing of it is written down.
//
// # Concurrency
//
// Rows never change once Build has returned them, but for the order that Since keeps. An Iter is
// for one goroutine.
//
// # Invariants
//
// E15 of docs/INVARIANTS.md: Rows are read only together with a State that they are Of, by
// snapshots that are not older than theirs.
//
// # Lifetimes
//
// Rows keep no memtable and no table: the State that they are read with does. How they are used while
// it is replaced is tested in package txn (sorted_test.go).
package sorted
