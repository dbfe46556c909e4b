package data

import "strconv"

// KeyBytes is the length of keys unless another is asked for.
const KeyBytes = 16

// MaxKeyBytes is the longest key that every engine takes (LMDB's limit).
const MaxKeyBytes = 511

// Keys are the keys 0 to n-1 in byte order, made beforehand so that making them
// is not timed.
type Keys struct {
	slab   []byte
	size   int
	own    [][]byte          // of the user, in place of the slab
	number map[string]uint64 // of own
}

// NewKeys makes n keys of KeyBytes.
func NewKeys(n int) Keys { return NewSizedKeys(n, KeyBytes) }

// LeastKeyBytes is the shortest size at which n keys differ.
func LeastKeyBytes(n int) int { return len(strconv.Itoa(max(n-1, 0))) }

// NewSizedKeys makes n keys of size bytes, which is at least LeastKeyBytes(n).
func NewSizedKeys(n, size int) Keys {
	slab := make([]byte, n*size)
	for i := range n {
		putKey(slab[i*size:][:size], uint64(i))
	}
	return Keys{slab: slab, size: size}
}

// OwnKeys are given keys, which differ; iteration needs them sorted.
func OwnKeys(keys [][]byte) Keys {
	k := Keys{own: keys, number: make(map[string]uint64, len(keys))}
	for i, key := range keys {
		k.number[string(key)] = uint64(i)
	}
	return k
}

// At returns key i.
func (k Keys) At(i int) []byte {
	if k.own != nil {
		return k.own[i]
	}
	at := i * k.size
	return k.slab[at : at+k.size : at+k.size]
}

// Len is how many keys there are.
func (k Keys) Len() int {
	if k.own != nil {
		return len(k.own)
	}
	return len(k.slab) / k.size
}

// ID returns the number of a key, and whether it could be one of these.
func (k Keys) ID(key []byte) (id uint64, ok bool) {
	if k.own != nil {
		id, ok = k.number[string(key)]
		return id, ok
	}
	if len(key) != k.size {
		return 0, false
	}
	return parseDigits(key)
}

// Bytes is the length of the first n keys together.
func (k Keys) Bytes(n int) (total int64) {
	if k.own == nil {
		return int64(n) * int64(k.size)
	}
	for _, key := range k.own[:n] {
		total += int64(len(key))
	}
	return total
}

func putKey(dst []byte, id uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + id%10)
		id /= 10
	}
}

// ParseKey returns the id of a key of KeyBytes, and whether it is one.
func ParseKey(key []byte) (id uint64, ok bool) {
	if len(key) != KeyBytes {
		return 0, false
	}
	return parseDigits(key)
}

// parseDigits refuses what does not fit 64 bits: zeros in front do.
func parseDigits(key []byte) (id uint64, ok bool) {
	const tooMuch = (1<<64 - 1) / 10
	for _, c := range key {
		if c < '0' || c > '9' || id >= tooMuch {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, true
}
