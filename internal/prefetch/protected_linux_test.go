package prefetch

import (
	"sync/atomic"
	"syscall"
	"testing"
)

// Memory that may not be read is no fault.
func TestProtected(t *testing.T) {
	m, err := syscall.Mmap(-1, 0, 3*syscall.Getpagesize(), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m)
	Lines(m)
	Lines(m[len(m)-1:])
	Lines(m[1:77])
	Byte(&m[77])
	var none *atomic.Uint64
	Word(none)
}
