package engine

import (
	"context"
	"errors"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/tree"
)

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

// indexShare: point indexes may take one part in this many of Memory.
const indexShare = 4

// indexer gives tables that have none a point index, those of the upper levels
// first: they are the youngest, and every read has to ask them.
func (e *Engine) indexer() {
	for e.stopped.Err() == nil {
		h := e.nextUnindexed()
		if h != nil && e.tables.ReserveIndex(h.Meta.Entries) {
			e.index(h)
			h.Unref()
			continue
		}
		if h != nil {
			h.Unref()
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
func (e *Engine) nextUnindexed() *tree.Handle {
	r := e.readers.Get().(*Reader)
	r.Slot.Enter()
	defer e.leave(r)
	rs := e.state.Load()
	if rs == nil {
		return nil
	}
	for _, h := range rs.Handles {
		if h.Index() == nil && !h.SearchOnly.Load() && e.tables.IndexFits(h.Meta.Entries) {
			h.Ref()
			return h
		}
	}
	return nil
}

func (e *Engine) index(h *tree.Handle) {
	x, err := h.BuildIndex(e.stopped)
	e.tables.ReleaseIndex(h.Meta.Entries)
	if err == nil {
		if old := h.AttachIndex(x); old != nil {
			e.epochs.Retire(func() { old.Free() })
		}
		return
	}
	h.SearchOnly.Store(true)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, pointindex.ErrCrowded) {
		e.emit(Event{Kind: EventBackgroundError, Err: wrap(err, "point index of "+e.tables.Path(h.Meta.Num))})
	}
}
