package memtable

import (
	"encoding/binary"
	"math"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/prefetch"
)

// Iterators appends one iterator per sorted chunk: together they hold every put
// and delete published before the call, each chunk in (key, newest first) order.
func (t *Table) Iterators(dst []base.Iterator) []base.Iterator {
	return (*Iters)(nil).Append(dst, t, math.MaxUint64)
}

// Iters is memory of iterators, used again and again by one goroutine.
type Iters struct {
	all  []*Iter
	used int
}

// Append is t.Iterators up to a sequence, and a few records behind it, in the memory of its,
// which may be nil: then it is new.
func (its *Iters) Append(dst []base.Iterator, t *Table, upTo uint64) []base.Iterator {
	s := t.alone()
	return its.over(dst, &s, t.order.of(&s), upTo)
}

// over appends iterators over chunks of the tables, up to a sequence. Where commits may
// still fail that is one whose outcome is known: else records would go from under them.
func (its *Iters) over(dst []base.Iterator, s *set, c *chunks, upTo uint64) []base.Iterator {
	for i := range c.sorted {
		if len(c.sorted[i].refs) > 0 {
			it := its.take()
			it.init(s, &c.sorted[i], upTo)
			dst = append(dst, it)
		}
	}
	return dst
}

func (its *Iters) take() *Iter {
	if its == nil {
		return new(Iter)
	}
	if its.used == len(its.all) {
		its.all = append(its.all, new(Iter))
	}
	its.used++
	return its.all[its.used-1]
}

// Reset takes the iterators back, which nobody may use any more.
func (its *Iters) Reset() {
	for _, it := range its.all[:its.used] {
		*it = Iter{whole: it.whole}
	}
	its.used = 0
}

// Iter walks one sorted chunk, but for most of what comes behind a sequence. It implements
// base.Iterator.
type Iter struct {
	set
	c    *chunk
	refs []ref // its refs
	upTo uint64
	i    int

	// Of the record at position i:
	t   *Table
	rec uint32
	key []byte

	// Where the chunk is exact the key is whole: what is common to all, which stands there, and the head. No
	// record is read for it.
	exact bool
	whole []byte

	values bool // somebody asked for a value
	ahead  prefetch.Ahead
}

// init makes it an iterator over a chunk of the tables, up to a sequence, that stands nowhere.
func (it *Iter) init(s *set, c *chunk, upTo uint64) {
	*it = Iter{set: *s, c: c, refs: c.refs, upTo: upTo, i: -1, exact: c.exact(), whole: it.whole}
	if it.exact {
		it.whole = append(append(it.whole[:0], c.common...), make([]byte, 8)...)
		it.key = it.whole[:c.length]
	}
}

// lookAhead makes sure that the keys behind position i, and their values if values are asked for, are on
// their way to the processor: the order of keys is not that in memory, so every one is a cache miss.
// Older versions are passed over.
func (it *Iter) lookAhead(i int) {
	if it.exact && !it.values {
		return
	}
	from, to := it.ahead.Next(i, len(it.refs))
	for _, r := range it.refs[from:to] {
		if r.at&older == 0 {
			it.ahead.Took(it.tables[r.num()-it.first].Prefetch(r.rec(), it.values))
		}
	}
}

// shownShare: one record in so many of those behind the last sequence is shown, though nobody
// is to see it: whoever merges may find, before all of them are passed over, that the next
// row comes from elsewhere.
const shownShare = 16

// settle loads the key at position i, stepping in direction step over records that were
// truncated or come behind the last sequence, and reports whether there is one. Whether a
// record is passed over never changes while the iterator is used: steps are counted.
func (it *Iter) settle(step int) bool {
	for passed := 0; it.i >= 0 && it.i < len(it.refs); passed++ {
		r := it.refs[it.i]
		t, rec := it.tables[r.num()-it.first], r.rec()
		shown := it.i%shownShare == 0 && r.at&older == 0
		if t.base+uint64(rec) <= it.upTo {
			shown = rec < t.limit.Load()
		}
		if shown {
			if it.t, it.rec = t, rec; it.exact {
				binary.BigEndian.PutUint64(it.whole[len(it.whole)-8:], r.head)
			} else {
				_, it.key = t.key(rec)
			}
			return true
		}
		if passed > mostSteps && it.behindLast(it.i) {
			it.leapHidden(step)
		} else {
			it.i += step
		}
	}
	it.i = -1
	return false
}

// behindLast reports whether an older version of a key is at position i that comes behind the last sequence, and was not
// truncated: then so do all newer ones of the key, or were truncated. (What was truncated may have greater sequences than
// newer versions in the next table.)
func (it *Iter) behindLast(i int) bool {
	r := it.refs[i]
	return r.at&older != 0 && it.seq(r) > it.upTo && it.live(r)
}

// leapHidden moves, from a version that is behindLast, over other such of the key, or back to the newest.
func (it *Iter) leapHidden(step int) {
	now := it.refs[it.i]
	if step > 0 {
		it.i += 1 + stride(func(n int) bool {
			i := it.i + n
			return i < len(it.refs) && it.behindLast(i) && it.same(it.exact, now, it.refs[i])
		})
		return
	}
	it.i -= max(1, stride(func(n int) bool { return n <= it.i && it.same(it.exact, now, it.refs[it.i-n]) }))
}

