package memtable

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/recycle"
)

// sortKey is eight key bytes behind the chunk's common prefix, and the record.
type sortKey struct {
	head uint64
	rec  uint32
}

// sorter is the memory of a sort, which is used again unless it is large: the Go heap is
// not counted to Memory.
type sorter struct{ keys, spare []sortKey }

var sorters recycle.Pool[sorter]

// keptKeys is how many keys a sorter may have room for that is kept: two megabytes.
const keptKeys = 64 << 10

func (s *sorter) recycle() {
	if cap(s.keys) <= keptKeys {
		sorters.Put(s)
	}
}

// sortChunk returns the puts and deletes among the records by key, newest first.
func (t *Table) sortChunk(from, to int) []uint32 {
	s := sorters.Get()
	defer s.recycle()
	skip := t.commonPrefix(from, to)
	s.keys = slices.Grow(s.keys[:0], to-from)
	shortest, longest := base.MaxKeyBytes, 0
	for rec := from; rec < to; rec++ {
		if kind, key := t.key(uint32(rec)); kind != base.KindRangeDelete {
			s.keys = append(s.keys, sortKey{head(key[skip:]), uint32(rec)})
			shortest, longest = min(shortest, len(key)), max(longest, len(key))
		}
	}
	s.sort()
	if shortest < longest || longest-skip > 8 { // else keys of one head are the same
		t.sortTies(s.keys)
	}
	chunk := make([]uint32, len(s.keys))
	for i, k := range s.keys {
		chunk[i] = k.rec
	}
	return chunk
}

// fewKeys are sorted by comparisons.
const fewKeys = 128

// sort sorts the keys, which come by record, by head, and those of one head by record,
// the newest first. Keys that come in order, as a load's often do, cost one look. Others
// are sorted by their bytes, the last one first, those that are the same everywhere left
// out (LSD radix sort).
func (s *sorter) sort() {
	ordered, differ := true, uint64(0)
	for i := 1; i < len(s.keys); i++ {
		ordered = ordered && s.keys[i-1].head < s.keys[i].head
		differ |= s.keys[i-1].head ^ s.keys[i].head
	}
	if ordered {
		return
	}
	if len(s.keys) <= fewKeys {
		slices.SortFunc(s.keys, func(a, b sortKey) int { return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(b.rec, a.rec)) })
		return
	}
	slices.Reverse(s.keys) // every pass keeps the order of equals
	s.spare = slices.Grow(s.spare[:0], len(s.keys))[:len(s.keys)]
	for shift := bits.TrailingZeros64(differ) &^ 7; shift < 64; shift += 8 {
		if differ>>shift&0xFF != 0 {
			s.pass(shift)
		}
	}
}

// pass sorts by the eight bits from shift on.
func (s *sorter) pass(shift int) {
	var next [256]int
	for i := range s.keys {
		next[s.keys[i].head>>shift&0xFF]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
	}
	for _, k := range s.keys {
		b := k.head >> shift & 0xFF
		s.spare[next[b]] = k
		next[b]++
	}
	s.keys, s.spare = s.spare, s.keys
}

// sortTies sorts runs of the same head: their keys may differ further on.
func (t *Table) sortTies(keys []sortKey) {
	for i := 0; i < len(keys); {
		end := i + 1
		for end < len(keys) && keys[end].head == keys[i].head {
			end++
		}
		if end-i > 1 {
			slices.SortFunc(keys[i:end], func(a, b sortKey) int { return t.compare(a.rec, b.rec) })
		}
		i = end
	}
}

// commonPrefix returns how many first bytes all keys of the records share.
func (t *Table) commonPrefix(from, to int) int {
	var first []byte
	n := 0
	for rec := from; rec < to; rec++ {
		kind, key := t.key(uint32(rec))
		if kind == base.KindRangeDelete {
			continue
		}
		if first == nil {
			first, n = key, len(key)
		}
		n = base.CommonPrefix(first[:n], key)
	}
	return n
}

// head returns the first eight bytes of key as a number that orders like them.
func head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
