package memtable

import (
	"slices"
	"sync"
	"sync/atomic"
)

// order is the lazily made order of a table: chunks of records. A chunk set is immutable
// once published. (That of several tables is a Stack.)
type order struct {
	mu  sync.Mutex
	now atomic.Pointer[chunks]
}

// chunks hold all records of the tables from number first to the one before last, and
// the first n of that.
type chunks struct {
	sorted      []chunk // each newer in every record than the one before
	first, last uint32
	n           int

	room [mostlyChunks]chunk // of sorted, as long as they are no more
}

// mostlyChunks: of some thousand records there are hardly ever more chunks.
const mostlyChunks = 4

// cover reports whether the chunks hold all records of a set of tables, and no others.
func (c *chunks) cover(s *set) bool {
	last := len(s.tables) - 1
	return c != nil && c.first == s.first && c.last == s.first+uint32(last) && c.n >= s.tables[last].Len()
}

// refs returns how many refs there is room for, used or not.
func (c *chunks) refs() (n int) {
	if c != nil {
		for i := range c.sorted {
			n += cap(c.sorted[i].refs)
		}
	}
	return n
}

func (o *order) reset() { o.now.Store(nil) }

// The last chunk takes in what is new until it has fewRecords: then every chunk is more
// than chunkGrowth times as long as the next. So whoever looks at the order after every
// few writes finds log n chunks of different lengths, each record was merged a few times
// for each of them, and the moves within the last one are of a few kilobytes.
const (
	fewRecords  = 128
	chunkGrowth = 4
)

// of returns chunks that hold at least the records of the tables published at the call.
func (o *order) of(s *set) *chunks {
	if c := o.now.Load(); c.cover(s) {
		return c
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.now.Load()
	if c.cover(s) {
		return c
	}
	next := s.extend(c, 0)
	o.now.Store(next)
	return next
}

// extend returns chunks that hold the records of the tables, those of c, which may be nil,
// among them. c is of no newer tables. What newer records of sequences up to oldest hide may be
// left out.
func (s *set) extend(c *chunks, oldest uint64) *chunks {
	next := &chunks{first: s.first, last: s.first + uint32(len(s.tables)-1)}
	var spans []span
	for i, t := range s.tables {
		sp := span{t: t, num: s.first + uint32(i), to: t.Len()}
		if next.n = sp.to; c != nil && sp.num <= c.last {
			if sp.from = sp.to; sp.num == c.last {
				sp.from = min(c.n, sp.to)
				next.n = max(next.n, c.n)
			}
		}
		if sp.from < sp.to {
			spans = append(spans, sp)
		}
	}
	next.sorted = next.room[:0]
	if c != nil {
		next.sorted = append(next.sorted, c.sorted...)
	}
	if c != nil && c.first < s.first {
		for i := range next.sorted {
			next.sorted[i] = next.sorted[i].since(s.first)
		}
	}
	s.add(next, spans, oldest)
	next.sorted = slices.DeleteFunc(next.sorted, func(c chunk) bool { return len(c.refs) == 0 })
	s.mergeLast(next, oldest, func(long, short int) bool { return long <= fewRecords || chunkGrowth*short >= long })
	if cap(next.sorted) > len(next.room) { // they were too many
		clear(next.room[:])
	}
	return next
}

// add adds what stands in some spans to chunks: into the last one, as a rule, where that is little.
func (s *set) add(c *chunks, spans []span, oldest uint64) {
	last := len(c.sorted) - 1
	switch {
	case len(spans) == 0:
	case records(spans) > fewNew:
		c.sorted = append(c.sorted, s.sortSpans(spans, oldest))
	case last < 0 || len(c.sorted[last].refs) > fewRecords:
		c.sorted = append(c.sorted, s.insert(chunk{}, spans, oldest))
	default:
		c.sorted[last] = s.insert(c.sorted[last], spans, oldest)
	}
}

// mergeLast merges the last two chunks as long as they are so long that it should be done.
func (s *set) mergeLast(c *chunks, oldest uint64, should func(long, short int) bool) {
	for k := len(c.sorted); k > 1 && should(len(c.sorted[k-2].refs), len(c.sorted[k-1].refs)); k-- {
		c.sorted[k-2] = s.merge(c.sorted[k-2], c.sorted[k-1], oldest)
		c.sorted = slices.Delete(c.sorted, k-1, k)
	}
}

// alone returns the set of the table only.
func (t *Table) alone() set { return set{tables: t.self[:]} }

// Part returns the key with which the i-th of n parts alike begins, of a table that was sorted and to
// which nothing is added any more: nil if it has fewer keys.
func (t *Table) Part(i, n int) []byte {
	c := t.order.now.Load()
	if c == nil || len(c.sorted) == 0 || len(c.sorted[0].refs) < n {
		return nil
	}
	refs := c.sorted[0].refs
	return t.Key(refs[len(refs)*i/n].rec())
}

// Sort makes the order of everything inserted so far, as one chunk.
func (t *Table) Sort() {
	s := t.alone()
	t.order.of(&s)
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	if c := t.order.now.Load(); len(c.sorted) > 1 {
		whole := chunks{sorted: slices.Clone(c.sorted), first: c.first, last: c.last, n: c.n}
		s.mergeLast(&whole, 0, func(long, short int) bool { return true })
		t.order.now.Store(&whole)
	}
}
