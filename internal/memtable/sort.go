package memtable

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/recycle"
)

// ref leads to a record, in the order of a set of tables.
type ref struct {
	head uint64 // eight bytes of its key behind what all keys of the chunk begin with
	at   uint64 // number of the table<<34 | number of the record<<2 | kind<<1 | 1 if it is an older version
}

// older marks the ref of a version that is not the newest of its key in the chunk.
const older = 1

func makeRef(num, rec uint32, kind base.Kind, head uint64) ref {
	return ref{head, uint64(num)<<34 | uint64(rec)<<2 | uint64(kind)<<1}
}

func (r ref) num() uint32     { return uint32(r.at >> 34) }
func (r ref) rec() uint32     { return uint32(r.at >> 2) }
func (r ref) kind() base.Kind { return base.Kind(r.at >> 1 & 1) } // put or delete

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

// live reports whether the record of a ref was not truncated: its sequence may have been given to another one, in the
// next table.
func (s *set) live(r ref) bool { return r.rec() < s.tables[r.num()-s.first].limit.Load() }

// span is consecutive records of a table.
type span struct {
	t        *Table
	num      uint32
	from, to int
}

// records returns how many records some spans are.
func records(spans []span) (n int) {
	for _, sp := range spans {
		n += sp.to - sp.from
	}
	return n
}

// sortSpans returns the puts and deletes of some spans, which are given oldest first, by
// key, newest first, but for those that others of sequences up to oldest hide.
func (s *set) sortSpans(spans []span, oldest uint64) chunk {
	m := sorters.Get()
	defer m.recycle()
	c, ok := m.gather(spans, fewKeys(spans))
	if !ok {
		c, _ = m.gather(spans, commonKey(spans))
	}
	ordered, differ := differing(m.heads)
	if ordered {
		c.refs = m.asTheyCome()
		return c
	}
	m.sort(differ)
	if c.exact() && m.whole {
		c.refs = m.newest(oldest)
		return c
	}
	c.refs = m.all()
	s.sortTies(&c, m.mask)
	s.dropHidden(&c, oldest)
	return c
}

// sorter is the memory of a sort, which is used again unless it is large: the Go heap is
// not counted to Memory.
type sorter struct {
	heads []uint64 // of puts and deletes, the oldest first
	puts  []uint64 // bits of them: it is a put
	parts []part   // where they stand
	packing
	keys []uint64 // of them, sorted: bits of the head<<width | how many are newer
	more [2][]uint64
}

// part is consecutive records of a table, none of which is a range delete.
type part struct {
	start int    // how many heads there are before
	first ref    // of the first record, without its head
	seq   uint64 // of that
}

var sorters recycle.Pool[sorter]

// keptRecords is how many records a sorter may have room for that is kept: a megabyte and a half at most.
const keptRecords = 64 << 10

func (m *sorter) recycle() {
	if cap(m.heads) <= keptRecords {
		sorters.Put(m)
	}
}

// gather looks at the puts and deletes of some spans as they come, and reports whether all of their
// keys begin with common. The chunk it returns has no refs yet.
func (m *sorter) gather(spans []span, common []byte) (c chunk, ok bool) {
	c.common = bytes.Clone(common)
	total := records(spans)
	m.heads, m.parts = slices.Grow(m.heads[:0], total), m.parts[:0]
	m.puts = slices.Grow(m.puts[:0], (total+63)/64)[:(total+63)/64]
	clear(m.puts)
	for _, sp := range spans {
		if !m.gatherSpan(sp, &c) {
			return chunk{}, false
		}
	}
	return c, true
}

