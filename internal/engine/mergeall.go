package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// mergeAll writes what a store that is not too large holds, in memtables and tables, to the
// last level in one pass, where flushing the one and then merging both would write it
// twice. It reports whether it did. All memtables are sealed, and the outcome of their
// commits is known: either they and the tables are those of the state given, to which the
// caller has a reference, and nothing is done if by now the store has other tables, though
// it may have more memtables; or it is closing, the state is nil, and nobody writes or
// reads any more.
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
	limit := int64(tree.RestMerge)
	if closing {
		sealed, limit = rs, rs.CloseMerge()
	}
	if !rs.Continues(sealed) || !sealed.WorthMergingAll(limit) {
		return false, nil
	}
	start := time.Now()
	all := sealed.Whole(r.Slot)
	defer all.Rows.Close()
	oldest := e.pickInputs(false).OldestSnapshot
	merge := &compact.Merge{Rows: all.Rows, Tombstones: all.Tombstones, Snapshots: e.snapshots(), Bottom: true, TargetBytes: TargetTable}
	tables, err := e.writeAll(merge, all.Count, closing, effort)
	if err == nil {
		e.leftovers.Note(&compact.Job{Bottommost: true, OutLevel: manifest.Bottom, Quick: e.tables.Hasty(effort)}, tree.Numbers(tables), merge.Leftovers(), oldest)
		for _, h := range tables {
			all.Edit.Added = append(all.Edit.Added, manifest.Added{Level: manifest.Bottom, Table: h.Meta})
		}
		if err = e.install(&all.Edit, tables, sealed.Layers...); err != nil {
			e.withdraw(tables, err)
		}
	}
	switch {
	case reserve.IsFull(err):
		return false, nil // piece by piece it may do
	case err == nil:
		e.setFlushError(nil) // what a flush could not do is done: who waits for it goes on
		e.counters.FlushedBytes.Add(tree.SizeOf(tables))
		e.emit(report.Event{Kind: report.EventFlush, Level: manifest.Bottom, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	}
	return err == nil, err
}

// writeAll writes the tables of mergeAll. What a store that stays open writes begins in
// memory, as after any other merge, and Close interrupts it.
func (e *Engine) writeAll(merge *compact.Merge, count uint64, closing bool, effort tablefiles.Effort) ([]*tree.Handle, error) {
	if closing {
		merge.Check = e.stopped.Err
		return e.tables.Write(merge, manifest.Bottom, 0, effort)
	}
	merge.Check = func() error {
		if e.stalled.Load() > 0 {
			return errGivenUp // piece by piece there is room for commits sooner
		}
		return e.mustStop()
	}
	return e.tables.WriteResident(merge, manifest.Bottom, count, effort)
}
