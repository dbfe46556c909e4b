//go:build arena_heap || !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package arena

import "reflect"

// This file is the twin without unsafe and without system calls: mappings are
// slices of the Go heap. It serves the platforms we have no mapping calls for,
// and, by the build tag arena_heap, runs the tests on memory that the race
// detector watches. The collector frees what was unmapped.

// maxMapBytes is the greatest size Map accepts: a refusal instead of a panic.
const maxMapBytes = int(^uint(0)>>1) / 2

// The runtime aligns objects of this size to its own pages, which is all that
// is asked of it here: no mapping is mistaken for a part of another.
func mapMemory(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapMemory([]byte) error { return nil }

func adviseHuge([]byte, bool) {}

func releaseMemory([]byte) bool { return false }

func address(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }
