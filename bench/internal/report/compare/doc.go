// Package compare provides the comparison of two runs: every figure of every engine,
// and how far Cairn's place beside the best rival moved.
//
// # What it computes
//
// A Change is one figure in both runs with the p-value of the Mann-Whitney U test of
// golang.org/x/perf/benchmath; with fewer than four rounds that test cannot find a
// difference, and the change says so. A Standing is the ratio of Cairn's figure to
// the best rival's in both runs. It is steadier than the figures themselves, for what
// slows the whole machine slows both. A standing that only one of two runs of the
// same workload has counts as moved.
//
// # Concurrency
//
// Functions of their arguments; nothing is kept.
package compare
