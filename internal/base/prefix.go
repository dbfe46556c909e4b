package base

import "encoding/binary"

// CommonPrefix returns how many first bytes a and b have in common.
func CommonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Head returns the first eight bytes of key as a number that orders like them.
func Head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	return shortHead(key)
}

// HeadBehind is Head of what stands behind the first n bytes of key.
func HeadBehind(key []byte, n int) uint64 {
	if last := len(key) - 8; last >= 0 && n > last {
		return binary.BigEndian.Uint64(key[last:]) << (8 * (n - last))
	}
	return Head(key[n:])
}

func shortHead(key []byte) uint64 {
	var h uint64
	for i, c := range key {
		h |= uint64(c) << (56 - 8*i)
	}
	return h
}
