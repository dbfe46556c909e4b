package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
)

// flushOldest turns the oldest sealed layer into tables of level 0 and reports
// whether there was one.
func (e *Engine) flushOldest() (bool, error) {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	l, err := e.awaitOldest()
	if l == nil {
		return false, err
	}
	return true, e.flushLayer(l)
}

// awaitOldest returns the oldest sealed layer, nil if there is none, once the
// outcome of all commits in its segment is known: what fails must not reach a
// table, and a large transaction that succeeds becomes an older layer, without
// which the segment with its record must not become useless.
func (e *Engine) awaitOldest() (*layer, error) {
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
		case l.mem == nil || !e.undecided(l.mem):
			return l, nil
		}
		c.cond.Wait()
	}
}

// undecided reports whether the outcome of a commit in a sealed memtable's segment
// may be open. The record of a large transaction begins a segment, so if there are
// entries it was decided before them. commit.mu is held.
func (e *Engine) undecided(m *memory) bool {
	if m.Len() > 0 {
		return e.visible.Load() < m.LastSeq()
	}
	return e.commit.ingesting > 0
}

// oldestSealed returns the oldest layer nothing is appended to any more.
// commit.mu is held.
func (e *Engine) oldestSealed() *layer {
	layers := e.state.Load().layers
	if n := len(layers); n > 0 && (layers[n-1].mem == nil || layers[n-1].mem != e.commit.mem) {
		return layers[n-1]
	}
	return nil
}

func (e *Engine) flushLayer(l *layer) error {
	start := time.Now()
	edit := &manifest.Edit{}
	var tables []*handle
	level := 0
	if l.mem == nil {
		tables = l.tables()
		edit.IngestedThrough = l.seq
		edit.LastSeq = l.seq
	} else {
		var err error
		if l.mem.Len() > 0 { // else its base may come from commits that failed
			edit.LastSeq = l.mem.LastSeq()
		}
		bottom := e.state.Load().version.NumTables() == 0 && e.oldest(l)
		if bottom && e.isClosing() {
			level = lastLevel // all there is: what Close would merge it to anyway
		}
		if tables, err = e.writeMemory(l.mem, bottom, level); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	for _, h := range tables {
		edit.Added = append(edit.Added, manifest.Added{Level: level, Run: e.runOf(l, h, level), Table: h.meta})
	}
	if err := e.install(edit, tables, l); err != nil {
		if l.mem != nil {
			e.withdraw(tables, err)
		}
		return fmt.Errorf("flush: %w", err)
	}
	e.counters.flushedBytes.Add(bytesOf(tables))
	e.emit(Event{Kind: EventFlush, Done: bytesOf(tables), Duration: time.Since(start)})
	return nil
}

// runOf returns the id of the level 0 run that table h of layer l belongs to.
// Tables of a flush are one run; ingested tables are as many as the transaction
// had private runs, told apart by their sequences. Deeper levels have no run ids.
func (e *Engine) runOf(l *layer, h *handle, level int) uint64 {
	switch {
	case level > 0:
		return 0
	case l.mem != nil:
		return max(l.mem.LastSeq(), 1)
	}
	return h.meta.GlobalSeq
}

func bytesOf(tables []*handle) (n int64) {
	for _, h := range tables {
		n += h.meta.Size
	}
	return n
}

// writeMemory writes a sealed memtable to tables of a level. An empty one makes
// none. bottom says that there is nothing older.
func (e *Engine) writeMemory(m *memory, bottom bool, level int) ([]*handle, error) {
	if m.Len() == 0 {
		return nil, nil
	}
	m.Sort()
	return e.writeTables(&compact.Merge{
		Rows:        iterator.NewMerging(m.Iterators(nil)...),
		Tombstones:  tombstone.Build(m.RangeDeletes()),
		Snapshots:   e.snapshots(),
		Bottom:      bottom,
		TargetBytes: flushTarget(level),
		Check:       e.stopped.Err,
	}, level, uint64(m.Len()))
}

// flushTarget is the size of the tables of a flush: one, unless it goes where
// tables are merged piece by piece.
func flushTarget(level int) int64 {
	if level == 0 {
		return 1 << 40
	}
	return targetTable
}

func (e *Engine) isClosing() bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.commit.closing
}

