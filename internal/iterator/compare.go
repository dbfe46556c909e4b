package iterator

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/cairndb/cairn/internal/base"
)

// less reports whether a < b.
func less(a, b []byte) bool {
	if pa, pb := base.Head(a), base.Head(b); pa != pb {
		return pa < pb
	}
	return compareTied(a, b) < 0
}

// compareTied is bytes.Compare for keys with the same prefix. Their lengths, or the next
// eight bytes, mostly decide, without a call.
func compareTied(a, b []byte) int {
	if len(a) <= 8 || len(b) <= 8 { // the shorter and zeros are the longer one's prefix
		return cmp.Compare(len(a), len(b))
	}
	if len(a) >= 16 && len(b) >= 16 {
		pa, pb := binary.BigEndian.Uint64(a[8:]), binary.BigEndian.Uint64(b[8:])
		if pa != pb {
			return cmp.Compare(pa, pb)
		}
	}
	return bytes.Compare(a, b)
}

// equal is bytes.Equal. Neighbouring keys mostly differ in their last byte.
func equal(a, b []byte) bool {
	n := len(a)
	return n == len(b) && (n == 0 || a[n-1] == b[n-1] && bytes.Equal(a, b))
}
