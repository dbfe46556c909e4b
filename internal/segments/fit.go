package segments

import (
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
)

// SmallBytes is the size of a segment where there is no space for another: it seals the one before, so that it can be
// flushed.
const SmallBytes = 64 << 10

// Fit says what will do where there is no space for a segment as planned.
type Fit struct {
	Need, Count int  // bytes and entries of its first commit
	Halves      int  // one half as large, and so on down to so many bytes; 0: none
	Small       bool // one of SmallBytes, or what the first commit needs; and at last without space for its flush
	Make        func(p Plan) (*tree.Memory, error)
	Free        func() // removes what would be removed sooner or later; called before anything smaller is tried
}

// MakeFitting makes a segment as planned, by f.Make, or one that takes less; where that finds no space either, by Maker.Make.
func (m *Maker) MakeFitting(p Plan, f Fit) (*tree.Memory, error) {
	least := (f.Need + 4095) &^ 4095
	for m.Budget.Limit() < m.Memory && p.Size > max(int(m.Budget.Limit()/16), tree.MinSegment, 2*least) { // the system gives less
		p.Size, p.Records = p.Size/2&^4095, max(p.Records/2, f.Count+tree.MinSegment/1024)
	}
	made, err := f.Make(p)
	if reserve.IsFull(err) {
		f.Free()
		made, err = f.Make(p)
	}
	for reserve.IsFull(err) && f.Halves > 0 && p.Size > max(f.Halves, least) {
		p.Size = max(p.Size/2&^4095, f.Halves, least)
		p.Records = max(p.Records/2, f.Count+tree.MinSegment/1024)
		made, err = f.Make(p)
	}
	if reserve.IsFull(err) && f.Small {
		p.Size = max(SmallBytes, least)
		p.Records = max(p.Size/16, f.Count) + 64
		if made, err = f.Make(p); reserve.IsFull(err) && p.Size == SmallBytes {
			made, err = m.Make(p)
		}
	}
	return made, err
}
