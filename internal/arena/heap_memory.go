//go:build arena_heap || !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package arena

import "reflect"

// This file is the twin without unsafe and without system calls: mappings are
// slices of the Go heap. It serves the platforms we have no mapping calls for,
// and, by the build tag arena_heap, runs the tests on memory that the race
// detector watches. The collector frees what was unmapped.

// maxMapBytes is the greatest size Map accepts, below what make would panic at:
// 1 GiB with 32 bits, 32 TiB more with 64.
const maxMapBytes = int(1<<30 + (^uint(0)>>63)<<45)

// The runtime aligns objects of this size to its own pages, which is all that
// is asked of it here: no mapping is mistaken for a part of another.
func mapMemory(size int) ([]byte, error) { return make([]byte, size), nil }

// available is not known: to ask for memory is to take it.
func available(int) bool { return true }

func unmapMemory([]byte) error { return nil }

func adviseHuge([]byte, bool) {}

func touchMemory([]byte) {}

func releaseMemory([]byte) bool { return false }

func address(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }
