// Package scratch provides directories that do not outlive who uses them, even one
// that is killed.
//
// # State
//
// Each directory has a file in it, the mark, which says what it is and is locked as long
// as its owner lives. The lock ends with the process, however that ends, so a mark that
// can be locked belongs to an owner that was killed: the next Make in the same place
// removes its directory. What has another name, is no directory or has no such mark is
// not known to be ours and stays.
//
// # Concurrency
//
// Safe for use by several goroutines and processes.
package scratch
