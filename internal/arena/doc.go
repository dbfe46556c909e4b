// Package arena provides memory outside the Go heap, which the garbage
// collector neither scans nor counts, and the budget that bounds it.
//
// Four layers: Map and Unmap are the operating system's mappings; Heap cuts
// them into frames for decoded pages; Pool recycles big buffers such as the
// arenas of memtables; Budget counts what all of them, and others, spend.
//
// # State
//
// A Heap holds chunks of 2 MiB, sorted by address, each cut into frames of
// 4 KiB (or the system's page size). An allocation is a run of frames in one
// chunk; a request beyond 2 MiB is a mapping of its own. A frame is in use, free
// and dirty (memory stands behind it), or free and clean (none does). Dirty and
// used frames count toward the budget, clean ones do not. An allocation of half a
// frame or less is a piece of a frame in use, a slab, whose pieces are all of the same
// size (Bonwick, USENIX 1994): it goes where there is a free one. A slab counts as a
// whole, and its frame is free when its last piece is.
//
// Placement is first fit by address: first among dirty frames, as touching fresh
// memory costs 4-8 us per 4 KiB, then among all free frames, then in a new chunk.
// Neighbouring free frames are one run by nature of the bitmap. If the limit has
// room for a whole chunk, and there are others, it asks for huge pages and counts at
// once; otherwise it forbids them, so that memory is taken frame by frame: small
// budgets hold, and a store of a few pages does not take 2 MiB for them.
// An allocation that would exceed its limit first gives dirty frames elsewhere
// back to the system (and forbids huge pages in that chunk, or the kernel would
// fill the holes again): fragmentation costs page faults, never an allocation.
// Of wholly free chunks one is kept. While the budget as a whole is exceeded, free
// memory goes back to the system at once.
//
// The system may give less than the limit allows (RLIMIT_AS, RLIMIT_DATA, addresses of 32 bit, the number of
// mappings). A heap that maps a chunk looks whether as much as others may need could be mapped beside it; if not, the
// budget's limit falls below what is used (Budget.Lower), so that everybody makes room as if the limit had been that
// from the beginning, and what cannot be mapped is ErrNoRoom where there is a limit. The limit grows again with time.
//
// # Concurrency
//
// Everything may be used from any goroutine. Heap and Pool have one mutex each;
// Budget is atomic counters, and admits what it is told: a Heap compares with the
// limit under its own mutex, so two spenders of one budget can together pass the
// limit by what they allocate at one moment.
//
// # Invariants
//
//	counted = frames in use + dirty free frames + mappings of their own, in bytes
//	Budget.UsedBy(class) is the sum of counted over the class's heaps and pools
//	clean is a subset of free; every free chunk frame is in free exactly once
//	Mapped() + Kept() = the sum of all mappings that were not unmapped, process-wide
//
// # Lifetimes
//
// Memory belongs to whoever allocated it until Free, Put or Unmap. Close unmaps
// what is free, or leaves it for a second to the next store (kept.go); memory still handed out stays valid and goes as it is freed, so
// that a forgotten reader is a leak and not a crash. Where assertions are on,
// freed memory is overwritten with 0xDB and a double Free panics; otherwise it
// is ErrNotAllocated.
package arena
