// Package vfstest holds the one conformance suite for implementations of vfs.FS.
//
// # What it provides
//
// Run checks everything that the comments of vfs.FS and vfs.File promise and that a
// running process can see. What a power cut leaves is beyond it: the tests of memfs
// are about that.
//
// # Concurrency
//
// Each subtest gets an FS and an empty directory of its own from the caller's
// function, so implementations need not be shared. Subtests run one after another.
//
// # Lifetimes
//
// Every file and lock is closed when its subtest ends.
package vfstest
