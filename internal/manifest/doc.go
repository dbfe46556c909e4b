// Package manifest keeps the durable description of a store: which tables there
// are and at which level, which log segments are live, and the few numbers that
// go with them.
//
// # What it provides
//
// Version is the set of tables, State a version with everything else the manifest
// says, Edit one change of it, Log the file edits are appended to. Recover reads a
// store's state, Obsolete says which files of its directory are garbage.
//
// # Format
//
// docs/format/manifest.md.
//
// # Concurrency
//
// Version, State and decoded edits are immutable once published. Log may be used
// by many goroutines; appends are serialised, and State, SealedThrough, Size and
// Bloated never wait for an append in progress.
//
// # Invariants
//
//   - An edit is validated against the state before a byte of it is written, so a
//     log never holds an edit that recovery would refuse.
//   - When Append returns nil the edit is synced, and all before it; what AppendUnsynced
//     has written no mark or seal speaks of until it is. When either returns an error that
//     matches base.ErrNoSpace nothing of it stands in the file and the log goes on.
//   - After a failed write or sync a log refuses everything: it is never retried.
//   - CURRENT names a manifest only after that manifest and its name are durable.
//
// # Lifetimes
//
// States and versions live as long as somebody holds them; they own no files.
// Tables are shared between versions by pointer. A Log owns its file until Close.
package manifest
