package sorted

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/memtable"
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
	key []byte
	t   *memtable.Table // nil: it is in a table
	rec uint32
	c   *cursor

	cursors []cursor // of the handles
	opened  []*cursor

	values bool // somebody asked for a value
	seen   int  // rows before it were touched ahead
	window int  // how many at a time
	sum    byte // of what was touched
}

// cursor is where the iterator stands in a table.
type cursor struct {
	table.Iter
	open bool
}

var _ base.Iterator = (*Iter)(nil)

// Init makes it an iterator over rows that stands nowhere. slot is its goroutine's.
func (it *Iter) Init(rows *Rows, slot *epoch.Slot) {
	if n := len(rows.handles); n > cap(it.cursors) {
		it.cursors = make([]cursor, n)
	}
	*it = Iter{Rows: rows, slot: slot, i: -1, cursors: it.cursors[:cap(it.cursors)], opened: it.opened[:0]}
}

// place makes row i the current one, or none if there is no such row.
func (it *Iter) place(i int) bool {
	if it.i = -1; it.err != nil || i < 0 || i >= len(it.rows) {
		return false
	}
	n, b, row, inTable := it.rows[i].place()
	if !inTable {
		it.t, it.rec = it.memory[n], uint32(b<<blockAt|row)
		it.key, it.i = it.t.Key(it.rec), i
		return true
	}
	it.t, it.c = nil, &it.cursors[n]
	if !it.c.open {
		it.handles[n].InitIter(&it.c.Iter, it.slot, table.IterOptions{})
		it.c.open = true
		it.opened = append(it.opened, it.c)
	}
	if !it.c.Go(b, row) {
		it.err = it.c.Err()
		return false
	}
	it.key, it.i = it.c.Key(), i
	return true
}

// First implements base.Iterator.
func (it *Iter) First() bool { return it.begin(0) }

// Last implements base.Iterator.
func (it *Iter) Last() bool { return it.place(len(it.rows) - 1) }

// begin begins a walk forward.
func (it *Iter) begin(i int) bool {
	it.seen, it.window = i+1, 0
	return it.place(i)
}

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool {
	i, ok := it.find(key)
	return ok && it.begin(i)
}

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool {
	i, ok := it.find(key)
	return ok && it.place(i-1)
}

// find returns how many rows have lesser keys. It returns false after an error.
func (it *Iter) find(key []byte) (int, bool) {
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
	if it.i+1 >= it.seen {
		it.lookAhead(it.i + 1)
	}
	return it.place(it.i + 1)
}

// NextKey implements iterator.KeyStepper.
func (it *Iter) NextKey() bool { return it.Next() }

// Prev implements base.Iterator.
func (it *Iter) Prev() bool { return it.i >= 0 && it.place(it.i-1) }

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

// Bounds of how many rows are touched ahead: few after a seek, more as the walk goes on.
const (
	firstWindow = 4
	lastWindow  = 16
)

// lookAhead makes sure that the rows from number i on are on their way to the processor. The
// order of keys is not that in memory, so every one is a cache miss; those of several at once
// overlap.
func (it *Iter) lookAhead(i int) {
	it.window = min(max(2*it.window, firstWindow), lastWindow)
	it.seen = min(i+it.window, len(it.rows))
	for _, r := range it.rows[min(i, it.seen):it.seen] {
		if n, b, row, inTable := r.place(); !inTable {
			it.sum += it.memory[n].Touch(uint32(b<<blockAt|row), it.values)
		} else if c := &it.cursors[n]; c.open {
			it.sum += c.Touch(b, row)
		}
	}
}

// Valid implements base.Iterator.
func (it *Iter) Valid() bool { return it.i >= 0 }

// Key implements base.Iterator.
func (it *Iter) Key() []byte { return it.key }

// Seq implements base.Iterator.
func (it *Iter) Seq() uint64 {
	if it.t != nil {
		return it.t.FirstSeq() + uint64(it.rec)
	}
	return it.c.Seq()
}

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return base.KindPut }

// Value implements base.Iterator.
func (it *Iter) Value() ([]byte, error) {
	it.values = true
	if it.t != nil {
		return it.t.Value(it.rec), nil
	}
	return it.c.Value()
}

// Err implements base.Iterator.
func (it *Iter) Err() error { return it.err }

// Close lets go of the pages of tables. But for Init nothing may be called afterwards.
func (it *Iter) Close() error {
	for _, c := range it.opened {
		c.Close()
		*c = cursor{}
	}
	clear(it.opened)
	*it = Iter{cursors: it.cursors, opened: it.opened[:0], i: -1}
	return nil
}
