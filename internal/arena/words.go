package arena

import (
	"sync/atomic"
	"unsafe"
)

// Words views off-heap bytes as atomic 64-bit words. Sound because Map and Pool
// return page-aligned memory that outlives every view by the owner's contract,
// atomic.Uint64 has the size and alignment of a uint64, and the memory holds no
// Go pointers. Trailing bytes of b that make no whole word are left out.
func Words(b []byte) []atomic.Uint64 {
	if len(b) < 8 {
		return nil
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// Halfwords views off-heap bytes as 32-bit words, under the same conditions.
func Halfwords(b []byte) []uint32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// Halves views 64-bit words of Go's memory as twice as many 32-bit ones. Sound because a uint32 needs less alignment,
// neither is a pointer, and the view keeps the words alive.
func Halves(words []uint64) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(words))), 2*len(words))
}
