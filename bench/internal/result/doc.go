// Package result provides the record of a run: what was measured, under which
// conditions, and what every cell of every round gave.
//
// # Format
//
// A Run is written as one JSON object; Schema names its shape and is raised when
// a reader of the old shape would misread the new. Times are nanoseconds, sizes
// bytes, per operation where the column's unit says so.
//
// # Invariants
//
// A Cell has a metric, or a reason in NA why there is none, for every column of
// its workload if its status is OK; of a cell that is not OK no metric counts.
//
// # Concurrency
//
// Plain values without locks: one goroutine fills a Run, then anyone may read it.
package result
