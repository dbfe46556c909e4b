// Package faultfs makes chosen operations of another file system fail, stop short,
// or take long. It is for tests; production code does not import it.
//
// # What it provides
//
// FS wraps any vfs.FS. Rules (FS.Add) say which operation is hit and what happens
// to it. To fail every operation of a workload in turn, count first:
//
//	every := disk.Add(faultfs.Rule{Kinds: faultfs.Mutations}) // no action: it only counts
//	workload(disk)
//	for n := int64(1); n <= every.Seen(); n++ {
//		disk := faultfs.New(memfs.New())
//		disk.Add(faultfs.Rule{Kinds: faultfs.Mutations, At: n, Do: faultfs.Fail(syscall.EIO)})
//		... run the workload, judge, heal, judge ...
//	}
//
// A trace (FS.StartTrace, FS.Trace) lists the operations in the order in which they
// began, for tests that assert what was synced before what.
//
// # State
//
// A counter of operations, the rules with their counts, whether the power is cut,
// and the trace if one was started.
//
// # Concurrency
//
// Everything is safe for concurrent use. An operation gets its ordinal and its
// verdict in one step, before it is passed on; a delay holds up its own operation
// only.
//
// # Invariants
//
//   - Of the rules that match an operation, the one added first and still active
//     decides; all of them count it.
//   - An operation that fails by a rule is not passed on, except for the prefix that
//     Short and Tear write, and except that Close always closes.
//   - After a power cut everything fails with ErrPowerCut until Heal.
//
// # Lifetimes
//
// Files opened through an FS obey its rules until they are closed.
package faultfs
