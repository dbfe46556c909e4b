package base

import "math/bits"

// Every internal key begins with a bucket prefix: one byte n in 0..8, then the
// bucket's id as n big-endian bytes without leading zeros. The root bucket has
// id 0 and so the prefix 00. A prefix byte of FF is reserved for the system's
// own keys. Prefixes sort by id, and no prefix is a prefix of another, so every
// bucket is one contiguous range of keys.

// MaxKeyBytes is the length limit of an internal key.
const MaxKeyBytes = 9 + MaxUserKeyBytes

// AppendBucketPrefix appends the prefix of bucket id.
func AppendBucketPrefix(dst []byte, id uint64) []byte {
	n := (bits.Len64(id) + 7) / 8
	dst = append(dst, byte(n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(id>>(8*i)))
	}
	return dst
}

// CutBucketPrefix splits an internal key into the bucket's id and the user's key.
func CutBucketPrefix(key []byte) (id uint64, user []byte, ok bool) {
	if len(key) == 0 || key[0] > 8 || len(key) < 1+int(key[0]) {
		return 0, nil, false
	}
	n := int(key[0])
	for _, b := range key[1 : 1+n] {
		id = id<<8 | uint64(b)
	}
	if n > 0 && key[1] == 0 {
		return 0, nil, false
	}
	return id, key[1+n:], true
}

// PrefixEnd returns the smallest byte string greater than every string that
// begins with prefix, or nil if there is none (prefix is empty or all FF).
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
