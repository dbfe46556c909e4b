//go:build (darwin || dragonfly || freebsd || netbsd || openbsd) && !arena_heap

package arena

// Why the unsafe code here is sound: see unsafe_unix.go. b is whole pages of one
// of our own mappings whose contents nobody needs, so replacing them in place
// changes nothing but the contents.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// remapMemory puts fresh zero pages in the place of those behind b. It serves
// the systems whose MADV_DONTNEED promises neither zeros nor memory given back.
func remapMemory(b []byte) bool {
	p := unsafe.Pointer(unsafe.SliceData(b))
	_, err := unix.MmapPtr(-1, 0, p, uintptr(len(b)), mapProtection, mapFlags|unix.MAP_FIXED)
	return err == nil
}
