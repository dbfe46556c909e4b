package memtable

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
)

// order is the lazily made order of a table: chunks of record numbers, each
// sorted by (key, newest first). A chunk set is immutable once published.
type order struct {
	mu  sync.Mutex
	now atomic.Pointer[chunks]
}

type chunks struct {
	sorted [][]uint32
	n      int // records 0..n-1 are in some chunk
}

func (o *order) reset() { o.now.Store(nil) }

// The last chunk takes in what is new until it has fewRecords: then every chunk is more
// than chunkGrowth times as long as the next. So whoever looks at the order after every
// few writes finds log n chunks of different lengths, each record was merged a few times
// for each of them, and the moves within the last one are of a few kilobytes.
const (
	fewRecords  = 1024
	chunkGrowth = 4
)

// ordered returns chunks that hold at least the records published at the call.
func (t *Table) ordered() *chunks {
	n := t.Len()
	if c := t.order.now.Load(); c != nil && c.n >= n {
		return c
	}
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	c := t.order.now.Load()
	if c == nil {
		c = &chunks{}
	}
	if c.n >= n {
		return c
	}
	sorted := append(slices.Clone(c.sorted), t.sortChunk(c.n, n))
	for k := len(sorted); k > 1 && (len(sorted[k-2]) <= fewRecords || chunkGrowth*len(sorted[k-1]) >= len(sorted[k-2])); k = len(sorted) {
		sorted = append(sorted[:k-2], t.mergeChunks(sorted[k-2], sorted[k-1]))
	}
	c = &chunks{sorted: sorted, n: n}
	t.order.now.Store(c)
	return c
}

// Sort makes the order of everything inserted so far, as one chunk.
func (t *Table) Sort() {
	t.ordered()
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	c := t.order.now.Load()
	if c == nil || len(c.sorted) < 2 {
		return
	}
	sorted := slices.Clone(c.sorted)
	for k := len(sorted); k > 1; k = len(sorted) {
		sorted = append(sorted[:k-2], t.mergeChunks(sorted[k-2], sorted[k-1]))
	}
	t.order.now.Store(&chunks{sorted: sorted, n: c.n})
}

// compare orders two records by key, then the newer first.
func (t *Table) compare(a, b uint32) int {
	_, x := t.key(a)
	_, y := t.key(b)
	if c := bytes.Compare(x, y); c != 0 {
		return c
	}
	return cmp.Compare(b, a)
}

// mergeChunks merges two chunks. The second, which is newer, is often far shorter: the
// place of each of its records is found by doubling steps, and what lies before is moved
// as a whole.
func (t *Table) mergeChunks(a, b []uint32) []uint32 {
	out := make([]uint32, 0, len(a)+len(b))
	for _, rec := range b {
		n := t.countLess(a, rec)
		out = append(append(out, a[:n]...), rec)
		a = a[n:]
	}
	return append(out, a...)
}

// countLess returns how many records at the front of a sorted chunk come before rec.
func (t *Table) countLess(chunk []uint32, rec uint32) int {
	low, high := 0, 1 // chunk[:low] is less
	for high <= len(chunk) && t.compare(chunk[high-1], rec) < 0 {
		low, high = high, 2*high
	}
	less, _ := slices.BinarySearchFunc(chunk[low:min(high-1, len(chunk))], rec, t.compare)
	return low + less
}

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
	for _, c := range t.ordered().sorted {
		if len(c) > 0 {
			it := s.take()
			*it = Iter{t: t, chunk: c, limit: t.limit.Load(), i: -1}
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
	chunk []uint32
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
	it.seen = min(i+it.window, len(it.chunk))
	t := it.t
	for _, rec := range it.chunk[min(i, it.seen):it.seen] {
		if at := t.copyAt(rec); at != 0 {
			if it.sum += t.copies[at-1]; !it.values {
				continue
			}
		}
		it.sum += t.buf[t.at[rec]]
	}
}

// settle loads the key at position i, stepping over truncated records in
// direction step, and reports whether there is one.
func (it *Iter) settle(step int) bool {
	for it.i >= 0 && it.i < len(it.chunk) {
		if rec := it.chunk[it.i]; rec < it.limit {
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
func (it *Iter) Last() bool { it.i = len(it.chunk) - 1; return it.settle(-1) }

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool { return it.begin(it.lowerBound(key)) }

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool { it.i = it.lowerBound(key) - 1; return it.settle(-1) }

func (it *Iter) lowerBound(key []byte) int {
	i, _ := slices.BinarySearchFunc(it.chunk, key, func(rec uint32, key []byte) int {
		if _, have := it.t.key(rec); bytes.Compare(have, key) < 0 {
			return -1
		}
		return 1
	})
	return i
}

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
	if next < len(it.chunk) && it.chunk[next] < it.limit {
		if kind, key := it.t.key(it.chunk[next]); !bytes.Equal(key, it.key) {
			it.i, it.kind, it.key = next, kind, key
			return true
		}
	}
	same := func(i int) bool { return i < len(it.chunk) && it.t.isKey(it.chunk[i], it.key) }
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
func (it *Iter) Seq() uint64 { return it.t.base + uint64(it.chunk[it.i]) }

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return it.kind }

// Value implements base.Iterator.
func (it *Iter) Value() ([]byte, error) {
	it.values = true
	return it.t.entry(it.chunk[it.i]).Value, nil
}

// Err implements base.Iterator; it is always nil.
func (it *Iter) Err() error { return nil }

// Close implements base.Iterator.
func (it *Iter) Close() error { it.i = -1; return nil }
