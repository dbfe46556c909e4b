package crashtest

import (
	"bytes"
	"testing"
)

// TestWithoutReserved: what is left has a page of zeros behind what was written, if there is one, and not many more.
func TestWithoutReserved(t *testing.T) {
	for _, written := range []int{0, 1, 4095, 4096, 4097, 9000} {
		for _, zeros := range []int{0, 1, 4095, 4096, 4097, 8192, 100_000} {
			buf := append(bytes.Repeat([]byte{1}, written), make([]byte, zeros)...)
			got := len(withoutReserved(buf))
			if got > len(buf) || got < min(len(buf), written+len(zeroPage)) || got > written+2*len(zeroPage) {
				t.Errorf("%d bytes, %d zeros: %d are left", written, zeros, got)
			}
		}
	}
}
