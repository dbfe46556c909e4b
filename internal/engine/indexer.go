package engine

import (
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tree"
)

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
	r := e.Reader()
	r.Slot.Enter()
	defer e.Leave(r)
	rs := e.State()
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
	old, err := e.tables.Index(e.stopped, h)
	if old != nil {
		e.Epochs.Retire(func() { old.Free() })
	}
	if err != nil {
		e.emit(report.Event{Kind: report.EventBackgroundError, Err: err})
	}
}
