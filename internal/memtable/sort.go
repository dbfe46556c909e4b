package memtable

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/recycle"
)

// ref leads to a record, in the order of a set of tables.
type ref struct {
	head uint64 // eight bytes of its key behind what all keys of the chunk begin with
	at   uint64 // number of the table<<33 | number of the record<<1 | 1 if the ref before is of the same key
}

// older marks the ref of a version that is not the newest of its key in the chunk.
const older = 1

func makeRef(num, rec uint32, head uint64) ref { return ref{head, uint64(num)<<33 | uint64(rec)<<1} }

func (r ref) num() uint32 { return uint32(r.at >> 33) }
func (r ref) rec() uint32 { return uint32(r.at >> 1) }

// newerFirst orders refs of one key.
func newerFirst(a, b ref) int { return cmp.Compare(b.at, a.at) }

// set is tables with consecutive numbers, which records are ordered of: the oldest first.
type set struct {
	first  uint32 // number of the first one
	tables []*Table
}

func (s *set) key(r ref) []byte {
	_, key := s.tables[r.num()-s.first].key(r.rec())
	return key
}

// span is consecutive records of a table.
type span struct {
	t        *Table
	num      uint32
	from, to int
}

// sorter is the memory of a sort, which is used again unless it is large: the Go heap is
// not counted to Memory.
type sorter struct{ refs, spare []ref }

var sorters recycle.Pool[sorter]

// keptRefs is how many refs a sorter may have room for that is kept: two megabytes.
const keptRefs = 64 << 10

func (s *sorter) recycle() {
	if cap(s.refs) <= keptRefs {
		sorters.Put(s)
	}
}

// sortSpans returns the puts and deletes of some spans, which are given oldest first, by
// key, newest first.
func (s *set) sortSpans(spans []span) chunk {
	mem := sorters.Get()
	defer mem.recycle()
	var c chunk
	c.common, c.length = commonKey(spans)
	total := 0
	for _, sp := range spans {
		total += sp.to - sp.from
	}
	mem.refs = slices.Grow(mem.refs[:0], total)
	for _, sp := range spans {
		for rec := uint32(sp.from); rec < uint32(sp.to); rec++ {
			if kind, key := sp.t.key(rec); kind != base.KindRangeDelete {
				mem.refs = append(mem.refs, makeRef(sp.num, rec, base.Head(key[len(c.common):])))
			}
		}
	}
	mem.sort()
	c.refs = slices.Clone(mem.refs)
	if !c.exact() {
		s.sortTies(c.refs)
	}
	s.markOlder(&c)
	return c
}

// commonKey returns what the keys of all puts and deletes begin with, and how long they
// are: 0 if they are not all alike.
func commonKey(spans []span) (common []byte, length int) {
	none := true
	for _, sp := range spans {
		for rec := sp.from; rec < sp.to; rec++ {
			switch kind, key := sp.t.key(uint32(rec)); {
			case kind == base.KindRangeDelete:
			case none:
				common, length, none = key, len(key), false
			default:
				common = common[:base.CommonPrefix(common, key)]
				if len(key) != length {
					length = 0
				}
			}
		}
	}
	return bytes.Clone(common), length
}

// fewRefs are sorted by comparisons.
const fewRefs = 128

// sort sorts the refs, which come by record, by head, and those of one head by record,
// the newest first. Keys that come in order, as a load's often do, cost one look. Others
// are sorted by their bytes, the last one first, those that are the same everywhere left
// out (LSD radix sort).
func (s *sorter) sort() {
	ordered, differ := true, uint64(0)
	for i := 1; i < len(s.refs); i++ {
		ordered = ordered && s.refs[i-1].head < s.refs[i].head
		differ |= s.refs[i-1].head ^ s.refs[i].head
	}
	if ordered {
		return
	}
	if len(s.refs) <= fewRefs {
		slices.SortFunc(s.refs, func(a, b ref) int { return cmp.Or(cmp.Compare(a.head, b.head), newerFirst(a, b)) })
		return
	}
	slices.Reverse(s.refs) // every pass keeps the order of equals
	s.spare = slices.Grow(s.spare[:0], len(s.refs))[:len(s.refs)]
	for shift := bits.TrailingZeros64(differ) &^ 7; shift < 64; shift += 8 {
		if differ>>shift&0xFF != 0 {
			s.pass(shift)
		}
	}
}

// pass sorts by the eight bits from shift on.
func (s *sorter) pass(shift int) {
	var next [256]int
	for i := range s.refs {
		next[s.refs[i].head>>shift&0xFF]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
	}
	for _, r := range s.refs {
		b := r.head >> shift & 0xFF
		s.spare[next[b]] = r
		next[b]++
	}
	s.refs, s.spare = s.spare, s.refs
}

// sortTies sorts runs of the same head: their keys may differ further on.
func (s *set) sortTies(refs []ref) {
	for i := 0; i < len(refs); {
		end := i + 1
		for end < len(refs) && refs[end].head == refs[i].head {
			end++
		}
		if end-i > 1 {
			slices.SortFunc(refs[i:end], func(a, b ref) int {
				return cmp.Or(bytes.Compare(s.key(a), s.key(b)), newerFirst(a, b))
			})
		}
		i = end
	}
}

// markOlder marks the refs of older versions.
func (s *set) markOlder(c *chunk) {
	for i := 1; i < len(c.refs); i++ {
		if s.same(c, c.refs[i-1], c.refs[i]) {
			c.refs[i].at |= older
		}
	}
}
