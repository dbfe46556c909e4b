// Package syncs provides a count of the system calls by which another process
// makes data durable, and says for each commit of it whether one of them stood
// behind it.
//
// # Method
//
// The child installs a seccomp filter on itself before it does anything else and
// executes itself again, so that every thread of every language, and every process
// it starts, has the filter. The kernel then reports each call of a short list to
// this process, which counts it and lets it go on (seccomp user notification,
// Linux 5.5). Compared with a ptrace tracer: calls that are not on the list cost
// nothing and never stop, no signal is diverted, no thread can be missed or found
// gone, it needs no ptrace permission, and a debugger or strace still fits on top.
//
// Counted are fsync, fdatasync, msync with MS_SYNC, syncfs, sync, and writes to
// files opened with O_SYNC or O_DSYNC or written with RWF_SYNC or RWF_DSYNC. A call
// counts only for a file of the store. sync_file_range is counted by itself: it
// orders neither metadata nor the disk's cache, so it makes nothing durable.
//
// # Commits
//
// The child tells where a commit begins and where it was acknowledged by calls that
// do nothing but are on the list (Begin, End). The kernel holds each caller until
// it is answered, so the order is exact. A sync is held for a moment before it may
// go on: an engine that acknowledges without waiting for its own sync is seen.
//
// # Invariants
//
// A commit counts as durable only if a sync began after its beginning and was let
// go before its acknowledgement. Which file of the store it is of, and whether what was
// written was written before it, is not looked at: writes to mapped files are no calls. So a
// commit that counts as not durable is not, and one that counts as durable is if the engine
// syncs what it has written. Whether the sync then succeeds is the engine's to
// see: the result of a call is not known here.
//
// # Concurrency
//
// A Tracer serves one child, from one goroutine of its own.
package syncs
