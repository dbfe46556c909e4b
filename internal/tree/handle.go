package tree

import (
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
)

// Handle is an open table shared by the States that contain it. It is made without
// a reference.
type Handle struct {
	Meta *base.TableMeta
	*table.Reader
	refs     atomic.Int32
	Closed   atomic.Bool   // nobody reads it any more
	OnUnused func(*Handle) // called when the last reference goes

	SearchOnly atomic.Bool // no point index can be made of it
	Kept       bool        // of a private run: the file has become part of the store
}

// Handles are the open tables of a store, by number.
type Handles map[uint64]*Handle

// Of returns the table that m describes.
func (hs Handles) Of(m *base.TableMeta) *Handle { return hs[m.Num] }

// Add adds tables.
func (hs Handles) Add(tables []*Handle) {
	for _, h := range tables {
		hs[h.Meta.Num] = h
	}
}

// Close closes the tables that are still open. Nobody reads them any more.
func (hs Handles) Close() (errs []error) {
	for _, h := range hs {
		if !h.Closed.Load() {
			errs = append(errs, h.Reader.Close())
		}
	}
	return errs
}

// Ref takes a reference. The caller holds one, or is inside the epoch.
func (h *Handle) Ref() { h.refs.Add(1) }

// Unref drops a reference.
func (h *Handle) Unref() {
	if h.refs.Add(-1) == 0 {
		h.OnUnused(h)
	}
}

// BottomWith returns the tables of the last level that have a codec. None of them may be closed meanwhile. Each is
// read from; one that cannot be has none.
func (rs *State) BottomWith(codec block.Codec) (tables []*Handle) {
	for _, meta := range rs.Version.Levels[manifest.Bottom] {
		h := rs.Handle(meta.Num)
		if c, err := h.Codec(); err == nil && c == codec {
			tables = append(tables, h)
		}
	}
	return tables
}

// Hold returns the tables of inputs, as parts of the runs they are in, with a reference each, for who needs them longer
// than the state. The caller is inside the epoch.
func (rs *State) Hold(inputs []compact.Input) (runs []Run) {
	held := map[uint64]bool{}
	for _, in := range inputs {
		for _, t := range in.Tables {
			held[t.Num] = true
		}
	}
	for _, r := range rs.Runs {
		var tables []*Handle
		for _, h := range r.Tables {
			if held[h.Meta.Num] {
				h.Ref()
				tables = append(tables, h)
			}
		}
		if len(tables) > 0 {
			runs = append(runs, NewRun(tables))
		}
	}
	return runs
}

// Unhold drops the references that Hold took.
func Unhold(runs []Run) {
	for _, r := range runs {
		for _, h := range r.Tables {
			h.Unref()
		}
	}
}

// Numbers returns the numbers of tables, in their order.
func Numbers(tables []*Handle) (nums []uint64) {
	for _, h := range tables {
		nums = append(nums, h.Meta.Num)
	}
	return nums
}

// SizeOf returns the size of the files of tables.
func SizeOf(tables []*Handle) (n int64) {
	for _, h := range tables {
		n += h.Meta.Size
	}
	return n
}
