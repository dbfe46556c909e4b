package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// flushOldest turns the oldest sealed layer into tables of level 0 and reports
// whether there was one. Whoever calls it, commits learn how it went: those that wait
// for room would wait for ever if a layer whose flush had failed were flushed without
// a word.
func (e *Engine) flushOldest() (bool, error) { return e.flush(1) }

// flush is flushOldest for up to so many of the oldest layers, memtables which become one
// table together.
func (e *Engine) flush(most int) (did bool, err error) {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	defer func() { e.setFlushError(err) }()
	layers, err := e.awaitOldest(most)
	if len(layers) == 0 {
		return false, err
	}
	start := time.Now()
	tables, err := e.flushLayers(layers)
	if err != nil {
		return true, fmt.Errorf("flush: %w", err)
	}
	e.counters.FlushedBytes.Add(tree.SizeOf(tables))
	e.emit(report.Event{Kind: report.EventFlush, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	return true, nil
}

// awaitOldest returns the oldest sealed layer, nothing if there is none, or up to most
// of them, newest first, if they are memtables, once the outcome of all commits in their
// segments is known: what fails must not reach a table, and a large transaction that succeeds becomes an older layer, without
// which the segment with its record must not become useless.
func (e *Engine) awaitOldest(most int) ([]*tree.Layer, error) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		layers := e.oldestSealed(most)
		switch {
		case len(layers) == 0:
			return nil, nil
		case c.failed != nil:
			return nil, c.failed
		case !slices.ContainsFunc(layers, e.undecided):
			return layers, nil
		case !c.leading && slices.ContainsFunc(layers, unwritten):
			e.lead()
		default:
			c.cond.Wait()
		}
	}
}

// undecided reports whether the outcome of a commit in a sealed layer's segment
// may be open. The record of a large transaction begins a segment, so if there are
// entries it was decided before them. commit.mu is held.
func (e *Engine) undecided(l *tree.Layer) bool {
	switch {
	case l.Mem == nil:
		return false
	case l.Mem.Len() > 0:
		return e.visible.Load() < l.Mem.LastSeq()
	}
	return e.commit.ingesting > 0 || unwritten(l)
}

// unwritten reports whether the segment of an empty memtable waits for its link to be
// written: with the commits behind it, if there are any. Until then it must stay open.
func unwritten(l *tree.Layer) bool {
	if l.Mem == nil || l.Mem.Len() > 0 || l.Mem.Seg == nil {
		return false
	}
	tail, _ := l.Mem.Seg.Tail()
	return l.Mem.Seg.Written() < tail.Offset()
}

// oldestSealed returns the oldest layer nothing is appended to any more, or, newest
// first, up to most of the oldest if those are memtables. commit.mu is held.
func (e *Engine) oldestSealed(most int) []*tree.Layer {
	layers := e.state.Load().Layers
	from := len(layers) - 1
	if from < 0 || layers[from].Mem != nil && layers[from].Mem == e.commit.mem {
		return nil
	}
	for ; layers[from].Mem != nil && from > 0 && len(layers)-from < most; from-- {
		if m := layers[from-1].Mem; m == nil || m == e.commit.mem {
			break
		}
	}
	return layers[from:]
}

// flushLayers makes of memtables, newest first, one run of level 0, or installs the
// tables of a large transaction: as many runs as it had private ones, told apart by
// their sequences.
func (e *Engine) flushLayers(layers []*tree.Layer) (tables []*tree.Handle, err error) {
	edit := &manifest.Edit{}
	if l := layers[0]; l.Mem == nil {
		edit.IngestedThrough, edit.LastSeq = l.Seq, l.Seq
		tables = l.Tables()
		for _, h := range tables {
			edit.Added = append(edit.Added, manifest.Added{Run: h.Meta.GlobalSeq, Table: h.Meta})
		}
		return tables, e.install(edit, tables, l)
	}
	for _, l := range layers {
		if l.Mem.Len() > 0 { // else its base may come from commits that failed
			edit.LastSeq = max(edit.LastSeq, l.Mem.LastSeq())
		}
	}
	if tables, err = e.writeMemories(layers, e.nothingBelow(layers)); err != nil {
		return nil, err
	}
	for _, h := range tables {
		edit.Added = append(edit.Added, manifest.Added{Run: max(edit.LastSeq, 1), Table: h.Meta})
	}
	if err = e.install(edit, tables, layers...); err != nil {
		e.withdraw(tables, err)
	}
	return tables, err
}

// writeMemories writes memtables, newest first, to a table of level 0, none if they are
// empty. bottom says that there is nothing older.
func (e *Engine) writeMemories(layers []*tree.Layer, bottom bool) ([]*tree.Handle, error) {
	var rows []base.Iterator
	var tombs []*tombstone.List
	n := 0
	for _, l := range layers {
		if l.Mem.Len() == 0 {
			continue
		}
		n += l.Mem.Len()
		l.Mem.Sort()
		rows = l.Mem.Iterators(rows)
		tombs = append(tombs, tombstone.Build(l.Mem.RangeDeletes()))
	}
	if n == 0 {
		return nil, nil
	}
	return e.tables.WriteResident(&compact.Merge{
		Rows:        iterator.NewMerging(rows...),
		Tombstones:  tombstone.Merge(tombs...),
		Snapshots:   e.snapshots(),
		Bottom:      bottom,
		TargetBytes: wholeTable,
		Check:       e.mustStop,
	}, 0, uint64(n))
}

// wholeTable is a size no table reaches: what is written at once becomes one.
const wholeTable = 1 << 40

// nothingBelow reports whether there are neither tables nor layers older than these.
func (e *Engine) nothingBelow(layers []*tree.Layer) bool {
	all := e.state.Load().Layers
	return e.state.Load().Version.NumTables() == 0 && len(all) > 0 && all[len(all)-1] == layers[len(layers)-1]
}

// snapshots returns the sequences of open snapshots, in order.
func (e *Engine) snapshots() tombstone.Stripes {
	s := e.epochs.Snapshots(nil)
	slices.Sort(s)
	return tombstone.Stripes(slices.Compact(s))
}

// withdraw gives up tables whose edit failed with err. If the store is poisoned
// nobody knows whether the manifest names them, so the files have to stay.
func (e *Engine) withdraw(tables []*tree.Handle, err error) {
	if !errors.Is(err, base.ErrPoisoned) {
		e.tables.Discard(tables)
		return
	}
	for _, h := range tables {
		h.Reader.Close()
	}
}
