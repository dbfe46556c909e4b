package engine

import (
	"context"
	"errors"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/pointindex"
)

// Point indexes live in memory only. A table that a flush or a merge writes gets
// its index while it is written; a table opened from disk, or written when there
// was no room, gets it from the indexer. A table without one is searched.

const (
	// indexShare: point indexes may take one part in this many of Memory.
	indexShare = 4
	// buildingRowBytes is what a row costs while its index is being built: the entry
	// gathered, and its part of the index.
	buildingRowBytes = 27
)

// indexFits reports whether an index over rows can be built within the share of
// point indexes.
func (e *Engine) indexFits(rows uint64) bool {
	share := e.cfg.Memory / indexShare
	return 0 < rows && rows < uint64(share) && e.budget.UsedBy(arena.ClassIndex)+int64(rows)*buildingRowBytes <= share
}

// indexRoom makes room in the budget for building an index over rows. The caller
// is outside the epoch.
func (e *Engine) indexRoom(rows uint64) { e.pages.Room(int64(rows) * buildingRowBytes) }

// indexBuilder returns a builder for the index of a table to be written that will
// have about so many rows, nil if it has to do without for now.
func (e *Engine) indexBuilder(rows uint64) *pointindex.Builder {
	if !e.indexFits(rows) {
		return nil
	}
	e.indexRoom(rows)
	return pointindex.NewBuilder(e.budget)
}

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
	num    uint64
	points *pointindex.Builder
	made   tableIndexes
}

func (o *indexed) Finish() (base.TableMeta, error) {
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
		if h == nil {
			select {
			case <-e.stopped.Done():
			case <-e.wakeIndex:
			}
			continue
		}
		e.index(h)
		h.unref()
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
	e.indexRoom(h.meta.Entries)
	x, err := h.BuildIndex(e.stopped)
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
