package tablefiles

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/tree"
)

// Point indexes live in memory only. A table that a flush or a merge writes gets
// its index while it is written; a table opened from disk, or written when there
// was no room, gets it from the indexer. A table without one is searched.

const (
	// While an index is being built a row costs its entry in the builder, which
	// takes memory in units, and its part of the index.
	builderRowBytes  = 16
	builderUnitBytes = 16 << 10
	indexRowBytes    = 11
)

// buildingBytes returns the memory that building an index over rows takes.
func buildingBytes(rows uint64) int64 {
	units := (rows*builderRowBytes + builderUnitBytes - 1) / builderUnitBytes
	return int64(units*builderUnitBytes + rows*indexRowBytes)
}

// IndexFits reports whether an index over rows can be built within the share of
// point indexes, what is being built now left aside.
func (f *Files) IndexFits(rows uint64) bool {
	return 0 < rows && rows < uint64(f.Share) && f.Budget.UsedBy(arena.ClassIndex)+buildingBytes(rows) <= f.Share
}

// ReserveIndex makes room in the budget for building an index over rows, and
// reports whether there is any. The caller is outside the epoch, and calls
// ReleaseIndex once the index is built.
func (f *Files) ReserveIndex(rows uint64) bool {
	if !f.IndexFits(rows) {
		return false
	}
	need := buildingBytes(rows)
	// What others are building is counted twice for a part: an index less now is
	// better than too many.
	if f.indexing.Add(need)+f.Budget.UsedBy(arena.ClassIndex) > f.Share || !f.Pages.Room(need) {
		f.indexing.Add(-need)
		return false
	}
	return true
}

// Promised returns the bytes of indexes being built.
func (f *Files) Promised() int64 { return f.indexing.Load() }

// ReleaseIndex ends what ReserveIndex promised.
func (f *Files) ReleaseIndex(rows uint64) { f.indexing.Add(-buildingBytes(rows)) }

// Index builds the point index of an open table and returns the one it replaces, to
// be freed when nobody reads it any more. ReserveIndex has made room. A table of which
// none can be made is marked; damage is an error.
func (f *Files) Index(ctx context.Context, h *tree.Handle) (old *pointindex.Index, err error) {
	x, err := h.BuildIndex(ctx)
	f.ReleaseIndex(h.Meta.Entries)
	if err == nil {
		return h.AttachIndex(x), nil
	}
	h.SearchOnly.Store(true)
	if errors.Is(err, context.Canceled) || errors.Is(err, pointindex.ErrCrowded) {
		return nil, nil
	}
	return nil, fmt.Errorf("point index of %s: %w", f.Path(h.Meta.Num), err)
}
