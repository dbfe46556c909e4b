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
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// flushOldest turns the oldest sealed layer into tables of level 0 and reports
// whether there was one. Whoever calls it, commits learn how it went: those that wait
// for room would wait for ever if a layer whose flush had failed were flushed without
// a word.
func (e *Engine) flushOldest() (did bool, err error) {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	defer func() { e.setFlushError(err) }()
	l, err := e.awaitOldest()
	if l == nil {
		return false, err
	}
	start := time.Now()
	tables, err := e.flushLayer(l)
	if err != nil {
		return true, fmt.Errorf("flush: %w", err)
	}
	e.counters.FlushedBytes.Add(tree.SizeOf(tables))
	e.emit(report.Event{Kind: report.EventFlush, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	return true, nil
}

// awaitOldest returns the oldest sealed layer, nil if there is none, once the
// outcome of all commits in its segment is known: what fails must not reach a
// table, and a large transaction that succeeds becomes an older layer, without
// which the segment with its record must not become useless. While writing moves on
// from commits that failed it waits too: until the new segment's link is durable, what they
// left in a later segment is told from commits by the end of this one.
func (e *Engine) awaitOldest() (*tree.Layer, error) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		l := e.oldestSealed()
		switch {
		case l == nil:
			return nil, nil
		case c.failed != nil:
			return nil, c.failed
		case l.Mem == nil || !c.broken && !e.undecided(l.Mem):
			return l, nil
		case !c.leading && l.Mem.AwaitsLink():
			e.lead(nil)
		default:
			c.cond.Wait()
		}
	}
}

// undecided reports whether the outcome of a commit in a sealed memtable's segment
// may be open. The record of a large transaction begins a segment, so if there are
// entries it was decided before them. commit.mu is held.
func (e *Engine) undecided(m *tree.Memory) bool {
	if m.Len() > 0 {
		return e.Visible() < m.LastSeq()
	}
	return e.commit.ingesting > 0 || m.AwaitsLink()
}

// oldestSealed returns the oldest layer nothing is appended to any more.
// commit.mu is held.
func (e *Engine) oldestSealed() *tree.Layer {
	layers := e.State().Layers
	if n := len(layers); n > 0 && (layers[n-1].Mem == nil || layers[n-1].Mem != e.commit.mem) {
		return layers[n-1]
	}
	return nil
}

// flushLayer writes a memtable to a run of level 0, or installs the tables of a large
// transaction there: as many runs as it had private ones, told apart by their sequences.
func (e *Engine) flushLayer(l *tree.Layer) (tables []*tree.Handle, err error) {
	edit := &manifest.Edit{}
	if l.Mem == nil {
		edit.IngestedThrough, edit.LastSeq = l.Seq, l.Seq
		tables = l.Tables()
		for _, h := range tables {
			edit.Added = append(edit.Added, manifest.Added{Run: h.Meta.GlobalSeq, Table: h.Meta})
		}
		return tables, e.install(edit, tables, l)
	}
	if l.Mem.Len() > 0 { // else its base may come from commits that failed
		edit.LastSeq = l.Mem.LastSeq()
	}
	if tables, err = e.writeMemory(l.Mem, e.State().Lowest(l)); err != nil {
		return nil, err
	}
	for _, h := range tables {
		edit.Added = append(edit.Added, manifest.Added{Run: max(edit.LastSeq, 1), Table: h.Meta})
	}
	if err = e.install(edit, tables, l); err != nil {
		e.withdraw(tables, err)
	}
	return tables, err
}

// writeMemory writes a sealed memtable to a table of level 0, none if it is empty.
// bottom says that there is nothing older.
func (e *Engine) writeMemory(m *tree.Memory, bottom bool) ([]*tree.Handle, error) {
	if m.Len() == 0 {
		return nil, nil
	}
	return e.tables.WriteResident(e.mergeOf(m, bottom), 0, uint64(m.Len()), tablefiles.Beside)
}

// writeReplayed is writeMemory of what was replayed, while Open waits: on all processors, and none of
// its pages begins in memory.
func (e *Engine) writeReplayed(m *tree.Memory, bottom bool) ([]*tree.Handle, error) {
	return e.tables.Write(e.mergeOf(m, bottom), 0, uint64(m.Len()), tablefiles.Awaited)
}

// mergeOf is what makes a table of a sealed memtable.
func (e *Engine) mergeOf(m *tree.Memory, bottom bool) *compact.Merge {
	m.Sort()
	return &compact.Merge{
		Rows:        iterator.NewMerging(m.Iterators(nil)...),
		Tombstones:  tombstone.Build(m.RangeDeletes()),
		Snapshots:   e.snapshots(),
		Bottom:      bottom,
		TargetBytes: wholeTable,
		Check:       e.mustStop,
	}
}

// wholeTable is a size no table reaches: what is written at once becomes one.
const wholeTable = 1 << 40

// snapshots returns the sequences of open snapshots, in order.
func (e *Engine) snapshots() tombstone.Stripes {
	s := e.Epochs.Snapshots(nil)
	slices.Sort(s)
	return tombstone.Stripes(slices.Compact(s))
}

// withdraw gives up tables whose edit failed with err. If the store is poisoned
// nobody knows whether the manifest names them, so the files have to stay.
func (e *Engine) withdraw(tables []*tree.Handle, err error) {
	for _, h := range tables {
		e.leftovers.Drop(h.Meta.Num)
	}
	if !errors.Is(err, base.ErrPoisoned) {
		e.tables.Discard(tables)
		return
	}
	for _, h := range tables {
		h.Reader.Close()
	}
}