// gatherSpan adds the records of a span, and reports whether all of their keys begin with c.common.
func (m *sorter) gatherSpan(sp span, c *chunk) bool {
	t, heads, puts, inPart := sp.t, m.heads, m.puts, false
	common, length := c.common, c.length
	for rec := uint32(sp.from); rec < uint32(sp.to); rec++ {
		if t.copy == nil && rec+keysAhead < uint32(sp.to) {
			t.PrefetchKey(rec + keysAhead)
		}
		kind, key := t.key(rec)
		if kind == base.KindRangeDelete {
			inPart = false
			continue
		}
		if !bytes.HasPrefix(key, common) {
			return false
		}
		n := len(heads)
		if n == 0 {
			length = len(key)
		} else if len(key) != length {
			length = 0
		}
		if !inPart {
			inPart = true
			m.parts = append(m.parts, part{n, makeRef(sp.num, rec, 0, 0), t.base + uint64(rec)})
		}
		heads = append(heads, base.HeadBehind(key, len(common)))
		puts[n/64] |= uint64(kind&1) << (n % 64) // of a mapped log that somebody has overwritten it may be anything
	}
	m.heads, c.length = heads, length
	return true
}

// keysAhead: the keys of so many records are on their way to the processor at a time.
const keysAhead = 16

// differing reports whether each of some heads is greater than the one before, and which bits are not
// the same in all of them.
func differing(heads []uint64) (ordered bool, differ uint64) {
	ordered = true
	for i := 1; i < len(heads); i++ {
		ordered = ordered && heads[i-1] < heads[i]
		differ |= heads[i-1] ^ heads[i]
	}
	return ordered, differ
}

// ref returns the ref of the i-th head, without the head.
func (m *sorter) ref(i int) ref {
	low, high := 0, len(m.parts) // the part is in [low, high)
	if m.parts[high-1].start <= i {
		low = high - 1
	}
	for high-low > 1 {
		if middle := int(uint(low+high) / 2); m.parts[middle].start <= i {
			low = middle
		} else {
			high = middle
		}
	}
	p := &m.parts[low]
	return ref{at: p.first.at + uint64(i-p.start)<<2 + m.puts[i/64]>>(i%64)&1<<1}
}

// asTheyCome returns the refs of all heads, which are sorted.
func (m *sorter) asTheyCome() []ref {
	refs := make([]ref, len(m.heads))
	for i, head := range m.heads {
		refs[i] = m.ref(i)
		refs[i].head = head
	}
	return refs
}

// all returns the refs of all keys as they are sorted.
func (m *sorter) all() []ref {
	refs := make([]ref, len(m.keys))
	for i, k := range m.keys {
		refs[i] = m.sorted(k)
	}
	return refs
}

// sorted returns the ref of one of keys.
func (m *sorter) sorted(key uint64) ref {
	i := m.place(key)
	r := m.ref(i)
	if m.whole {
		r.head = m.constant | m.expand(key>>m.width)
	} else {
		r.head = m.heads[i]
	}
	return r
}

// newest returns the refs of keys, which tell all keys apart, but for those that others of sequences up
// to oldest hide. Older versions are marked.
func (m *sorter) newest(oldest uint64) []ref {
	visible := 0 // so many heads are of sequences up to oldest
	for i, p := range m.parts {
		end := len(m.heads)
		if i+1 < len(m.parts) {
			end = m.parts[i+1].start
		}
		if p.seq <= oldest {
			visible = p.start + int(min(uint64(end-p.start), oldest-p.seq+1))
		}
	}
	kept := m.keys[:1]
	for _, k := range m.keys[1:] {
		if last := kept[len(kept)-1]; k>>m.width != last>>m.width || m.place(last) >= visible {
			kept = append(kept, k)
		}
	}
	refs := make([]ref, len(kept))
	for i, k := range kept {
		refs[i] = m.sorted(k)
		if i > 0 && refs[i].head == refs[i-1].head {
			refs[i].at |= older
		}
	}
	return refs
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

// dropHidden drops the older versions that a sequence up to oldest hides.
func (s *set) dropHidden(c *chunk, oldest uint64) {
	kept := c.refs[:min(1, len(c.refs))]
	for _, r := range c.refs[len(kept):] {
		if r.at&older == 0 || s.seq(kept[len(kept)-1]) > oldest {
			kept = append(kept, r)
		}
	}
	if c.refs = kept; 2*len(kept) < cap(kept) {
		c.refs = slices.Clone(kept)
	}
}
