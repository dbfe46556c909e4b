// Package workload provides what is done to every engine: one file per workload.
//
// # What a workload is
//
// A Workload lists its cells (parameters for the quick and the full suite), its
// columns, its conditions in words, how long a cell may take, and Run, which does
// the work on freshly opened stores in one directory and hands each figure to a
// Recorder. Run is called in a process of its own, once or, where the workload has a
// Repeat for it, several times, each with an empty directory and a new Recorder; RunCell
// makes one record of them.
//
// # Variants
//
// Where an article's method is unsound the workload is there twice, under one name:
// "published" does what the article did, as far as it says, and its conditions say
// what is unsound about it; "sound" is what should have been measured.
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
// one goroutine, unless Params.Goroutines says otherwise; what several of them may
// read is known by records, which counts the versions begun and acknowledged.
package workload
