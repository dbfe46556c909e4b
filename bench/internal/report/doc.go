// Package report provides the ways a run is shown: text tables, benchstat lines.
//
// # What it computes
//
// Tabulate takes the median over the rounds of each figure, with the interval of
// golang.org/x/perf/benchmath where there are rounds enough and the range of the
// rounds where there are not. An engine that failed in any round has no figures
// for that workload. Behind lists every figure in which Cairn is not the best;
// floors (an in-memory map) are nobody's rival.
//
// # Concurrency
//
// Functions of their arguments; nothing is kept.
package report
