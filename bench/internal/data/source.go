package data

import (
	"math/rand/v2"

	"github.com/golang/snappy"
)

// MaxValueBytes is the largest value a Source can make.
const MaxValueBytes = 1 << 20

// Source makes the values of one seed. It is immutable.
type Source struct {
	seed    uint64
	pool    []byte
	records [][]byte // of the user, in place of windows into the pool
}

// NewSource makes the pool of a seed, which takes some 100 ms, or reads it (UsePools).
func NewSource(seed uint64) *Source {
	return &Source{seed: seed, pool: pool(seed)}
}

// Value returns the value of id at a version: size bytes (at most
// MaxValueBytes) of the pool. Different versions of an id are different windows,
// so a stale answer is told from a right one. With records of the user the size is
// theirs: version 0 of an id is the record of that number.
func (s *Source) Value(id, version uint64, size int) []byte {
	if len(s.records) > 0 {
		return s.records[(id+version)%uint64(len(s.records))]
	}
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
		Values:    s.ValueCompressibility(valueBytes),
	}
}

func (s *Source) blocks(size int) float64 {
	raw, packed := 0, 0
	var buf []byte
	for at := 0; at < len(s.pool); at += size {
		block := s.pool[at:min(at+size, len(s.pool))]
		buf = snappy.Encode(buf[:cap(buf)], block)
		raw, packed = raw+len(block), packed+len(buf)
	}
	return float64(raw) / float64(packed)
}

// ValueCompressibility is that of values of a size, each by itself.
func (s *Source) ValueCompressibility(size int) float64 {
	const sample = 1000
	raw, packed := 0, 0
	var buf []byte
	for id := range uint64(sample) {
		v := s.Value(id, 1, size)
		buf = snappy.Encode(buf[:cap(buf)], v)
		raw, packed = raw+len(v), packed+len(buf)
	}
	return float64(raw) / float64(packed)
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
