package engine

import (
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/wal"
)

// memory is a memtable with the segment it indexes and the buffers both use.
type memory struct {
	*memtable.Table
	seg  *wal.Segment // nil after recovery
	buf  []byte       // arena
	refs atomic.Int32
	free func(*memory)
}

func (m *memory) ref() { m.refs.Add(1) }

func (m *memory) unref() {
	if m.refs.Add(-1) == 0 {
		m.free(m)
	}
}

// handle is an open table shared by the readStates that contain it.
type handle struct {
	meta *base.TableMeta
	*table.Reader
	refs   atomic.Int32
	closed atomic.Bool // nobody reads it any more
	close  func(*handle)

	searchOnly atomic.Bool // no point index can be made of it
	kept       bool        // of a private run: the file has become part of the store
}

func (h *handle) ref() { h.refs.Add(1) }

func (h *handle) unref() {
	if h.refs.Add(-1) == 0 {
		h.close(h)
	}
}

// run is a group of tables whose key ranges do not overlap, in key order.
type run struct {
	tables     []*handle
	maxSeq     uint64
	tombstones bool // some table has range tombstones
}

func newRun(tables []*handle) run {
	r := run{tables: tables}
	for _, h := range tables {
		r.maxSeq = max(r.maxSeq, h.meta.MaxSeq)
		r.tombstones = r.tombstones || h.meta.RangeDeletes > 0
	}
	return r
}

// find returns the table whose bounds may contain key, or nil.
func (r *run) find(key []byte) *handle {
	lo, hi := 0, len(r.tables)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r.tables[mid].meta.EndsBefore(key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(r.tables) && r.tables[lo].meta.Contains(key) {
		return r.tables[lo]
	}
	return nil
}

// cover returns the greatest sequence vis sees of a range tombstone of the run
// that covers key.
func (r *run) cover(key []byte, vis base.Visibility) uint64 {
	if h := r.find(key); h != nil && h.meta.RangeDeletes > 0 {
		return h.Tombstones().Cover(key, vis)
	}
	return 0
}

// layer is what lies above the version: a memtable, or tables ingested by a large
// transaction that no manifest edit has recorded yet.
type layer struct {
	mem    *memory
	ingest []run  // newest first
	seq    uint64 // ingest: greatest sequence of its runs
}

// tables returns the ingested tables.
func (l *layer) tables() (all []*handle) {
	for _, r := range l.ingest {
		all = append(all, r.tables...)
	}
	return all
}

// readState is everything a read needs, newest first: layers, then the runs of
// the version. Along that order the sequences of any one key only fall (E1), so
// the first hit is the newest. It is immutable.
type readState struct {
	refs    atomic.Int32
	layers  []*layer
	version *manifest.Version
	runs    []run
	handles []*handle // of the version and of ingested layers, each once
}

func (rs *readState) ref() { rs.refs.Add(1) }

func (rs *readState) unref() {
	if rs.refs.Add(-1) != 0 {
		return
	}
	for _, l := range rs.layers {
		if l.mem != nil {
			l.mem.unref()
		}
	}
	for _, h := range rs.handles {
		h.unref()
	}
}

// newReadState makes a state of the given layers and version. open returns the
// handle of each table. The state starts with one reference: the engine's.
func newReadState(layers []*layer, v *manifest.Version, open func(*base.TableMeta) *handle) *readState {
	rs := &readState{layers: layers, version: v}
	rs.refs.Store(1)
	for _, l := range layers {
		if l.mem != nil {
			l.mem.ref()
		}
		for _, h := range l.tables() {
			h.ref()
			rs.handles = append(rs.handles, h)
		}
	}
	add := func(metas []*base.TableMeta) {
		if len(metas) == 0 {
			return
		}
		tables := make([]*handle, len(metas))
		for i, m := range metas {
			tables[i] = open(m)
			tables[i].ref()
		}
		rs.handles = append(rs.handles, tables...)
		rs.runs = append(rs.runs, newRun(tables))
	}
	for _, r := range v.L0 {
		add(r.Tables)
	}
	for level := 1; level < len(v.Levels); level++ {
		add(v.Levels[level])
	}
	return rs
}

// acquire returns the current state with a reference the caller must drop.
func (e *Engine) acquire(slot epochSlot) *readState {
	slot.Enter()
	rs := e.state.Load()
	rs.ref()
	slot.Exit()
	return rs
}

// publish replaces the current state. Holder of commit.mu only.
func (e *Engine) publish(rs *readState) {
	if old := e.state.Swap(rs); old != nil {
		e.epochs.Retire(old.unref)
	}
}
