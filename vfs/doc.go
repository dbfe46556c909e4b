// Package vfs is what a store knows of disks.
//
// # What it provides
//
// FS and File (vfs.go) are the interfaces; OS returns the operating system's file
// system behind them. IsNoSpace recognises a full disk from any implementation.
// What a file system or file may offer besides, for speed or safety, are interfaces of
// their own: Unlinker, SpaceTeller, WriteStarter, Scatterer, Mapper, Viewer, Fetcher, Toucher, Shortener, Overwriter, Cacher, Guard, DirKeeper, Sharer, Watcher. ErrNotAttempted tells a sync
// or a rename that was not tried from one that failed.
//
// # State
//
// OS keeps none: every name is resolved by the operating system at every call.
// A lock file holds one text line, "pid host time\n" (time in RFC 3339), written
// by an exclusive holder for the sake of error messages and cleared when it lets
// go, and behind it, on Linux, memory that the holder shares with those who watch
// (docs/format/lock.md). A holder that was killed leaves its line behind; the next exclusive holder
// overwrites it, but while only shared holders exist the line may name a process
// that is gone. The lock is the operating system's, never the line.
//
// # Concurrency
//
// Everything here may be used by many goroutines at once. Closing a File while
// another goroutine uses it makes that goroutine's call fail with fs.ErrClosed;
// it can never reach another file that reuses the descriptor.
//
// # Invariants
//
//   - A store's files are regular files. Open, OpenReadWrite and Lock neither
//     follow a symbolic link in the last element of a name nor hang on a FIFO.
//   - WriteAt writes everything or says how much it wrote and why it stopped.
//   - No operation retries a sync that failed: after a failed fsync the kernel may
//     have dropped the dirty pages and a second fsync would report success.
//   - Descriptors are close-on-exec, so a child process never inherits a lock.
//
// # Lifetimes
//
// A File lives until Close. On Unix and Windows alike its bytes stay readable
// through open Files after the name is removed.
//
// # Platforms
//
//	             linux        darwin                     windows            others
//	Sync         fdatasync    F_FULLFSYNC                FlushFileBuffers   fsync
//	Preallocate  fallocate    F_PREALLOCATE, ftruncate   unsupported        unsupported
//	Map          mmap         no                         no                 no
//	WriteInPlace btrfs        no                         no                 no
//	SyncDir      fsync        F_FULLFSYNC                does nothing       fsync
//	Lock         flock        flock                      LockFileEx         flock on the BSDs, else unsupported
//	Watch        mmap, OFD    no                         no                 no
//
// SyncDir does nothing on Windows because the system offers no way to flush a
// directory; NTFS logs its metadata in order. Sync of a file opened by Open (for
// reading) fails there, since FlushFileBuffers asks for write access.
package vfs
