package sorted

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/prefetch"
	"github.com/cairndb/cairn/internal/table"
)

// Iter walks Rows: puts, one of each key. It implements base.Iterator and iterator.Strider. An
// error sticks. Init makes it, and again after Close: its memory is used again.
type Iter struct {
	*Rows
	slot *epoch.Slot
	i    int // row; -1: it stands nowhere
	err  error

	// Of the row:
	key   []byte
	inMem bool        // it is in a memtable
	entry frame.Entry // of it, once somebody has asked for a value
	c     *cursor     // the last one used

	uses int

	cursors []cursor // in tables, the last ones used: one for each run

	values bool // somebody asked for a value
	ahead  prefetch.Ahead
}

// cursor is where the iterator stands in a table.
type cursor struct {
	table.Iter
	number int // of the handle
	used   int // the greater the later
}

var _ base.Iterator = (*Iter)(nil)

// Init makes it an iterator over rows that stands nowhere. slot is its goroutine's.
func (it *Iter) Init(rows *Rows, slot *epoch.Slot) {
	*it = Iter{Rows: rows, slot: slot, i: -1, cursors: it.cursors[:0]}
}

// place makes row i the current one, or none if there is no such row.
func (it *Iter) place(i int) bool {
	if it.i = -1; it.err != nil || i < 0 || i >= len(it.rows) {
		return false
	}
	if r := it.rows[i]; !r.inTable() {
		it.inMem, it.i = true, i
		if n, rec, offset := r.record(); it.values { // which stand behind the keys
			it.memory[n].EntryAt(&it.entry, offset)
			it.key = it.entry.Key
		} else {
			it.key = it.memory[n].Key(rec)
		}
		return true
	}
	n, b, row := it.rows[i].place()
	if it.inMem = false; it.c == nil || it.c.number != n {
		it.c = it.cursor(n)
		it.uses++
		it.c.used = it.uses
	}
	if !it.c.Go(b, row) {
		it.err = it.c.Err()
		return false
	}
	it.key, it.i = it.c.Key(), i
	return true
}

// cursor returns the cursor in table number n. Each keeps pages in memory: there are as many as
// a merge of the runs has, and the one that was used longest ago goes for the next.
func (it *Iter) cursor(n int) *cursor {
	if c := it.find(n); c != nil {
		return c
	}
	var c *cursor
	if len(it.cursors) < it.runs {
		it.cursors = append(it.cursors, cursor{})
		c = &it.cursors[len(it.cursors)-1]
	} else {
		c = &it.cursors[0]
		for k := range it.cursors {
			if it.cursors[k].used < c.used {
				c = &it.cursors[k]
			}
		}
		c.Close()
	}
	c.number = n
	it.handles[n].InitIter(&c.Iter, it.slot, table.IterOptions{})
	return c
}

// find returns the cursor in table number n, nil if there is none.
func (it *Iter) find(n int) *cursor {
	for k := range it.cursors {
		if c := &it.cursors[k]; c.number == n {
			return c
		}
	}
	return nil
}

// First implements base.Iterator.
func (it *Iter) First() bool { return it.begin(0) }

// Last implements base.Iterator.
func (it *Iter) Last() bool { return it.place(len(it.rows) - 1) }

// begin begins a walk forward.
func (it *Iter) begin(i int) bool {
	it.ahead.Begin(i)
	return it.place(i)
}

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool {
	i, ok := it.before(key)
	return ok && it.begin(i)
}

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool {
	i, ok := it.before(key)
	return ok && it.place(i-1)
}

// before returns how many rows have lesser keys. It returns false after an error.
func (it *Iter) before(key []byte) (int, bool) {
	low, high := it.lowerBound(0, len(it.rows), key)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if !it.place(middle) {
			return 0, false
		}
		if bytes.Compare(it.key, key) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	it.i = -1
	return low, true
}

// Next implements base.Iterator.
func (it *Iter) Next() bool {
	if it.i < 0 {
		return false
	}
	if it.ahead.Due(it.i + 1) {
		it.lookAhead(it.i + 1)
	}
	return it.place(it.i + 1)
}

// NextKey implements iterator.KeyStepper.
func (it *Iter) NextKey() bool { return it.Next() }

// Prev implements base.Iterator.
func (it *Iter) Prev() bool { return it.i >= 0 && it.place(it.i-1) }

// IsNewest implements iterator.VersionTeller.
func (it *Iter) IsNewest() bool { return true }

// NewestSeq implements iterator.Dated.
func (it *Iter) NewestSeq() uint64 { return it.Snapshot }

// SkipGE implements iterator.Dated.
func (it *Iter) SkipGE(key []byte, _ uint64) bool { return it.SeekGE(key) }

// SkipLT implements iterator.Dated.
func (it *Iter) SkipLT(key []byte, _ uint64) bool { return it.SeekLT(key) }

// mostStride is how many rows a stride has: its user does not look whether there is a newer
// State before it ends.
const mostStride = 256

// Stride implements iterator.Strider.
func (it *Iter) Stride(limit []byte) int {
	if it.i < 0 {
		return 0
	}
	end := min(it.i+1+mostStride, len(it.rows))
	if limit != nil {
		end, _ = it.lowerBound(it.i+1, end, limit)
	}
	return end - it.i - 1
}

// lookAhead makes sure that the rows behind number i are on their way to the processor: the
// order of keys is not that in memory, so every one is a cache miss.
func (it *Iter) lookAhead(i int) {
	from, to := it.ahead.Next(i, len(it.rows))
	for _, r := range it.rows[from:to] {
		if r.inTable() {
			n, b, row := r.place()
			if c := it.find(n); c != nil {
				it.ahead.Took(c.Prefetch(b, row))
			}
		} else if n, rec, offset := r.record(); it.values {
			it.memory[n].PrefetchAt(offset, it.sizes[n])
			it.ahead.Took(it.sizes[n])
		} else {
			it.memory[n].PrefetchKey(rec)
		}
	}
}

// Valid implements base.Iterator.
func (it *Iter) Valid() bool { return it.i >= 0 }

// Key implements base.Iterator.
func (it *Iter) Key() []byte { return it.key }

// Seq implements base.Iterator.
func (it *Iter) Seq() uint64 {
	if it.inMem {
		n, rec, _ := it.rows[it.i].record()
		return it.memory[n].FirstSeq() + uint64(rec)
	}
	return it.c.Seq()
}

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return base.KindPut }

// Value implements base.Iterator.
func (it *Iter) Value() ([]byte, error) {
	first := !it.values
	if it.values = true; !it.inMem {
		return it.c.Value()
	}
	if first {
		n, _, offset := it.rows[it.i].record()
		it.memory[n].EntryAt(&it.entry, offset)
	}
	return it.entry.Value, nil
}

// Err implements base.Iterator.
func (it *Iter) Err() error { return it.err }

// Close lets go of the pages of tables. But for Init nothing may be called afterwards.
func (it *Iter) Close() error {
	for k := range it.cursors {
		it.cursors[k].Close()
	}
	clear(it.cursors)
	*it = Iter{cursors: it.cursors[:0], i: -1}
	return nil
}
