// Package crashtest proves by enumeration what the store promises about crashes,
// failing disks and damaged files. It is for tests; production code does not
// import it.
//
// # What it provides
//
// A Workload drives a small store on memfs and keeps a History: what it committed,
// in which order, and at which ordinal of the journal each commit was promised to
// be durable. Enumerate materialises what a power cut may leave at every point of
// the journal, opens the store on each image and judges it against the history
// (Judge). Faults fails every operation of a workload in turn. Flips damages every
// byte of a store's files. What the processes that have one store one after another leave is drawn,
// not enumerated (TestGenerations, TestKilledRecovery).
//
// # The oracle
//
// Of an image taken after the first `at` mutations, opened again:
//
//	O1 Open succeeds: nothing was damaged, only torn or lost
//	O2 every commit promised durable by then is there; if the cut kept everything
//	   (the end of a process), every acknowledged one is
//	O3 the commits that are there are a prefix of the order of commits
//	O4 the store holds exactly what that prefix, applied in order, leaves: so each
//	   transaction is there as a whole or not at all
//	O5 a commit that was reported as failed is never there
//	O6 if any byte of the frame of a commit that is not there was on the disk, Open
//	   reports dropped bytes; if the cut kept everything it reports none, unless the
//	   log is mapped, or there are bytes of a frame without a header, which went ahead:
//	   it may have come while a frame was being stored
//	O7 the store accepts a commit, closes, holds nothing but live files, and opens
//	   again with the same contents
//	O8 a crash inside that Open leads to the same contents once more
//
// For O6 the frames are those of the log files as they were with nothing lost; a
// frame counts as partly on the disk if the image has a non-zero byte in its place.
//
// # Concurrency
//
// A History and a Run are safe for concurrent use. Everything else is for one
// goroutine at a time.
package crashtest
