// Package memtable indexes the entries of one log segment, or of one open
// transaction, by key.
//
// # What it provides
//
// A Table does not own its entries: they stand in a buffer (the segment's arena,
// or the transaction's) as frame.AppendEntry encoded them. The table adds, per
// entry, 32-bit columns: where the entry stands, the previous version of
// its key, and a hash; and hash slots that lead from a key to its newest version, and to where that stands (slot.go).
// The i-th entry has the sequence base+i, so sequences are not stored.
//
// Keys before longer values are far from each other. They are copied side by side, as
// far as there is room, so that sorting, seeking and walking keys does not miss the
// cache for each: a scan of 10,000 keys with values of 4 KB takes a sixth less
// (cairn-bench run -suite w1/sound -sync off -engines cairn, the least of seven).
//
// Puts and gets never touch an ordered structure. Order is made when somebody
// asks (order.go, sort.go): what is new since the last time is sorted as one chunk, and
// chunks merge geometrically. A chunk has the first bytes of its keys together in memory
// (chunk.go); if these are the whole keys, no record is read to walk them. A Stack is the order of several tables, as one; a table has one of its own,
// for who writes it out and for transactions.
//
// # Concurrency
//
// One writer at a time calls Insert; any number of goroutines read meanwhile. A
// record's columns are written before the slot or the count that publishes them
// is stored atomically; range deletes that are inserted together hide what they do once all of them are, which
// is before anybody has a snapshot that sees them. A transaction's table (NewGrowing) is for one goroutine. Any number
// of goroutines may use a Stack.
//
// # Invariants
//
//	M1 a slot's record is the newest version of its key inserted so far
//	M2 prev leads from each version to the next older one of the same key
//	M3 records at or behind the limit (Truncate) are never returned, but by an iterator up
//	   to a sequence, which they are behind: its user does not look at them
//	M4 a copy is written before its record is published, and never changed
//	M5 chunks are handed out only to who has given the very tables they are of, so
//	   that no key is read of a table that has gone
//	M6 a Stack leaves out a version only if a newer one hides it that everybody sees who has
//	   a snapshot, or begins one later: not one that was truncated, whose sequence another
//	   record may have by then
//	M7 which records an iterator up to a sequence passes over is the same in both
//	   directions, so that steps can be counted and taken back
//
// # Lifetimes
//
// Keys and values returned alias the buffer. The owner keeps the buffer alive
// while anybody reads.
package memtable
