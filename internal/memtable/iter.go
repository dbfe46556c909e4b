package memtable

import (
	"bytes"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// Iterators appends one iterator per sorted chunk: together they hold every put
// and delete published before the call, each chunk in (key, newest first) order.
func (t *Table) Iterators(dst []base.Iterator) []base.Iterator {
	return (*Iters)(nil).Append(dst, t)
}

// Iters is memory of iterators, used again and again by one goroutine.
type Iters struct {
	all  []*Iter
	used int
}

// Append is t.Iterators in the memory of s, which may be nil: then it is new.
func (s *Iters) Append(dst []base.Iterator, t *Table) []base.Iterator {
	sorted := t.ordered().sorted
	for i := range sorted {
		if c := &sorted[i]; len(c.recs) > 0 {
			it := s.take()
			*it = Iter{t: t, c: c, recs: c.recs, limit: t.limit.Load(), i: -1}
			dst = append(dst, it)
		}
	}
	return dst
}

func (s *Iters) take() *Iter {
	if s == nil {
		return new(Iter)
	}
	if s.used == len(s.all) {
		s.all = append(s.all, new(Iter))
	}
	s.used++
	return s.all[s.used-1]
}

// Reset takes the iterators back, which nobody may use any more.
func (s *Iters) Reset() {
	for _, it := range s.all[:s.used] {
		*it = Iter{}
	}
	s.used = 0
}

// Iter walks one sorted chunk. It implements base.Iterator.
type Iter struct {
	t     *Table
	c     *chunk
	recs  []uint32 // its records
	limit uint32
	i     int
	kind  base.Kind // of the record at position i
	key   []byte    // likewise

	values bool  // somebody asked for a value
	seen   int   // records before it were touched ahead
	window int   // how many at a time
	sum    uint8 // of what was touched
}

// Bounds of how many records are touched ahead: few after a seek, more as the walk goes on.
const (
	firstWindow = 4
	lastWindow  = 32
)

// lookAhead makes sure that the key at position i, and its value if values are asked for,
// is on its way to the processor. The order of keys is not that in memory, so every one
// is a cache miss; those of several at once overlap.
func (it *Iter) lookAhead(i int) {
	if i < it.seen {
		return
	}
	it.window = min(max(2*it.window, firstWindow), lastWindow)
	it.seen = min(i+it.window, len(it.recs))
	it.touch(it.recs[min(i, it.seen):it.seen])
}

// touch reads a byte of every record's key, and value if values are asked for.
func (it *Iter) touch(recs []uint32) {
	t := it.t
	for _, rec := range recs {
		if at := t.copyAt(rec); at != 0 {
			if it.sum += t.copies[at-1]; !it.values {
				continue
			}
		}
		it.sum += t.buf[t.at[rec]]
	}
}

// lowerBound returns how many records of the chunk have lesser keys.
func (it *Iter) lowerBound(key []byte) int {
	low, high := it.c.between(key)
	near := it.c.recs[low:high]
	if len(near) <= lastWindow {
		it.touch(near)
	}
	n, _ := slices.BinarySearchFunc(near, key, func(rec uint32, key []byte) int {
		if _, have := it.t.key(rec); bytes.Compare(have, key) < 0 {
			return -1
		}
		return 1
	})
	return low + n
}

// settle loads the key at position i, stepping over truncated records in
// direction step, and reports whether there is one.
func (it *Iter) settle(step int) bool {
	for it.i >= 0 && it.i < len(it.recs) {
		if rec := it.recs[it.i]; rec < it.limit {
			it.kind, it.key = it.t.key(rec)
			return true
		}
		it.i += step
	}
	it.i = -1
	return false
}

// First implements base.Iterator.
func (it *Iter) First() bool { return it.begin(0) }

// begin begins a walk forward at position i.
func (it *Iter) begin(i int) bool {
	it.i, it.seen, it.window = i, i+1, 0
	return it.settle(1)
}

// Last implements base.Iterator.
func (it *Iter) Last() bool { it.i = len(it.recs) - 1; return it.settle(-1) }

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool { return it.begin(it.lowerBound(key)) }

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool { it.i = it.lowerBound(key) - 1; return it.settle(-1) }

// Next implements base.Iterator.
func (it *Iter) Next() bool {
	if it.i < 0 {
		return false
	}
	it.i++
	it.lookAhead(it.i)
	return it.settle(1)
}

// NextKey moves to the first entry of the next key, as iterator.KeyStepper wants
// it. A hot key has thousands of versions in a chunk: they are leapt over, in
// steps that double and then halve.
func (it *Iter) NextKey() bool {
	if it.i < 0 {
		return false
	}
	next := it.i + 1
	it.lookAhead(next)
	if next < len(it.recs) && it.recs[next] < it.limit {
		if kind, key := it.t.key(it.recs[next]); !bytes.Equal(key, it.key) {
			it.i, it.kind, it.key = next, kind, key
			return true
		}
	}
	same := func(i int) bool { return i < len(it.recs) && it.t.isKey(it.recs[i], it.key) }
	step := 1
	for same(it.i + step) {
		it.i, step = it.i+step, 2*step
	}
	for ; step > 1; step /= 2 {
		if same(it.i + step/2) {
			it.i += step / 2
		}
	}
	it.i++
	return it.settle(1)
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

// Seq implements base.Iterator.
func (it *Iter) Seq() uint64 { return it.t.base + uint64(it.recs[it.i]) }

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return it.kind }

// Value implements base.Iterator.
func (it *Iter) Value() ([]byte, error) {
	it.values = true
	return it.t.entry(it.recs[it.i]).Value, nil
}

// Err implements base.Iterator; it is always nil.
func (it *Iter) Err() error { return nil }

// Close implements base.Iterator.
func (it *Iter) Close() error { it.i = -1; return nil }
