package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// mergeAll writes what a store of no more than limit bytes holds, in memtables and
// tables, to the last level in one pass, where flushing the one and then merging both
// would write it twice. It reports whether it did. All memtables are sealed, and the
// outcome of their commits is known: either the store is coming to rest in the state given,
// to which the caller has a reference, and nothing is done if it has another one by now; or
// it is closing, the state is nil, and nobody writes or reads any more.
func (e *Engine) mergeAll(resting *tree.State, limit int64) (bool, error) {
	closing := resting == nil
	e.flushing.Lock()
	defer e.flushing.Unlock()
	e.merging.Lock()
	defer e.merging.Unlock()
	if closing {
		e.closeWaits.Store(false)
	}
	r := e.readers.Get().(*Reader)
	defer e.readers.Put(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	if !closing && rs != resting || !rs.WorthMergingAll(limit) {
		return false, nil
	}
	count := uint64(0)
	start := time.Now()
	edit := &manifest.Edit{}
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, l := range rs.Layers {
		l.Mem.Sort()
		rows = l.Mem.Iterators(rows)
		tombs = append(tombs, tombstone.Build(l.Mem.RangeDeletes()))
		count += uint64(l.Mem.Len())
		if l.Mem.Len() > 0 {
			edit.LastSeq = max(edit.LastSeq, l.Mem.LastSeq())
		}
	}
	for level, meta := range rs.Version.Tables() {
		h := rs.Handle(meta.Num)
		rows = append(rows, h.NewIter(r.Slot, table.IterOptions{NoCache: true}))
		tombs = append(tombs, h.Tombstones())
		count += meta.Entries
		edit.Removed = append(edit.Removed, manifest.Removed{Level: level, Num: meta.Num})
	}
	m := iterator.NewMerging(rows...)
	defer m.Close()
	oldest := e.pickInputs(false).OldestSnapshot
	merge := &compact.Merge{Rows: m, Tombstones: tombstone.Merge(tombs...), Snapshots: e.snapshots(), Bottom: true, TargetBytes: TargetTable}
	tables, err := e.writeAll(merge, count, closing)
	if err == nil {
		e.noteLeftovers(&compact.Job{Bottommost: true}, tables, merge.Leftovers(), oldest)
		for _, h := range tables {
			edit.Added = append(edit.Added, manifest.Added{Level: manifest.Bottom, Table: h.Meta})
		}
		if err = e.install(edit, tables, rs.Layers...); err != nil {
			e.withdraw(tables, err)
		}
	}
	switch {
	case isFull(err):
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
func (e *Engine) writeAll(merge *compact.Merge, count uint64, closing bool) ([]*tree.Handle, error) {
	if closing {
		merge.Check = e.stopped.Err
		return e.tables.Write(merge, manifest.Bottom, 0, 0)
	}
	merge.Check = e.mustStop
	return e.tables.WriteResident(merge, manifest.Bottom, count, true)
}
