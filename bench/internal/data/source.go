package data

import (
	"math/rand/v2"

	"github.com/golang/snappy"
)

// MaxValueBytes is the largest value a Source can make.
const MaxValueBytes = 1 << 20

// KeyBytes is the length of every key.
const KeyBytes = 16

// Source makes the values of one seed. It is immutable.
type Source struct {
	seed uint64
	pool []byte
}

// NewSource makes the pool of a seed, which takes some 100 ms.
func NewSource(seed uint64) *Source {
	return &Source{seed: seed, pool: makePool(seed)}
}

// Value returns the value of id at a version: size bytes (at most
// MaxValueBytes) of the pool. Different versions of an id are different windows,
// so a stale answer is told from a right one.
func (s *Source) Value(id, version uint64, size int) []byte {
	at := mix(s.seed^mix(id+1)^mix(version<<32+0xc2b2ae35)) % uint64(len(s.pool)-size+1)
	return s.pool[at : int(at)+size : int(at)+size]
}

// mix is the finaliser of splitmix64: every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Compressibility is raw size divided by snappy's, measured on the pool.
type Compressibility struct {
	Snappy4K  float64 `json:"snappy_4k"`  // in blocks of 4 KiB
	Snappy32K float64 `json:"snappy_32k"` // in blocks of 32 KiB
	Values    float64 `json:"values"`     // each value by itself
}

// Compressibility measures the pool and a sample of values of the given size.
func (s *Source) Compressibility(valueBytes int) Compressibility {
	return Compressibility{
		Snappy4K:  s.blocks(4 << 10),
		Snappy32K: s.blocks(32 << 10),
		Values:    s.values(valueBytes),
	}
}

func (s *Source) blocks(size int) float64 {
	raw, packed := 0, 0
	var buf []byte
	for at := 0; at+size <= len(s.pool); at += size {
		buf = snappy.Encode(buf[:cap(buf)], s.pool[at:at+size])
		raw, packed = raw+size, packed+len(buf)
	}
	return float64(raw) / float64(packed)
}

func (s *Source) values(size int) float64 {
	const sample = 1000
	packed := 0
	var buf []byte
	for id := range uint64(sample) {
		buf = snappy.Encode(buf[:cap(buf)], s.Value(id, 1, size))
		packed += len(buf)
	}
	return float64(sample*size) / float64(packed)
}

// Keys are the keys 0 to n-1, made beforehand so that making them is not timed.
type Keys struct{ slab []byte }

// NewKeys makes n keys.
func NewKeys(n int) Keys {
	slab := make([]byte, n*KeyBytes)
	for i := range n {
		putKey(slab[i*KeyBytes:][:KeyBytes], uint64(i))
	}
	return Keys{slab}
}

// At returns key i.
func (k Keys) At(i int) []byte {
	at := i * KeyBytes
	return k.slab[at : at+KeyBytes : at+KeyBytes]
}

func putKey(dst []byte, id uint64) {
	for i := KeyBytes - 1; i >= 0; i-- {
		dst[i] = byte('0' + id%10)
		id /= 10
	}
}

// ParseKey returns the id of a key, and whether it is one.
func ParseKey(key []byte) (id uint64, ok bool) {
	if len(key) != KeyBytes {
		return 0, false
	}
	for _, c := range key {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = id*10 + uint64(c-'0')
	}
	return id, true
}

// Sequence returns the numbers 0 to n-1 in order.
func Sequence(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// Order returns the numbers 0 to n-1 shuffled; different purposes give
// different orders.
func Order(n int, seed, purpose uint64) []int32 {
	order := Sequence(n)
	rng := rand.New(rand.NewPCG(seed, purpose))
	rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
