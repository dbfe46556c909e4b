// Package pointindex maps the hash of a key to the row that holds it: one
// dependent memory access where a search would take a dozen.
//
// # Format
//
// An Index is an array of 64-byte lines of eight 8-byte slots, off the Go heap
// and never in a file. A slot is a 16-bit fingerprint of the hash (never 0)
// above a 48-bit Loc; an empty slot is 0. The upper bits of the hash choose the
// home line, the lower 16 the fingerprint. Slots of a line fill from the front;
// an entry whose home line is full stands in the next line with room (the line
// after the last is the first). At most three quarters of the slots are taken.
//
// # Invariants
//
// No false negatives: an added loc is among the candidates of its hash. The
// lines between an entry's home and its place are full, so a probe ends at the
// first empty slot. No entry is maxProbeLines or more away from home: where
// hashes collide so much (by design of an enemy, the hash has no key) Build
// gives up with ErrCrowded, and a caller without an index searches. So a probe
// costs at most maxProbeLines lines, whatever the keys. Good hashes never get
// there: a run of k full lines begins at a given line with a chance of about
// exp(-0.3 k) at this load, 10^-17 for 128; a lookup reads 1.2 lines on average.
//
// # Concurrency and lifetimes
//
// A Builder belongs to one goroutine. An Index is immutable: any number of
// goroutines may look up until Free, after which nobody may; readers without a
// lock are kept off by the caller's epochs. Memory of both is counted to
// arena.ClassIndex. There is no unsafe here: a slot is read through
// encoding/binary, which compiles to one load.
package pointindex
