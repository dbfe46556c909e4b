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

func (s *set) seq(r ref) uint64 { return s.tables[r.num()-s.first].base + uint64(r.rec()) }

// span is consecutive records of a table.
type span struct {
	t        *Table
	num      uint32
	from, to int
}

// sorter is the memory of a sort, which is used again unless it is large: the Go heap is
// not counted to Memory.
type sorter struct{ spare []ref }

var sorters recycle.Pool[sorter]

// keptRefs is how many refs a sorter may have room for that is kept: a megabyte.
const keptRefs = 64 << 10

func (s *sorter) recycle() {
	if cap(s.spare) <= keptRefs {
		sorters.Put(s)
	}
}

// sortSpans returns the puts and deletes of some spans, which are given oldest first, by
// key, newest first, but for those that others of sequences up to oldest hide.
func (s *set) sortSpans(spans []span, oldest uint64) chunk {
	mem := sorters.Get()
	defer mem.recycle()
	c, ok := gather(spans, fewKeys(spans))
	if !ok {
		c, _ = gather(spans, commonKey(spans))
	}
	mem.sort(c.refs)
	if !c.exact() {
		s.sortTies(c.refs)
	}
	s.markOlder(&c, oldest)
	return c
}

// gather returns the puts and deletes of some spans as they come, and reports whether all of their
// keys begin with common.
func gather(spans []span, common []byte) (c chunk, ok bool) {
	c.common = bytes.Clone(common)
	total := 0
	for _, sp := range spans {
		total += sp.to - sp.from
	}
	c.refs = make([]ref, 0, total)
	for _, sp := range spans {
		for rec := uint32(sp.from); rec < uint32(sp.to); rec++ {
			kind, key := sp.t.key(rec)
			switch {
			case kind == base.KindRangeDelete:
				continue
			case !bytes.HasPrefix(key, common):
				return chunk{}, false
			case len(c.refs) == 0:
				c.length = len(key)
			case len(key) != c.length:
				c.length = 0
			}
			c.refs = append(c.refs, makeRef(sp.num, rec, base.HeadBehind(key, len(common))))
		}
	}
	return c, true
}

// fewKeys returns what some of the keys begin with: as a rule all of them do.
func fewKeys(spans []span) []byte {
	var p prefix
	for _, sp := range spans {
		for _, rec := range []int{sp.from, (sp.from + sp.to) / 2, sp.to - 1} {
			if sp.from < sp.to {
				p.add(sp.t.key(uint32(rec)))
			}
		}
	}
	return p.common
}

// commonKey returns what the keys of all puts and deletes begin with.
func commonKey(spans []span) []byte {
	var p prefix
	for _, sp := range spans {
		for rec := sp.from; rec < sp.to; rec++ {
			p.add(sp.t.key(uint32(rec)))
		}
	}
	return p.common
}

// prefix is what the keys of some puts and deletes begin with.
type prefix struct {
	common []byte
	some   bool
}

func (p *prefix) add(kind base.Kind, key []byte) {
	switch {
	case kind == base.KindRangeDelete:
	case p.some:
		p.common = p.common[:base.CommonPrefix(p.common, key)]
	default:
		p.common, p.some = key, true
	}
}

// fewRefs are sorted by comparisons.
const fewRefs = 128

// sort sorts refs, which come by record, by head, and those of one head by record, the newest
// first. Keys that come in order, as a load's often do, cost one look. Others are sorted by the
// bits of their heads that are not the same everywhere, the last ones first (LSD radix sort).
func (s *sorter) sort(refs []ref) {
	ordered, differ := true, uint64(0)
	for i := 1; i < len(refs); i++ {
		ordered = ordered && refs[i-1].head < refs[i].head
		differ |= refs[i-1].head ^ refs[i].head
	}
	if ordered {
		return
	}
	if len(refs) <= fewRefs {
		slices.SortFunc(refs, func(a, b ref) int { return cmp.Or(cmp.Compare(a.head, b.head), newerFirst(a, b)) })
		return
	}
	slices.Reverse(refs) // every pass keeps the order of equals
	s.spare = slices.Grow(s.spare[:0], len(refs))[:len(refs)]
	from, to := refs, s.spare
	for differ != 0 {
		var d digit
		d, differ = lastDigit(differ)
		d.pass(from, to)
		from, to = to, from
	}
	if &from[0] != &refs[0] {
		copy(refs, from)
	}
}

// digit is what one pass sorts by: up to eight bits of a head, of one byte or of two. Of decimal
// numbers it is two decimal digits.
type digit struct {
	shift [2]uint // to where the parts stand in the digit
	mask  [2]uint64
}

func (d *digit) of(head uint64) uint8 {
	return uint8(head>>(d.shift[0]&63)&d.mask[0] | head>>(d.shift[1]&63)&d.mask[1])
}

// lastDigit returns the digit of the last of some bits, and the bits that it leaves.
func lastDigit(differ uint64) (d digit, rest uint64) {
	width := 0
	for i := 0; i < 2 && differ != 0; i++ {
		low := bits.TrailingZeros64(differ)
		whole := differ & (0xFF << (low &^ 7)) // in one byte
		n := bits.Len64(whole) - low
		if width+n > 8 {
			break
		}
		d.shift[i], d.mask[i] = uint(low-width), (1<<n-1)<<width
		width += n
		differ &^= whole
	}
	return d, differ
}

// pass copies refs in the order of a digit.
func (d *digit) pass(from, to []ref) {
	var next [256]int
	for i := range from {
		next[d.of(from[i].head)]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
	}
	for _, r := range from {
		b := d.of(r.head)
		to[next[b]] = r
		next[b]++
	}
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

// markOlder marks the refs of older versions, and drops those that a sequence up to oldest hides.
func (s *set) markOlder(c *chunk, oldest uint64) {
	kept := c.refs[:min(1, len(c.refs))]
	for _, r := range c.refs[len(kept):] {
		if last := kept[len(kept)-1]; s.same(c, last, r) {
			if s.seq(last) <= oldest {
				continue
			}
			r.at |= older
		}
		kept = append(kept, r)
	}
	if c.refs = kept; 2*len(kept) < cap(kept) {
		c.refs = slices.Clone(kept)
	}
}
