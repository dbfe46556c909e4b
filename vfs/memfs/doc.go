// Package memfs is a file system in memory that knows what a power cut may leave.
// It is for tests; production code does not import it.
//
// # What it provides
//
// FS implements vfs.FS completely: hard links share their inode, a rename replaces
// its target, open files outlive their names, locks hold within the process, and
// SetCapacity makes the disk fill up. ReadFile, WriteFile, Truncate, Corrupt and
// FlipBit damage or inspect it from outside.
//
// An FS keeps a Journal: a record of every mutation (create, mkdir, link, rename,
// remove, write, preallocate, sync, sync of a directory). Afterwards
//
//	for at := 0; at <= journal.Len(); at++ {
//		for choice := range journal.Choices(at, plan) {
//			disk := journal.State(at, choice)
//			... open the store on disk and judge it ...
//		}
//	}
//
// visits what a disk could hold if power was cut after the first `at` mutations.
// State returns a fresh FS with a journal of its own, so recovery can crash too.
//
// # The crash model
//
// After a power cut
//
//   - a file holds what its last successful Sync covered. A Sync counts from the
//     moment it returned: at its own ordinal it has not happened yet;
//   - on top of that, any subset of the later writes and preallocations may be
//     there, applied in the order they were made. One of them may be torn: a prefix
//     of any length, or any set of its 512-byte sectors (aligned in the file); the
//     rest of its range shows the old bytes, zeros or garbage, never anything
//     outside its range;
//   - a file's length is durable only with Sync. Growth of a lost write may remain
//     all the same, and reads as zeros;
//   - an entry of a directory is durable only with SyncDir of that directory. Sync
//     of the file says nothing about its name, and losing a name is independent of
//     losing data. A name shows some prefix of its history; one change being lost
//     does not take an unrelated one with it;
//   - a rename is atomic: its old name and its new name change together. It becomes
//     durable with SyncDir of either directory. Keeping a later change of one of its
//     names keeps the rename;
//   - a file whose Sync failed (FailSyncs) has dirty pages that no later Sync
//     covers: what a kernel does that drops them. Only writing them anew helps.
//
// An image returned by State holds nothing pending: all of it counts as durable.
//
// # Concurrency
//
// FS, its files and Journal are safe for concurrent use. State may run beside
// other calls of State and beside a workload that still runs.
//
// # Invariants
//
// State is a pure function of the journal, the crash point and the choice: equal
// arguments give equal images (equal Hash). Bytes covered by a Sync are in every
// later state, unless they were overwritten since.
//
// # Lifetimes and cost
//
// File contents are chunks of 4 KiB shared copy-on-write between an FS, its
// journal and all images made from it; an image costs its directory entries plus
// the chunks that pending writes touch. The journal keeps a copy of every byte
// written until StopJournal or TrimJournal.
package memfs
