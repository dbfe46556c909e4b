// Package recovery replays the log of a store that was not closed.
//
// # What it provides
//
// Log.Run loads the segments the manifest names, puts them in order by their
// links, applies the torn-tail rule (docs/format/log.md), and turns what is whole
// into memtables over the bytes that were read, and those into tables. Opened
// read-only it keeps the memtables and writes nothing.
//
// # Concurrency
//
// For one goroutine.
//
// # Invariants
//
// E6: what a recovered store rests on is in synced tables, never in the page cache
// only. Nothing counts until it is recorded in a manifest; if Run fails before, the
// tables in Written are the engine's to remove. What Run has recorded in steps stays.
package recovery
