// Package lifetest runs whole stores through their lives, each in a process of
// its own, and compares them with models that the parent process keeps.
//
// # What it provides
//
// Tests only. TestLife drives a store through puts, overwrites, deletes, range
// deletes, reopenings and long-held snapshots; TestKill ends a writing process by
// kill -9 again and again; TestLargeTx commits, rolls back and kills transactions
// many times larger than memory allows; TestSustained writes for a while and
// watches memory and stalls.
//
// Each has a short form, which go test runs, and a full one: set CAIRN_LONG=1 and
// give -timeout enough room. CAIRN_SEED=n repeats a run.
//
// # State
//
// The test binary is its own child: started with CAIRN_LIFE_CHILD set it serves
// commands, one JSON object a line on standard input, and answers on standard
// output (child_test.go). Operations are a function of a seed (ops_test.go), so
// that both sides can make them; the model of a key is the number of the
// operation that wrote it.
//
// # Concurrency
//
// A child serves one command at a time.
//
// # Invariants
//
// Memory is judged by the kernel's own peak (VmHWM) of the child, which holds the
// store and nothing else.
//
// # Lifetimes
//
// A child ends with its test; its directory is the test's temporary one.
package lifetest
