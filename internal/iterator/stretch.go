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
	until int
	tries uint // rows of several sources since the last stretch

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
		v.cur, v.strider, v.left = nil, nil, 0
		v.seq = v.merged.Seq()
		v.merged.reload(v.merged.current())
	}
}
