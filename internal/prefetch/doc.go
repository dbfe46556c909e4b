// Package prefetch brings memory on its way to the processor before it is wanted.
//
// # What it provides
//
// Lines, Byte and Word, which are the processor's instruction for that, and Ahead, which says how far
// ahead of a walk over rows that lie anywhere in memory to use it. To load a byte of what is wanted soon does not do in its
// place: a processor looks some hundred instructions ahead, and stands still behind loads that no cache
// answers, where the instruction is over at once. Nor does it know how long a value is: by itself it brings
// what lies behind only after a few misses.
//
// # State
//
// None, but the position of an Ahead.
//
// # Concurrency
//
// The instruction may be used for any memory, whoever writes to it meanwhile, mapped or not: it changes nothing
// and never fails. An Ahead is for one goroutine.
package prefetch
