//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd) && !arena_heap

package arena

// Why the unsafe code here is sound. The pointers come from mmap and lead to
// memory outside the Go heap, which the garbage collector neither moves nor
// frees nor scans; a slice over it is an ordinary pointer, length and capacity.
// Each slice made here covers exactly the bytes of one anonymous private
// mapping of ours, readable and writable, that stays until unmapMemory, whose
// caller vouches that nobody uses the bytes any more. Arithmetic stays within
// the mapping. The twin without unsafe is heap_memory.go, tested by the same
// tests under the build tag arena_heap.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mapProtection = unix.PROT_READ | unix.PROT_WRITE
	mapFlags      = unix.MAP_ANON | unix.MAP_PRIVATE
)

// mapMemory maps size bytes, a multiple of the page size, aligned to HugeBytes
// if they are at least that many: otherwise no huge page would fit in.
func mapMemory(size int) ([]byte, error) {
	if size < HugeBytes {
		return mapExactly(size)
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size+HugeBytes), mapProtection, mapFlags)
	if err != nil {
		return mapExactly(size)
	}
	before := -uintptr(p) & (HugeBytes - 1)
	start := unsafe.Add(p, before)
	if before > 0 {
		err = unix.MunmapPtr(p, before)
	}
	if after := HugeBytes - before; err == nil && after > 0 {
		err = unix.MunmapPtr(unsafe.Add(start, size), after)
	}
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(start), size), nil
}

func mapExactly(size int) ([]byte, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), mapProtection, mapFlags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func unmapMemory(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// available reports whether the system would give n bytes more.
func available(n int) bool {
	b, err := mapExactly(roundUp(n, pageBytes))
	return err == nil && unmapMemory(b) == nil
}
