// Package tombstone holds range tombstones: "every version older than sequence
// q of the keys in [low, high) is hidden".
//
// # State
//
// A List is made of disjoint fragments sorted by their low bound, each with the
// distinct sequences that cover it, newest first. One binary search finds the
// fragment of a key and a second one the newest sequence a reader sees.
//
// Fragments repeat a tombstone's sequence in every fragment it reaches: n
// tombstones nested in one another would need n*n of them. A list that would
// repeat its sequences more than a few times (flatFactor) is therefore stored
// nested instead (nested.go): a segment tree over the bounds that holds each
// tombstone at O(log n) nodes. Memory is O(n log n) whatever the input; only
// walking such a list fragment by fragment (Fragments) is quadratic, and so is
// the time of Retain, if as many snapshots live.
//
// The package also holds the rule which versions a compaction must keep
// (stripe.go), as it is the same for points and for range tombstones.
//
// # Concurrency
//
// A List is immutable: any number of goroutines may read it. A Cursor and a
// Pruner are for one goroutine.
//
// # Invariants
//
// Fragments are not empty, do not overlap and ascend. The sequences of a
// fragment descend strictly. Two fragments that touch have different sequences.
//
// # Lifetimes
//
// A List keeps the Low and High slices it was given, without copying: they must
// not change while the list is in use.
package tombstone
