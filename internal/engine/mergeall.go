package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// mergeAll writes what a store that is not too large holds, in memtables and tables, to the last level in one pass,
// where flushing the one and then merging both would write it twice. It reports whether it did. All memtables are
// sealed, and the outcome of their commits is known: either they and the tables are those of the state given, to which
// the caller has a reference, and nothing is done if by now the store has other tables, though it may have more
// memtables; or it is closing, the state is nil, and nobody writes or reads any more.
func (e *Engine) mergeAll(sealed *tree.State, effort tablefiles.Effort) (bool, error) {
	closing := sealed == nil
	e.flushing.Lock()
	defer e.flushing.Unlock()
	if closing {
		e.merging.Lock()
		e.closeWaits.Store(false)
	} else if !e.merging.TryLock() {
		return false, nil // somebody has asked for a compaction, for which no flush should wait
	}
	defer e.merging.Unlock()
	r := e.Reader()
	defer e.Done(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	if closing {
		sealed = rs
	}
	limit := e.restLimit(sealed)
	if closing {
		limit = sealed.CloseMerge()
	}
	if !rs.Continues(sealed) || !sealed.WorthMergingAll(limit) {
		return false, nil
	}
	if !closing && len(e.merger.Leftovers.Unreadable()) > 0 {
		return false, nil // piece by piece without that
	}
	start := time.Now()
	tables, err := e.installer.All(sealed, closing, effort, func() error { return e.mergeMayGoOn(closing) })
	switch {
	case reserve.IsFull(err):
		e.restShort.Store(true)
		return false, nil // piece by piece it may do
	case err == nil:
		e.restShort.Store(false)
		e.setFlushError(nil) // what a flush could not do is done: who waits for it goes on
		merged := sealed.OfTables(tree.SizeOf(tables))
		e.events.CompactedBytes.Add(merged)
		e.events.FlushedBytes.Add(tree.SizeOf(tables) - merged)
		e.events.Emit(report.Event{Kind: report.EventFlush, Level: manifest.Bottom, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	}
	return err == nil, err
}

// mergeMayGoOn returns why a merge of everything has to end. Close interrupts one that is not its own.
func (e *Engine) mergeMayGoOn(closing bool) error {
	switch {
	case closing:
		return e.stopped.Err()
	case e.stalled.Load() > 0:
		return merger.ErrGivenUp // piece by piece there is room for commits sooner
	}
	return e.mustStop()
}
