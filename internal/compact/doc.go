// Package compact keeps the tree of tables in shape.
//
// # What it provides
//
// Pick decides what to do next, and Debt how much is left to do: pure functions of
// a version. Merge carries a decision out: rows in, tables out. The two know
// nothing of each other but the Job between them.
//
// # The shape
//
// Levels are filled from the bottom: level 6 takes everything until it is worth
// having a level above it, and so on upward to level 3. The topmost level in use
// is the base level; runs of level 0 are merged into it. A level between base and
// bottom may hold a tenth of the one below it (levels.go).
//
// A Merge takes whole blocks as they are stored where nothing in them changes: no
// other input has a key there, and their rows are puts without a sequence, which
// everybody sees. They are verified, and only their keys are decoded.
//
// Under load a merge is due when deletes hide about as much as it would write (hiding.go),
// level 0 has too many runs, or a level too many bytes or too many small tables. When the store is idle, what is left above the bottom is merged down until
// it can hide at most a tenth of the bottom's bytes and no tombstone above the
// bottom is worth keeping (idle.go). Then the debt is 0 and space amplification is
// at most 1.2.
//
// # Concurrency
//
// Pick and Debt may be called from anywhere. A job is of one version: it is carried out, or
// given up, before the next one is picked. A Merge is for one goroutine.
//
// # Invariants
//
//   - C1: for one key, every row in level 0 and in memtables is newer than every row
//     in a level 1..6, and every row of such a level is newer than those of deeper
//     ones. The rule holds because what is committed comes to level 0 in the order of its
//     age, and tables leave it only together with every table there that overlaps them.
//   - C2: a job contains every table of its out level that overlaps its inputs, so
//     its outputs fit in between the tables that stay.
//   - C3: Job.Bottommost is true only if no table outside the job can hold a row that
//     is older than a row of the job with the same key. By C1 these are the tables
//     of deeper levels.
//   - C4: Pick terminates: each job moves a row or tombstone to a deeper level, or
//     lessens the number of runs in level 0, or rids bottom tables of garbage that
//     is known to go, or joins tables of a level. Nothing ever moves up.
//
// # Lifetimes
//
// A Job points into the version it was picked from.
package compact
