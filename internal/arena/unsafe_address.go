//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows) && !arena_heap

package arena

// Why the unsafe code here is sound: the pointer is only turned into a number,
// never back. The memory is outside the Go heap and does not move.

import "unsafe"

// maxMapBytes is the greatest size Map accepts: no sum of ours overflows int.
const maxMapBytes = int(^uint(0)>>1) - 4*HugeBytes

// address returns where b begins, as a number to compare and sort by.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