// stride returns the greatest n for which is is true, if it is for all less: 0 at least. It is found by doubling steps.
func stride(is func(n int) bool) int {
	n, step := 0, 1
	for is(n + step) {
		n, step = n+step, 2*step
	}
	for ; step > 1; step /= 2 {
		if is(n + step/2) {
			n += step / 2
		}
	}
	return n
}

// First implements base.Iterator.
func (it *Iter) First() bool { return it.begin(0) }

// begin begins a walk forward at position i.
func (it *Iter) begin(i int) bool {
	it.i = i
	it.ahead.Begin(i)
	return it.settle(1)
}

// Last implements base.Iterator.
func (it *Iter) Last() bool { it.i = len(it.refs) - 1; return it.settle(-1) }

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool { return it.begin(it.lowerBound(it.c, key)) }

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool { it.i = it.lowerBound(it.c, key) - 1; return it.settle(-1) }

// Next implements base.Iterator.
func (it *Iter) Next() bool {
	if it.i < 0 {
		return false
	}
	it.i++
	if it.ahead.Due(it.i) {
		it.lookAhead(it.i)
	}
	return it.settle(1)
}

// NextKey moves to the first entry of the next key, as iterator.KeyStepper wants it.
func (it *Iter) NextKey() bool {
	if it.i < 0 {
		return false
	}
	it.i++
	if it.i < len(it.refs) && it.refs[it.i].at&older != 0 {
		it.leap()
	}
	if it.ahead.Due(it.i) {
		it.lookAhead(it.i)
	}
	return it.settle(1)
}

// mostSteps is how many older versions are passed over one by one.
const mostSteps = 16

// leap moves behind the older versions that begin at position i. A hot key has thousands:
// then steps double and halve again.
func (it *Iter) leap() {
	isOlder := func(i int) bool { return i < len(it.refs) && it.refs[i].at&older != 0 }
	for range mostSteps {
		if it.i++; !isOlder(it.i) {
			return
		}
	}
	now := it.refs[it.i]
	it.i += 1 + stride(func(n int) bool { return isOlder(it.i+n) && it.same(it.exact, now, it.refs[it.i+n]) })
}

// IsNewest implements iterator.VersionTeller.
func (it *Iter) IsNewest() bool { return it.refs[it.i].at&older == 0 }

// Newest implements iterator.VersionStepper.
func (it *Iter) Newest(vis base.Visibility) bool {
	if it.i < 0 {
		return false
	}
	now := it.refs[it.i]
	n := stride(func(n int) bool {
		if n > it.i {
			return false
		}
		r := it.refs[it.i-n]
		seq := it.seq(r)
		return seq <= it.upTo && it.live(r) && vis.Sees(seq) && it.same(it.exact, now, r)
	})
	it.i -= n
	return it.settle(-1) && n > 0
}

const (
	// nearRefs is how many refs to each side are of the part in which an iterator stands.
	nearRefs = 32
	// mostSkipped is how many refs are skipped at once: who passes many is to remember them, see iterator.Gaps.
	mostSkipped = 1024
)

// NewestSeq implements iterator.Dated.
func (it *Iter) NewestSeq() (newest uint64) {
	for _, r := range it.refs[max(it.i-nearRefs, 0):min(it.i+nearRefs, len(it.refs))] {
		if seq := it.seq(r); seq <= it.upTo {
			newest = max(newest, seq)
		}
	}
	return newest
}

// isBelow reports whether the record at position i has a lesser sequence than below, or is not to be seen at all.
func (it *Iter) isBelow(i int, below uint64) bool {
	r := it.refs[i]
	seq := it.seq(r)
	return seq < below || seq > it.upTo || !it.live(r)
}

// SkipGE implements iterator.Dated.
func (it *Iter) SkipGE(key []byte, below uint64) bool {
	i, end := it.i+1, min(it.lowerBound(it.c, key), it.i+mostSkipped)
	for i < end && it.isBelow(i, below) {
		i++
	}
	return it.begin(i)
}

// SkipLT implements iterator.Dated.
func (it *Iter) SkipLT(key []byte, below uint64) bool {
	i, end := it.i-1, max(it.lowerBound(it.c, key), it.i-mostSkipped)
	for i >= end && it.isBelow(i, below) {
		i--
	}
	it.i = i
	return it.settle(-1)
}

// Prev implements base.Iterator.
func (it *Iter) Prev() bool {
	if it.i < 0 {
		return false
	}
	it.i--
	return it.settle(-1)
}

// Valid implements base.Iterator.
func (it *Iter) Valid() bool { return it.i >= 0 }

// Key implements base.Iterator.
func (it *Iter) Key() []byte { return it.key }

// At returns which of the tables given to Append the entry is in, its record, and where that stands in the buffer.
func (it *Iter) At() (table int, rec, offset uint32) {
	r := it.refs[it.i]
	return int(r.num() - it.first), r.rec(), it.t.at[r.rec()]
}

// Seq implements base.Iterator.
func (it *Iter) Seq() uint64 { return it.t.base + uint64(it.rec) }

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return it.refs[it.i].kind() }

// Value implements base.Iterator.
func (it *Iter) Value() ([]byte, error) {
	it.values = true
	return it.t.Value(it.rec), nil
}

// Err implements base.Iterator; it is always nil.
func (it *Iter) Err() error { return nil }

// Close implements base.Iterator.
func (it *Iter) Close() error { it.i = -1; return nil }
