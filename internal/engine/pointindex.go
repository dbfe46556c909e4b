package engine

import (
	"context"
	"errors"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/table"
)

// Point indexes live in memory only. A table that a flush or a merge writes gets
// its index while it is written; a table opened from disk, or written when there
// was no room, gets it from the indexer. A table without one is searched.

const (
	// indexShare: point indexes may take one part in this many of Memory.
	indexShare = 4
	// While an index is being built a row costs its entry in the builder, which
	// takes memory in units, and its part of the index.
	builderRowBytes  = 16
	builderUnitBytes = 128 << 10
	indexRowBytes    = 11
)

// buildingBytes returns the memory that building an index over rows takes.
func buildingBytes(rows uint64) int64 {
	units := (rows*builderRowBytes + builderUnitBytes - 1) / builderUnitBytes
	return int64(units*builderUnitBytes + rows*indexRowBytes)
}

// indexFits reports whether an index over rows can be built within the share of
// point indexes, what is being built now left aside.
func (e *Engine) indexFits(rows uint64) bool {
	share := e.cfg.Memory / indexShare
	return 0 < rows && rows < uint64(share) && e.budget.UsedBy(arena.ClassIndex)+buildingBytes(rows) <= share
}

// reserveIndex makes room in the budget for building an index over rows, and
// reports whether there is any. The caller is outside the epoch, and calls
// releaseIndex once the index is built.
func (e *Engine) reserveIndex(rows uint64) bool {
	if !e.indexFits(rows) {
		return false
	}
	need := buildingBytes(rows)
	// What others are building is counted twice for a part: an index less now is
	// better than too many.
	if e.indexing.Add(need)+e.budget.UsedBy(arena.ClassIndex) > e.cfg.Memory/indexShare {
		e.indexing.Add(-need)
		return false
	}
	e.pages.Room(need)
	return true
}

func (e *Engine) releaseIndex(rows uint64) { e.indexing.Add(-buildingBytes(rows)) }

// tableIndexes are the indexes of tables, by number, that are not open yet.
type tableIndexes map[uint64]*pointindex.Index

func (x tableIndexes) attach(h *handle) {
	if index := x[h.meta.Num]; index != nil {
		h.AttachIndex(index)
		delete(x, h.meta.Num)
	}
}

// free gives back what was not attached.
func (x tableIndexes) free() {
	for _, index := range x {
		index.Free()
	}
}

// indexed builds the index of a table as soon as the table is finished: a builder
// takes more memory than the index, and on the Go heap.
type indexed struct {
	compact.Output
	e      *Engine
	num    uint64
	rows   uint64 // reserved for so many
	points *pointindex.Builder
	made   tableIndexes
}

// createOutput creates a table, with an index over about so many rows if there is
// room for one.
func (e *Engine) createOutput(level int, rows uint64, made tableIndexes) (compact.Output, uint64, error) {
	var opts table.WriterOptions
	if e.reserveIndex(rows) {
		opts.PointIndex = pointindex.NewBuilder(e.budget)
	}
	w, num, err := e.createTable(level, opts)
	switch {
	case opts.PointIndex == nil:
		return w, num, err
	case err != nil:
		e.releaseIndex(rows)
		return nil, num, err
	}
	return &indexed{w, e, num, rows, opts.PointIndex, made}, num, nil
}

func (o *indexed) release() {
	o.e.releaseIndex(o.rows)
	o.rows = 0
}

func (o *indexed) Finish() (base.TableMeta, error) {
	defer o.release()
	meta, err := o.Output.Finish()
	if err != nil {
		o.points.Discard()
		return meta, err
	}
	if x, err := o.points.Build(); err == nil { // if not, the indexer finds out why
		o.made[o.num] = x
	}
	return meta, nil
}

func (o *indexed) Abandon() error {
	o.points.Discard()
	o.release()
	return o.Output.Abandon()
}

// mergedRows estimates from above how many rows one table that job writes will
// have. Tables may hold more than their share where the codec changes.
func mergedRows(job *compact.Job) uint64 {
	rows := uint64(0)
	for _, in := range job.Inputs {
		for _, t := range in.Tables {
			rows += t.Entries
		}
	}
	if share := 2 * float64(job.TargetFileBytes) / float64(max(job.Bytes(), 1)); share < 1 {
		return uint64(float64(rows) * share)
	}
	return rows
}

// indexer gives tables that have none a point index, those of the upper levels
// first: they are the youngest, and every read has to ask them.
func (e *Engine) indexer() {
	for e.stopped.Err() == nil {
		h := e.nextUnindexed()
		if h != nil && e.reserveIndex(h.meta.Entries) {
			e.index(h)
			h.unref()
			continue
		}
		if h != nil {
			h.unref()
		}
		select {
		case <-e.stopped.Done():
		case <-e.wakeIndex:
		}
	}
}

// nextUnindexed returns a table that can have a point index and has none, with a
// reference, or nil. Inside the epoch the state holds its tables, so that one more
// reference may be taken.
func (e *Engine) nextUnindexed() *handle {
	r := e.readers.Get().(*reader)
	r.slot.Enter()
	defer e.leave(r)
	rs := e.state.Load()
	if rs == nil {
		return nil
	}
	for _, h := range rs.handles {
		if h.Index() == nil && !h.searchOnly.Load() && e.indexFits(h.meta.Entries) {
			h.ref()
			return h
		}
	}
	return nil
}

func (e *Engine) index(h *handle) {
	x, err := h.BuildIndex(e.stopped)
	e.releaseIndex(h.meta.Entries)
	if err == nil {
		if old := h.AttachIndex(x); old != nil {
			e.epochs.Retire(func() { old.Free() })
		}
		return
	}
	h.searchOnly.Store(true)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, pointindex.ErrCrowded) {
		e.emit(Event{Kind: EventBackgroundError, Err: wrap(err, "point index of "+e.path(base.FileTable, h.meta.Num))})
	}
}
