package memtable

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// order is the lazily made order of a table: chunks of record numbers, each
// sorted by (key, newest first). A chunk set is immutable once published.
type order struct {
	mu  sync.Mutex
	now atomic.Pointer[chunks]
}

type chunks struct {
	sorted []chunk
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
	sorted := append(slices.Clone(c.sorted), chunk{recs: t.sortChunk(c.n, n)})
	for k := len(sorted); k > 1 && (len(sorted[k-2].recs) <= fewRecords || chunkGrowth*len(sorted[k-1].recs) >= len(sorted[k-2].recs)); k = len(sorted) {
		sorted = append(sorted[:k-2], chunk{recs: t.mergeChunks(sorted[k-2].recs, sorted[k-1].recs)})
	}
	return t.publish(sorted, n)
}

// publish makes chunks of records 0..n-1 the order.
func (t *Table) publish(sorted []chunk, n int) *chunks {
	for i := range sorted {
		t.fence(&sorted[i])
	}
	c := &chunks{sorted: sorted, n: n}
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
		sorted = append(sorted[:k-2], chunk{recs: t.mergeChunks(sorted[k-2].recs, sorted[k-1].recs)})
	}
	t.publish(sorted, c.n)
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
