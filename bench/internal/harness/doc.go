// Package harness provides the run of a plan: one child process for each engine,
// workload and round.
//
// # Protocol
//
// The harness starts its own program again with an environment variable. The
// child reads one line of JSON (the order) from standard input, works, and writes
// one line of JSON (the outcome) to standard output. Standard input stays open as
// long as the harness lives: when it ends, the child removes the data and exits.
//
// # Fairness
//
// Rounds are interleaved: every engine does a workload before any does it again,
// and each round starts with another engine. Between cells the data are removed
// and dirty pages are written back, so that no cell pays for another.
//
// # Durability
//
// Before the rounds every engine makes a few commits of each kind in a child of its
// own under the tracer of package syncs. That run is not timed; what it showed
// stands at every cell made of such commits.
//
// # Invariants
//
// No child, nothing that a child started and no data directory outlive Run, however it
// ends: a child that hangs is killed with its process group, on a signal too, and on
// Linux with whatever has its mark in the environment. If the harness itself
// is killed, children end by the closed pipe and, on Linux, by the parent-death
// signal, and remove the data; what is left even so, because they were killed too,
// is removed by the next run in the same directory, which knows it by a
// locked mark (package scratch).
//
// # Concurrency
//
// One cell runs at a time. Run may be called by several goroutines only with
// different directories, and then the figures mean nothing.
package harness
