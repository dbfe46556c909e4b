// Package tokyo provides Tokyo Cabinet's hash database and B+tree database: only
// the calls the laboratory needs, each the library's own.
//
// It is empty without cgo and the tag native_tokyocabinet (or native).
//
// # Errors
//
// The library keeps the code of the last error per thread, and a goroutine may
// change threads between two calls into C. So each wrapper fetches the code in the
// call that failed.
//
// # Concurrency
//
// Goroutines may share a Hash or a Tree: both have the library's own locks
// (tchdbsetmutex, tcbdbsetmutex). Transactions and walks need a lock of the caller.
package tokyo
