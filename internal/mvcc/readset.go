package mvcc

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/memtable"
)

// coarsenBytes is how much memory the exact keys may take before they are
// replaced by ranges that enclose them.
const coarsenBytes = 64 << 20

// Range is a half-open range of internal keys.
type Range struct{ Low, High []byte }

// ReadSet is what a transaction has read. The zero value is empty.
type ReadSet struct {
	keys   []byte   // the exact keys, one behind the other
	ends   []uint32 // end of each key in keys
	tags   []uint32 // upper half of each key's hash
	slots  []uint32 // 1 + index of a key by tag; 0: free
	ranges []Range
	merged bool // ranges are sorted and disjoint
}

// Empty reports whether nothing has been read.
func (r *ReadSet) Empty() bool { return len(r.ends) == 0 && len(r.ranges) == 0 }

// Reset empties r and keeps small buffers for reuse.
func (r *ReadSet) Reset() {
	if len(r.slots) > 4096 {
		*r = ReadSet{}
		return
	}
	clear(r.slots)
	clear(r.ranges)
	r.keys, r.ends, r.tags, r.ranges, r.merged = r.keys[:0], r.ends[:0], r.tags[:0], r.ranges[:0], false
}

// Len returns the number of exact keys.
func (r *ReadSet) Len() int { return len(r.ends) }

// Key returns the i-th exact key.
func (r *ReadSet) Key(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = r.ends[i-1]
	}
	return r.keys[from:r.ends[i]]
}

// Ranges returns the ranges read, sorted and disjoint.
func (r *ReadSet) Ranges() []Range {
	r.merge()
	return r.ranges
}

// AddKey notes that key, whose base.Hash is hash, was read.
func (r *ReadSet) AddKey(key []byte, hash uint64) {
	tag := uint32(hash >> 32)
	if r.find(tag, key) >= 0 {
		return
	}
	if len(r.keys)+len(key)+12*len(r.ends) > coarsenBytes {
		r.coarsen()
	}
	r.keys = append(r.keys, key...)
	r.ends = append(r.ends, uint32(len(r.keys)))
	r.tags = append(r.tags, tag)
	if 3*len(r.ends) > 2*len(r.slots) {
		r.rehash()
		return
	}
	r.put(len(r.ends) - 1)
}

func (r *ReadSet) rehash() {
	r.slots = make([]uint32, max(16, 2*len(r.slots)))
	for i := range r.ends {
		r.put(i)
	}
}

func (r *ReadSet) slot(tag uint32) uint32 {
	return tag * 0x9E3779B1 >> (32 - bits.Len(uint(len(r.slots)-1)))
}

func (r *ReadSet) put(i int) {
	mask := uint32(len(r.slots) - 1)
	k := r.slot(r.tags[i])
	for r.slots[k] != 0 {
		k = (k + 1) & mask
	}
	r.slots[k] = uint32(i + 1)
}

// find returns the index of key, or -1.
func (r *ReadSet) find(tag uint32, key []byte) int {
	if len(r.slots) == 0 {
		return -1
	}
	mask := uint32(len(r.slots) - 1)
	for k := r.slot(tag); r.slots[k] != 0; k = (k + 1) & mask {
		if i := int(r.slots[k] - 1); r.tags[i] == tag && bytes.Equal(r.Key(i), key) {
			return i
		}
	}
	return -1
}

// coarsen replaces the exact keys by ranges of neighbours.
func (r *ReadSet) coarsen() {
	const together = 4096
	keys := make([][]byte, len(r.ends))
	for i := range keys {
		keys[i] = r.Key(i)
	}
	slices.SortFunc(keys, bytes.Compare)
	for part := range slices.Chunk(keys, together) {
		r.AddRange(part[0], append(slices.Clone(part[len(part)-1]), 0))
	}
	r.keys, r.ends, r.tags, r.slots = nil, nil, nil, nil
}

// AddRange notes that every key in [low, high) was looked at.
func (r *ReadSet) AddRange(low, high []byte) {
	if bytes.Compare(low, high) >= 0 {
		return
	}
	if n := len(r.ranges); n > 0 && bytes.Equal(r.ranges[n-1].Low, low) && bytes.Equal(r.ranges[n-1].High, high) {
		return
	}
	r.ranges = append(r.ranges, Range{bytes.Clone(low), bytes.Clone(high)})
	r.merged = false
	if len(r.ranges) >= 1024 && len(r.ranges)&(len(r.ranges)-1) == 0 {
		r.merge()
	}
}

func (r *ReadSet) merge() {
	if r.merged {
		return
	}
	slices.SortFunc(r.ranges, func(a, b Range) int { return bytes.Compare(a.Low, b.Low) })
	out := r.ranges[:0]
	for _, next := range r.ranges {
		if n := len(out); n > 0 && bytes.Compare(next.Low, out[n-1].High) <= 0 {
			if bytes.Compare(next.High, out[n-1].High) > 0 {
				out[n-1].High = next.High
			}
			continue
		}
		out = append(out, next)
	}
	r.ranges, r.merged = out, true
}

// Conflict says what a transaction read and somebody else wrote.
type Conflict struct {
	Low, High []byte // High nil: the single key Low
	Seq       uint64
}

// Check looks for a conflict with the records from..to-1 of t.
func (r *ReadSet) Check(t *memtable.Table, from, to int) *Conflict {
	r.merge()
	whole := len(r.ranges) > 0 || t.HasRangeDeletes()
	for i := from; i < to; i++ {
		if !whole && !r.mayHave(t.Tag(i)) {
			continue
		}
		rec := t.Record(i)
		if c := r.checkRecord(&rec); c != nil {
			return c
		}
	}
	return nil
}

// mayHave reports whether some exact key has the given tag.
func (r *ReadSet) mayHave(tag uint32) bool {
	if len(r.slots) == 0 {
		return false
	}
	mask := uint32(len(r.slots) - 1)
	for k := r.slot(tag); r.slots[k] != 0; k = (k + 1) & mask {
		if r.tags[r.slots[k]-1] == tag {
			return true
		}
	}
	return false
}

func (r *ReadSet) checkRecord(rec *memtable.Record) *Conflict {
	if rec.Kind == base.KindRangeDelete {
		return r.CheckRange(rec.Key, rec.Value, rec.Seq)
	}
	if r.find(rec.Tag, rec.Key) >= 0 || r.InRange(rec.Key) {
		return &Conflict{Low: bytes.Clone(rec.Key), Seq: rec.Seq}
	}
	return nil
}

// InRange reports whether key lies in a range that was read.
func (r *ReadSet) InRange(key []byte) bool {
	r.merge()
	i, found := slices.BinarySearchFunc(r.ranges, key, func(g Range, key []byte) int { return bytes.Compare(g.Low, key) })
	return found || i > 0 && bytes.Compare(key, r.ranges[i-1].High) < 0
}

// CheckRange looks for a conflict with a deletion of [low, high).
func (r *ReadSet) CheckRange(low, high []byte, seq uint64) *Conflict {
	for i := range r.ends {
		if k := r.Key(i); bytes.Compare(k, low) >= 0 && bytes.Compare(k, high) < 0 {
			return &Conflict{Low: bytes.Clone(k), Seq: seq}
		}
	}
	for _, g := range r.Ranges() {
		if bytes.Compare(g.Low, high) < 0 && bytes.Compare(low, g.High) < 0 {
			return &Conflict{Low: bytes.Clone(low), High: bytes.Clone(high), Seq: seq}
		}
	}
	return nil
}