// oldest reports whether l is the oldest layer.
func (e *Engine) oldest(l *layer) bool {
	layers := e.state.Load().layers
	return len(layers) > 0 && layers[len(layers)-1] == l
}

// snapshots returns the sequences of open snapshots, in order.
func (e *Engine) snapshots() tombstone.Stripes {
	s := e.epochs.Snapshots(nil)
	slices.Sort(s)
	return tombstone.Stripes(slices.Compact(s))
}

// codec returns the codec for tables of a level.
func (e *Engine) codec(level int) block.Codec {
	switch e.cfg.Profile {
	case ProfileNone:
		return block.None
	case ProfileFast:
		return block.LZ4
	case ProfileSmall:
		return block.Zstd
	}
	if level == lastLevel {
		return block.Zstd
	}
	return block.LZ4
}

const lastLevel = 6

// writeTables runs a merge into new tables of a level and opens them. rows is how
// many one of them will have, about. On an error no file is left.
func (e *Engine) writeTables(m *compact.Merge, level int, rows uint64) ([]*handle, error) {
	return e.writeTablesAs(m, level, rows, 0)
}

// writeTablesAs is writeTables for tables whose rows all have the sequence
// global, unless that is zero. rows 0 means that the tables get no point index.
func (e *Engine) writeTablesAs(m *compact.Merge, level int, rows, global uint64) ([]*handle, error) {
	var made []uint64
	points := tableIndexes{}
	defer points.free()
	m.Create = func() (compact.Output, error) {
		out, num, err := e.createOutput(level, rows, points)
		made = append(made, num)
		switch {
		case err != nil: // out is a nil pointer: it must not become an interface
			return nil, err
		case global != 0:
			return unsequenced{out}, nil
		}
		return out, nil
	}
	metas, err := m.Run()
	for i := range metas {
		setGlobalSeq(&metas[i], global)
	}
	if err == nil && len(metas) > 0 {
		err = e.syncDir()
	}
	var tables []*handle
	for i := 0; i < len(metas) && err == nil; i++ {
		var h *handle
		if h, err = e.openTable(&metas[i]); err == nil {
			points.attach(h)
			tables = append(tables, h)
		}
	}
	if err == nil {
		return tables, nil
	}
	for _, h := range tables {
		h.Reader.Close()
	}
	for _, num := range made {
		e.cfg.FS.Remove(e.path(base.FileTable, num))
	}
	return nil, err
}

func (e *Engine) createTable(level int, opts table.WriterOptions) (*table.Writer, uint64, error) {
	e.manifestMu.Lock()
	num := e.newFileNum()
	e.manifestMu.Unlock()
	f, err := e.cfg.FS.Create(e.path(base.FileTable, num))
	if err != nil {
		return nil, num, fmt.Errorf("create table: %w", err)
	}
	opts.Name, opts.Num, opts.Store, opts.Codec = base.FileName(base.FileTable, num), num, e.store, e.codec(level)
	return table.NewWriter(f, opts), num, nil
}

// openTable opens a table for reading. Its handle has no reference yet.
func (e *Engine) openTable(meta *base.TableMeta) (*handle, error) {
	name := e.path(base.FileTable, meta.Num)
	f, err := e.cfg.FS.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open table: %w", err)
	}
	r, err := table.Open(f, *meta, e.store, name, e.pages, e.budget)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &handle{meta: meta, Reader: r, close: e.closeTable}, nil
}

// withdraw gives up tables whose edit failed with err. If the store is poisoned
// nobody knows whether the manifest names them, so the files have to stay.
func (e *Engine) withdraw(tables []*handle, err error) {
	if !errors.Is(err, base.ErrPoisoned) {
		e.discard(tables)
		return
	}
	for _, h := range tables {
		h.Reader.Close()
	}
}

// discard closes and removes tables that no edit names.
func (e *Engine) discard(tables []*handle) {
	for _, h := range tables {
		h.Reader.Close()
		e.cfg.FS.Remove(e.path(base.FileTable, h.meta.Num))
	}
}
