// Package mutants proves that the tests of durability can fail: it takes away, one
// at a time, every sync of a file, every sync of a directory and every comparison
// of a checksum, an identity or a durable mark, and runs the tests, some of which
// must then fail. It is for tests; nothing imports it.
//
// # What it provides
//
// Sites finds the places by parsing the sources. A Site becomes a changed file
// through Mutate; the go command is told to read that instead of the original
// (-overlay), so nothing in the tree changes. The test TestMutants does so for all
// sites if it is asked to:
//
//	go test ./internal/mutants -timeout 4h -run TestMutants -mutants.on
//	    [-mutants.run REGEXP] [-mutants.table FILE] [-mutants.baseline=false]
//
// and writes a Markdown table.
//
// # Invariants
//
// A mutant compiles: the operands of what is taken away are still evaluated.
package mutants
