// Package table writes and reads tables: immutable sorted files of rows and
// range tombstones.
//
// # Format
//
// docs/format/table.md. writer.go makes a file from front to back. What follows the
// blocks is encoded and decoded by package layout, pages themselves by package block.
//
// A Reader keeps in memory: the index (flat arrays, arena.ClassMeta; opened lazily it
// reads that when it is first needed), the range tombstones, one cache.Slot per key page and value page, and, once attached, a
// point index. Pages are decoded into the cache; the value pages of a value
// beyond 1 MiB are not, they are assembled on the Go heap for each read.
//
// # Concurrency
//
// A Writer and an Iter belong to one goroutine. A Reader may be used by any
// number of goroutines until Close, which the caller delays until nobody can
// reach the Reader any more.
//
// # Invariants
//
// Whatever the bytes of a file, the package returns an error that matches
// base.ErrCorrupt or right answers, and never allocates more for a page than
// the page's limit. Every page is verified each time it is read from the file,
// and the keys of a block lie between its fences and the table's bounds: so a walk
// goes on in their order, which those that merge, and pass over keys, rely on.
// A sequence that TableMeta.GlobalSeq overrides is never seen outside.
//
// # Lifetimes
//
// What Get returns is valid while the caller stays in the epoch in which it
// called, or for as long as it pins Row.Page. What an Iter returns is valid
// until its next positioning call; the Iter pins the pages it stands on.
package table
