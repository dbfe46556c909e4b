// Command cairn reads, writes and checks Cairn stores from the command line.
//
// What it provides: one verb per file (get.go, put.go, ...). Behind them: streams.go
// and text.go, how bytes reach standard output; record.go, the JSON documents;
// store.go, how a store is opened, create.go, where one may be made, recovery.go,
// what is said of one that was not closed; usage.go and help.go, the command line;
// failure.go and exitcodes.go, how it all ends.
//
// State: none but the flags, and how far it is, in app. It uses the store's public API; of the
// engine's internals it knows only how the directory of a store is found, how its files
// are named and begin, to tell it from any other directory, and the format's version.
//
// Concurrency: one verb, one goroutine; a signal cancels the context the verb
// checks, and ends the process a moment later if nothing else has, but while a
// store is open to be written. Only what a verb reads from standard input is read
// by a goroutine of its own, so that waiting for it can be interrupted.
//
// Invariants: verbs that do not write open the store read-only. No byte that
// could steer a terminal reaches one, unless --raw asks for it. A verb whose
// output was not written does not end with code 0, except that the reader of a
// pipe may leave early.
package main
