// Package cache keeps decoded pages of tables in memory, off the Go heap, and
// hands them out by direct pointer.
//
// A table embeds a Slot for each of its pages. A reader inside an epoch loads
// the slot's pointer and has the page: no lookup, no lock, no reference count,
// no allocation. Where the pointer is nil it calls Fill, which makes room, reads
// the page once for all who ask for it, and publishes it.
//
// # State
//
// A page is its header (Page, on the Go heap, a few dozen bytes) and its bytes
// (in an arena.Heap, as whole frames, counted as arena.ClassPages of a budget the
// cache shares with the rest of the store). A resident page is in exactly one of
// four queues:
//
//	once    pages just read for one row, while memory is scarce: 1 MiB
//	fresh   the newest 1/16 of the resident bytes: pages just read
//	aged    pages that left fresh; together with fresh they are "on probation"
//	main    pages that were asked for again
//
// # Which page goes
//
// The rule joins 2Q (Johnson and Shasha, VLDB 1994) and CLOCK (Corbato 1968); its
// queues are those of S3-FIFO (Yang et al., SOSP 2023), with time in place of
// counts. A hit only sets a reference bit. A page enters fresh. The many touches
// of the visit that brought it in (a scan walks all its rows) fall into that
// time and prove nothing, so the bit is cleared when the page moves on to aged.
// At the end of aged, a page that was touched since goes to main, any other one
// is evicted. The end of main is a second-chance clock: touched pages go around
// again, others are evicted. Victims come from probation while it holds more than
// an eighth of the resident bytes, otherwise from main. An evicted page leaves the
// time of its eviction in its slot, measured in bytes evicted: if it is read again
// before 3/4 of the resident bytes have been evicted, it goes to main at once.
//
// So a scan of any length flows through an eighth of the memory, and pages asked
// for twice with some time between them stay. On skewed reads (Zipf 1.2, memory for
// 23 % of the pages) 73.0 % hit, 69.2 % with LRU; a probation of 1/4 gave 71.6, of
// 1/10 73.2. The ghost entries of 2Q and
// S3-FIFO, a table of the keys evicted last, are four bytes in the slot here.
// Pinned pages are passed over. Plain LRU and plain CLOCK were rejected because
// one scan empties them; LRU also because a hit must write shared memory.
//
// # Scarce memory
//
// While the decoded pages of all tables would take more than the budget (SetScarce), memory
// is for what is asked for again soon; the rest is left to the operating system, whose
// cache has the same blocks compressed, so more of them. A block that it lacks costs a read
// of the disk, one that it has a decompression. What is soon is measured in bytes evicted,
// and in the room that pages can count on, half of the budget:
//
//   - A page that is read for one row (FillOnce) enters once, not fresh, and leaves it in
//     the order of coming, touched or not: it is there for gets of its neighbours that
//     follow at once. If it is read again within 3/4 of the room, it goes to main.
//   - fresh and aged together hold at most a quarter of the room.
//   - Pages of main that were not touched for the length of the room are evicted.
//
// So main is as large as what is asked for again within the room, however long uniform
// reads go on (docs/TRIED.md has what this gains).
//
// # Budget
//
// Pages are admitted without evicting up to a soft limit, 5 % below the budget
// (for small budgets more, see room.go). Beyond, as many bytes are evicted as
// are read, counting what is on its way out. The memory of victims comes back
// when the epoch has passed, soonest when the caller itself has left; the margin
// is there to cover that time; when it is used up, Fill yields the processor a few
// times to let readers out. A read never fails because of the budget: if all pages
// are pinned, or a reader stays inside for long, it is exceeded, Stats.Overcommits
// counts it, and the excess goes back to the system as soon as pages are freed. Where
// the system gives less than the budget the heap lowers that while there is still some;
// who needs memory for something else has pages give way (GiveWay), at most five times,
// a 16th of them at first and at last all.
//
// # Concurrency
//
// All methods may be called from any goroutine. Cache.mu guards the queues and
// every store to a slot; reads are shared through one of 32 flight locks; neither
// is held while reading, nor while functions retired to the epoch domain run. Lock
// order: Cache.mu, then the heap's. The contents of a page are published by the
// atomic store to its slot and never change afterwards.
//
// # Invariants
//
//  1. A page is in a queue if and only if its slot points to it (under Cache.mu).
//  2. An unlinked page is retired exactly once: unlinking takes it out of the
//     queue, and only queued pages are unlinked.
//  3. A page's bytes are freed exactly once, when no reader can have them.
//  4. A reader gets a page from its slot, or because it published the page itself,
//     while inside its epoch. Those who waited for another's read must look into
//     the slot: the page may have been evicted before they entered their epoch,
//     and live only until the one who read it leaves his.
//
// The argument for 3. The state word of a page holds the number of pins and the
// flag dead. The epoch domain runs expire once, when everyone who was inside an
// epoch at the time of unlinking has left; expire sets dead by an atomic
// read-modify-write that returns the pins of that very instant. Pin is legal only
// inside the epoch in which the page was loaded, or on top of another pin.
//
//   - After dead is set no one is inside an epoch in which the page can have been
//     loaded, so a further Pin is legal only while the number of pins is above 0:
//     once it is 0 with dead set, it stays 0. That state is entered once.
//   - If expire found 0 pins, its own operation entered that state and it frees;
//     no Unpin can follow, since there is nothing to unpin.
//   - If it found more, it leaves the page as a zombie. Each Unpin sees the word
//     that its own decrement produced; exactly one of them produces (0, dead), and
//     that one frees.
//   - An Unpin that produced (0, not dead) does not free. The page is still linked,
//     or still waits for its epoch, and expire will come. That Unpin may still be
//     about to count its bytes as unpinned while expire frees: it uses only the
//     header then, which belongs to the garbage collector, not the bytes.
//
// # Lifetimes
//
// A page is valid inside the epoch in which it was loaded and while pinned. Slots
// belong to the table; a resident page refers to its slot and so keeps the table's
// slots alive until Drop or eviction. Close unlinks everything; pages pinned then
// are reported and stay valid until their last Unpin.
package cache
