// Package indexer gives the tables of an open store their point indexes, in the background.
//
// # Concurrency
//
// Run is called once; Wake may be called at any time, by anybody.
package indexer

import (
	"context"

	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// Share: point indexes may take one part in this many of Memory.
const Share = 4

// Indexer builds point indexes. The exported fields are set before Run.
type Indexer struct {
	View   *view.View
	Tables *tablefiles.Files
	Emit   func(report.Event)

	wake chan struct{}
}

// Init makes x ready to be woken.
func (x *Indexer) Init() { x.wake = make(chan struct{}, 1) }

// Wake has x look for tables that have no index, or now could have one.
func (x *Indexer) Wake() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run gives tables that have none a point index, those of the upper levels
// first: they are the youngest, and every read has to ask them. It ends with ctx.
func (x *Indexer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		h := x.View.TableOf(func(h *tree.Handle) bool {
			return h.Index() == nil && !h.SearchOnly.Load() && x.Tables.IndexFits(h.Meta.Entries)
		})
		if h != nil && x.Tables.ReserveIndex(h.Meta.Entries) {
			x.index(ctx, h)
			h.Unref()
			continue
		}
		if h != nil {
			h.Unref()
		}
		select {
		case <-ctx.Done():
		case <-x.wake:
		}
	}
}

func (x *Indexer) index(ctx context.Context, h *tree.Handle) {
	old, err := x.Tables.Index(ctx, h)
	if old != nil {
		x.View.Epochs.Retire(func() { old.Free() })
	}
	if err != nil {
		x.Emit(report.Event{Kind: report.EventBackgroundError, Err: err})
	}
}
