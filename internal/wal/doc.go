// Package wal reads and writes log segments. A segment's file and its arena in
// memory hold the same bytes at the same offsets: a commit is encoded once, into
// the arena, and reaches the file with one WriteAt for everything that is new, but for pieces
// of long ones, which go ahead (AheadBytes). Or the arena is the file, mapped, and it is there
// with that (CreateMapped): stored, or written where commits are synced.
//
// # Format
//
// docs/format/log.md. A segment is a file header, then frames; the first frame is
// a link that fixes where the segment before it ends.
//
// # Concurrency
//
// Append is called by one goroutine at a time (the holder of the commit lock),
// WriteOut by one at a time (the leader of a commit group), Sync by anybody, all
// of them concurrently with Append.
//
// # Invariants
//
//	W1 bytes of the arena before Tail never change
//	W2 Written <= Tail; Synced <= Written; each only grows
//	W3 a frame carries a durable mark that was true before the frame was written
//	W4 in a file that was used before, a frame of KindEnd stands at Written
//	W5 a file that was ever mapped is neither shortened nor used again
//	W6 while zeros are written beside commits nothing is stored behind fill
//
// # Lifetimes
//
// The arena belongs to the caller, who gives it to Create and may recycle it once
// the segment's memtable is no longer read. Close keeps the arena. Retire keeps the file
// too, open, for Reuse. A mapped arena lasts until Unmap, whether the file is closed, or has
// lost its name, before that or not.
package wal
