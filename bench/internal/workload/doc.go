// Package workload provides what is done to every engine: one file per workload.
//
// # What a workload is
//
// A Workload lists its cells (parameters for the quick and the full suite), its
// columns, its conditions in words, how long a cell may take, and Run, which does
// the work on one freshly opened store in one directory and hands each figure to a
// Recorder. Run is called in a process of its own.
//
// # Invariants
//
// Every value read is compared with the bytes expected, inside the timed loop, the
// same way for every engine; a difference ends the cell with a *WrongAnswer.
// A column gets a figure or a reason, never a zero in place of one.
//
// # Concurrency
//
// The registry is filled by init functions and only read afterwards. A Run uses
// one goroutine, unless its conditions say otherwise.
package workload
