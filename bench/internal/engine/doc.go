// Package engine provides the stores that are compared, each behind the same
// small driver: one file per engine.
//
// # What a driver is
//
// A Driver says what its engine is (Info), in what it departs from the engine's
// defaults (Settings) and how a store is opened. A Store has the four verbs every
// engine has; what only some have are interfaces of their own (Batcher, Viewer,
// KeyWalker, PairWalker, Scanner, Settler). An engine without one of these says why in Info.Cannot,
// and tables print that reason in place of a number.
//
// # Rules
//
// Defaults, or what the engine's documentation recommends for the mode, and
// nothing more. Each Put and Delete is a commit of its own and, if the store was
// opened with Sync, durable when it returns. Values are handed over in the
// engine's cheapest documented way: a slice it lends, where it lends one.
//
// # Native engines
//
// A C library is behind cgo and a build tag (native_lmdb and so on; native is all).
// Its row is always there: a program built without it says why in Info.Absent.
//
// # Concurrency
//
// One goroutine uses a Store at a time, unless the engine can be shared (CanShare). The registry is filled by init functions
// and only read afterwards.
package engine
