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
		h := e.TableOf(func(h *tree.Handle) bool {
			return h.Index() == nil && !h.SearchOnly.Load() && e.tables.IndexFits(h.Meta.Entries)
		})
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

func (e *Engine) index(h *tree.Handle) {
	old, err := e.tables.Index(e.stopped, h)
	if old != nil {
		e.Epochs.Retire(func() { old.Free() })
	}
	if err != nil {
		e.emit(report.Event{Kind: report.EventBackgroundError, Err: err})
	}
}
