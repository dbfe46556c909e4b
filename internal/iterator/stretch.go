package iterator

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// Stretcher may be implemented by a base.Iterator that knows of many rows at once that
// there is nothing to decide about: a block of a table, mostly.
type Stretcher interface {
	// Stretch returns a cursor on the current row and the row before which a stretch
	// ends: from the current row on all rows before it are puts that the snapshot
	// sees, each with another key, less than limit (nil: no limit), and with no newer
	// version in this source. Whoever moves the cursor within the stretch moves the
	// iterator. A nil cursor, or an end not behind the current row: no stretch.
	Stretch(limit []byte, snapshot uint64) (c *block.Cursor, end int)
	// StretchBack returns a cursor on the current row and the row with which a stretch back from it ends: all
	// of these rows are as above, but not less than low (nil: no limit). A row that is not before the current one: no stretch.
	StretchBack(low []byte, snapshot uint64) (c *block.Cursor, begin int)
}

// Strider may be implemented by a base.Iterator of which every row is a put that its users
// see, each with another key.
type Strider interface {
	// Stride returns how many rows, at most, follow the current one whose keys are less
	// than limit (nil: no limit).
	Stride(limit []byte) int
}

// stretch is the part of one source that Visible walks by itself.
type stretch struct {
	cur   *block.Cursor // nil: none
	until int           // it ends before this row, or, going backward, with it: who turns round finds no row left
	tries uint          // rows of several sources since the last stretch

	strider base.Iterator // walked in place of a cursor; nil: none
	left    int           // rows
}

// stretchTries is how many rows of several sources are walked one by one between two
// attempts: where sources interleave there are no stretches.
const stretchTries = 16

// beginStretch looks for a stretch from the row that v has just accepted on, in which no other
// source has a key and nothing can hide a row.
func (v *Visible) beginStretch() {
	m, limit := &v.merged, v.high
	if len(v.covers) > 0 {
		return
	}
	if m.one == nil {
		if m.runner < 0 { // who comes next is not known
			return
		}
		if v.tries++; v.tries%stretchTries != 1 {
			return
		}
		if other := &m.heads[m.runner]; other.live && (limit == nil || less(other.key, limit)) {
			limit = other.key
		}
	}
	if s := m.striders[m.current()]; s != nil {
		if n := s.Stride(limit); n > 0 {
			v.strider, v.left, v.tries = m.src[m.current()], n, 0
		}
		return
	}
	source := m.stretches[m.current()]
	if source == nil {
		return
	}
	if c, end := source.Stretch(limit, v.vis.Snapshot); c != nil && end > c.Row+1 {
		v.cur, v.until, v.tries = c, end, 0
	}
}

// beginStretchBack looks for a stretch back from the row that v has just accepted, on which the sources stand.
func (v *Visible) beginStretchBack() {
	m, low := &v.merged, v.low
	source := m.stretches[m.current()]
	if source == nil || len(v.covers) > 0 {
		return
	}
	if m.one == nil {
		if m.runner < 0 {
			return
		}
		if v.tries++; v.tries%stretchTries != 1 {
			return
		}
		if other := &m.heads[m.runner]; other.live && (low == nil || !less(other.key, low)) {
			v.above = append(append(v.above[:0], other.key...), 0)
			low = v.above
		}
	}
	if c, begin := source.StretchBack(low, v.vis.Snapshot); c != nil && begin < c.Row {
		v.cur, v.until, v.tries = c, begin, 0
	}
}

// Retreat moves to the previous row if that stands in the same stretch back. If not, nothing has changed: Prev will
// do it.
func (v *Visible) Retreat() bool {
	c := v.cur
	if c == nil || c.Row <= v.until {
		return false
	}
	c.Row--
	v.key = c.Key()
	return true
}

// Advance moves to the next row if that stands in the same stretch. If not, nothing has
// changed: Next will do it.
func (v *Visible) Advance() bool {
	c := v.cur
	if c == nil || c.Row+1 >= v.until {
		return v.left > 0 && v.stride()
	}
	c.Row++
	v.key = c.Key()
	return true
}

// stride is Advance in a source that is a Strider. If it fails v stands nowhere.
func (v *Visible) stride() bool {
	v.left--
	v.strode++
	if !v.strider.Next() {
		v.err = v.strider.Err()
		v.stretch = stretch{}
		return v.off()
	}
	v.key = v.strider.Key()
	return true
}

// TakeStrode returns how many rows of Striders were walked by Advance since it was called last.
func (v *Visible) TakeStrode() int {
	n := v.strode
	v.strode = 0
	return n
}

// leaveStretch makes the sources stand where the cursor does.
func (v *Visible) leaveStretch() {
	if v.cur != nil || v.strider != nil {
		if v.reverse {
			v.own = append(v.own[:0], v.key...)
		}
		v.cur, v.strider, v.left = nil, nil, 0
		v.seq = v.merged.Seq()
		v.merged.reload(v.merged.current())
	}
}
