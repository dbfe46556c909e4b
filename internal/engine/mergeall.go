package engine

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// mergeAllShare: Close merges everything if what lies above the last level is at least
// one part in this many of what lies there.
const mergeAllShare = 10

// mergeAll writes what a store of moderate size holds, in memtables and tables, to the
// last level in one pass, where flushing the one and then merging both would write it
// twice. It reports whether it did. For Close: nobody writes or reads any more.
func (e *Engine) mergeAll() (bool, error) {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	e.merging.Lock()
	defer e.merging.Unlock()
	e.closeWaits.Store(false)
	r := e.readers.Get().(*Reader)
	defer e.readers.Put(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	if !worthMergingAll(rs) {
		return false, nil
	}
	edit := &manifest.Edit{}
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, l := range rs.Layers {
		l.Mem.Sort()
		rows = l.Mem.Iterators(rows)
		tombs = append(tombs, tombstone.Build(l.Mem.RangeDeletes()))
		if l.Mem.Len() > 0 {
			edit.LastSeq = max(edit.LastSeq, l.Mem.LastSeq())
		}
	}
	for level, meta := range rs.Version.Tables() {
		h := rs.Handle(meta.Num)
		rows = append(rows, h.NewIter(r.Slot, table.IterOptions{NoCache: true}))
		tombs = append(tombs, h.Tombstones())
		edit.Removed = append(edit.Removed, manifest.Removed{Level: level, Num: meta.Num})
	}
	m := iterator.NewMerging(rows...)
	defer m.Close()
	tables, err := e.tables.Write(&compact.Merge{
		Rows: m, Tombstones: tombstone.Merge(tombs...), Bottom: true, TargetBytes: TargetTable, Check: e.stopped.Err,
	}, manifest.Bottom, 0, 0)
	if err == nil {
		for _, h := range tables {
			edit.Added = append(edit.Added, manifest.Added{Level: manifest.Bottom, Table: h.Meta})
		}
		if err = e.install(edit, tables, rs.Layers...); err != nil {
			e.withdraw(tables, err)
		}
	}
	if isFull(err) {
		return false, nil // piece by piece it may do
	}
	return err == nil, err
}

// worthMergingAll reports whether there are memtables, and so much in them and above
// the last level that it would be merged into the last level anyway, and not too much.
func worthMergingAll(rs *tree.State) bool {
	above := int64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return false // of a large transaction: a table as it stands
		}
		above += l.Mem.LogBytes()
	}
	bottom := int64(0)
	for level, meta := range rs.Version.Tables() {
		if level == manifest.Bottom {
			bottom += meta.Size
		} else {
			above += meta.Size
		}
	}
	return above > 0 && len(rs.Layers) > 0 && above+bottom <= closeCompact && above*mergeAllShare >= bottom
}
