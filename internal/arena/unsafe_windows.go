//go:build windows && !arena_heap

package arena

// Why the unsafe code here is sound: VirtualAlloc returns the address of memory
// outside the Go heap as an integer. It is reinterpreted as a pointer once, right
// where it was received; the slice covers exactly the bytes that were committed.
// The memory stays until unmapMemory, whose caller vouches that nobody uses it.

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapMemory(size int) ([]byte, error) {
	base, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&base)), size), nil
}

func unmapMemory(b []byte) error {
	return windows.VirtualFree(address(b), 0, windows.MEM_RELEASE)
}

func adviseHuge([]byte, bool) {}

func touchMemory([]byte) {}

// releaseMemory decommits the pages and commits fresh ones, which are zero. If
// the second step fails the pages would be gone, so it is tried until there is
// memory again: it was ours a moment ago.
func releaseMemory(b []byte) bool {
	if windows.VirtualFree(address(b), uintptr(len(b)), windows.MEM_DECOMMIT) != nil {
		return false
	}
	for {
		_, err := windows.VirtualAlloc(address(b), uintptr(len(b)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
		if err == nil {
			return true
		}
		windows.SleepEx(1, false)
	}
}

// available reports whether the system would give n bytes more.
func available(n int) bool {
	b, err := mapMemory(roundUp(n, pageBytes))
	return err == nil && unmapMemory(b) == nil
}
