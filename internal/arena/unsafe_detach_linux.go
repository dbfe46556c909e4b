//go:build linux && !arena_heap

package arena

// Why the unsafe code here is sound: both ranges are whole mappings of this process, of the
// same size, and neither is the Go heap. Slices over b stay what they were: readable and
// writable memory at the same addresses.

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanDetach says that Detach works.
const CanDetach = true

// Detach puts ordinary memory, which save has filled with what is to be there, in the place of
// the mapping of a file. Whoever reads b meanwhile finds the one or the other. The caller ends
// the mapping as before. After an error it is as it was.
func Detach(b []byte, save func(dst []byte) error) error {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(len(b)), mapProtection, mapFlags)
	if err != nil {
		return fmt.Errorf("arena: map %d bytes: %w", len(b), err)
	}
	err = save(unsafe.Slice((*byte)(p), len(b)))
	if err == nil {
		if _, err = unix.MremapPtr(p, uintptr(len(b)), unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err == nil {
			return nil
		}
	}
	unix.MunmapPtr(p, uintptr(len(b)))
	return fmt.Errorf("arena: detach %d bytes: %w", len(b), err)
}
