package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// recovering replays the log into memtables and, unless read-only, the memtables
// into tables: when it is done the store is as if it had been closed, and nothing
// it rests on is only in the page cache (E6).
type recovering struct {
	e      *Engine
	state  *manifest.State
	edit   manifest.Edit // what recovery adds to the state
	replay wal.Replay
	layers []*layer // read-only: oldest first

	mem      *memory // being filled
	nextSeq  uint64
	done     int64
	total    int64
	segments []*wal.Loaded
	taken    map[*wal.Loaded]bool // a memtable owns the bytes
	written  []*handle            // tables made of replayed memtables
}

// recover brings the store to the state of its last durable commit, or beyond.
// names are those in its directory.
func (e *Engine) recover(names []string) error {
	start := time.Now()
	r := &recovering{e: e, state: e.opened, nextSeq: e.opened.LastSeq + 1, taken: map[*wal.Loaded]bool{}}
	defer r.close()
	if err := r.checkStrays(names); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	e.emit(Event{Kind: EventRecovery, Total: r.total})
	if err := r.run(); err != nil {
		r.giveUp(err)
		return err
	}
	e.commit.nextSeq = r.nextSeq
	if r.replay.Dropped > 0 {
		e.recovery.DroppedBytes = r.replay.Dropped
		e.recovery.DroppedFrom = uint64(r.replay.DroppedFrom)
	}
	if t := e.opened.Tail; t.Bytes > 0 {
		e.recovery.DroppedBytes += t.Bytes
	}
	e.recovery.Duration = time.Since(start)
	if e.cfg.ReadOnly {
		return r.publish()
	}
	if err := r.finish(); err != nil {
		return err
	}
	e.recovery.Duration = time.Since(start)
	e.emit(Event{Kind: EventRecovery, Done: r.total, Total: r.total, Duration: e.recovery.Duration})
	return nil
}

// load reads every live segment.
func (r *recovering) load() error {
	for _, seg := range r.state.Segments {
		if seg.Num < r.state.LogStart {
			continue
		}
		s, err := r.loadSegment(seg)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
		r.total += int64(len(s.Buf))
	}
	return nil
}

func (r *recovering) loadSegment(seg manifest.Segment) (*wal.Loaded, error) {
	e := r.e
	name := e.path(base.FileLog, seg.Num)
	f, size, err := e.openSegment(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, base.Corruptf(name, -1, "the log segment is missing")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size < base.FileHeaderBytes {
		return nil, base.Corruptf(name, 0, "log segment of %d bytes", size)
	}
	buf, err := e.arenas.Get(int(size))
	if err != nil {
		return nil, err
	}
	s, err := wal.Load(f, name, wal.Recorded{Num: seg.Num, File: seg.File}, e.store, buf[:size])
	if err != nil {
		e.arenas.Put(buf)
	}
	return s, err
}

// openSegment opens the file of a log segment, and returns its size.
func (e *Engine) openSegment(name string) (vfs.File, int64, error) {
	f, err := e.cfg.FS.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open log segment: %w", err)
	}
	size, err := f.Size()
	if err == nil && size > wal.MaxCapacity {
		err = base.Corruptf(name, 0, "log segment of %d bytes", size)
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open log segment %s: %w", name, err)
	}
	return f, size, nil
}

// checkStrays looks at the log segments that the manifest does not name. Those of
// an interrupted Open or Close are empty or older than the log; one with a commit
// is proof that the end of the manifest is missing.
func (r *recovering) checkStrays(names []string) error {
	known := map[uint64]bool{}
	for _, seg := range r.state.Segments {
		known[seg.Num] = true
	}
	for _, name := range names {
		t, num := base.ParseFileName(name)
		if t != base.FileLog || num < r.state.LogStart || known[num] {
			continue
		}
		if err := r.checkStray(r.e.path(t, num)); err != nil {
			return err
		}
	}
	return nil
}

func (r *recovering) checkStray(name string) error {
	f, size, err := r.e.openSegment(name)
	if err != nil {
		return err
	}
	defer f.Close()
	buf, err := r.e.arenas.Get(max(int(size), 1))
	if err != nil {
		return err
	}
	defer r.e.arenas.Put(buf)
	buf = buf[:size]
	if n, err := f.ReadAt(buf, 0); n < len(buf) {
		return fmt.Errorf("read log segment %s: %w", name, err)
	}
	if wal.HoldsCommit(buf, name) {
		return base.Corruptf(name, -1, "it holds commits, but the manifest does not name it: the end of the manifest is missing")
	}
	return nil
}

func (r *recovering) run() error {
	live, rest := wal.Chain(r.segments)
	for i, s := range live {
		var next *wal.Loaded
		if i+1 < len(live) {
			next = live[i+1]
		}
		if err := r.segment(s, next); err != nil {
			return err
		}
	}
	for _, s := range rest {
		if err := r.replay.Segment(s, nil, nil); err != nil {
			return err
		}
	}
	name := r.e.cfg.Dir
	if len(live) > 0 {
		name = live[len(live)-1].Name
	}
	_, err := r.replay.Finish(name, 0)
	return err
}

// segment replays one segment into a memtable over its own bytes.
func (r *recovering) segment(s, next *wal.Loaded) error {
	e := r.e
	records := s.Records() + 1
	index, err := e.arenas.Get(indexBytes(records))
	if err != nil {
		return err
	}
	m := e.wrapMemory(nil, s.Buf, index, records)
	r.taken[s] = true
	m.SetBase(r.nextSeq)
	r.mem = m
	err = r.replay.Segment(s, next, func(h frame.Header, at int64, payload []byte) error {
		return r.frame(s, h, at, payload)
	})
	if err == nil {
		err = r.flush()
	}
	r.done += int64(len(s.Buf))
	e.emit(Event{Kind: EventRecovery, Done: r.done, Total: r.total})
	return err
}

// frame replays one frame of the log.
func (r *recovering) frame(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	if h.Seq != r.nextSeq && !(h.Kind == frame.KindIngest && h.Seq+uint64(h.Count)-1 <= r.state.IngestedThrough) {
		return base.Corruptf(s.Name, at, "frame has sequence %d, want %d", h.Seq, r.nextSeq)
	}
	switch h.Kind {
	case frame.KindCommit:
		return r.entries(s, h, at, payload)
	case frame.KindIngest:
		return r.ingest(s, h, at, payload)
	}
	return base.Corruptf(s.Name, at, "frame of kind %d in a log segment", h.Kind)
}

func (r *recovering) entries(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	count := uint32(0)
	for len(payload) > 0 {
		ent, n := frame.DecodeEntry(payload)
		if n == 0 || !r.mem.Room(1) {
			return base.Corruptf(s.Name, at, "malformed entry %d of a commit", count)
		}
		r.mem.Insert(int(at), ent, base.Hash(ent.Key))
		payload, at, count = payload[n:], at+int64(n), count+1
	}
	if count != h.Count {
		return base.Corruptf(s.Name, at, "commit of %d entries says it has %d", count, h.Count)
	}
	r.nextSeq += uint64(count)
	return nil
}

// ingest adds the tables a large transaction published, unless an edit of the
// manifest has done so already.
func (r *recovering) ingest(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	last := h.Seq + uint64(h.Count) - 1
	r.nextSeq = max(r.nextSeq, last+1)
	if last <= r.state.IngestedThrough {
		if r.mem.Len() == 0 {
			r.mem.SetBase(r.nextSeq)
		}
		return nil
	}
	// The edit keeps slices of what it is decoded from; the segment's arena goes.
	edit, err := manifest.DecodeEdit(bytes.Clone(payload))
	if err != nil {
		return base.Corruptf(s.Name, at, "ingest: %v", err)
	}
	if r.mem.Len() > 0 {
		return base.Corruptf(s.Name, at, "ingest behind a commit in the same segment")
	}
	var tables []*handle
	for _, a := range edit.Added {
		t, err := r.e.openListed(a.Table)
		if err != nil {
			return err
		}
		r.e.handles[a.Table.Num] = t
		tables = append(tables, t)
	}
	r.mem.SetBase(r.nextSeq)
	if r.e.cfg.ReadOnly {
		r.layers = append(r.layers, &layer{ingest: ingestRuns(tables), seq: last})
		return nil
	}
	return r.add(&manifest.Edit{Added: edit.Added, IngestedThrough: last})
}

// flush turns the memtable of a replayed segment into tables; read-only it keeps it.
func (r *recovering) flush() error {
	m := r.mem
	r.mem = nil
	if r.e.cfg.ReadOnly {
		r.layers = append(r.layers, &layer{mem: m})
		return nil
	}
	defer m.unref()
	if m.Len() == 0 {
		return nil
	}
	tables, err := r.e.writeMemory(m, r.state.Version.NumTables() == 0, 0)
	if err != nil {
		return err
	}
	edit := &manifest.Edit{LastSeq: m.LastSeq()}
	for _, h := range tables {
		r.e.handles[h.meta.Num] = h
		edit.Added = append(edit.Added, manifest.Added{Run: m.LastSeq(), Table: h.meta})
	}
	r.written = append(r.written, tables...)
	return r.add(edit)
}

// giveUp takes back the tables of a recovery that failed with err: on a full disk
// a failed Open must not make things worse.
func (r *recovering) giveUp(err error) {
	for _, h := range r.written {
		delete(r.e.handles, h.meta.Num)
	}
	r.e.withdraw(r.written, err)
}

// add applies an edit to the state in memory; finish writes the result.
func (r *recovering) add(edit *manifest.Edit) error {
	edit.NextFileNum = r.e.nextFile
	next, err := r.state.Apply(edit)
	if err == nil {
		r.state = next
	}
	return err
}

// finish writes a new manifest that needs no log, and makes it the live one.
func (r *recovering) finish() error {
	e := r.e
	num := e.newFileNum()
	snapshot := *r.state
	snapshot.Segments = nil
	edit := snapshot.Snapshot()
	edit.LogStart = e.nextFile
	edit.NextFileNum = e.nextFile
	if e.recovery.DroppedBytes > 0 {
		edit.Dropped = &manifest.Dropped{Bytes: uint64(e.recovery.DroppedBytes), From: e.recovery.DroppedFrom}
	}
	if err := manifest.CreateSealed(e.cfg.FS, e.cfg.Dir, e.store, num, edit); err != nil {
		r.giveUp(err)
		return err
	}
	state, err := manifest.Recover(e.cfg.FS, e.cfg.Dir, false)
	if err != nil {
		return err
	}
	e.opened = state
	e.publish(e.newState(nil, state.Version))
	return nil
}

// publish makes the replayed memtables readable without writing anything.
func (r *recovering) publish() error {
	var layers []*layer
	for i := len(r.layers) - 1; i >= 0; i-- {
		layers = append(layers, r.layers[i])
	}
	r.e.publish(r.e.newState(layers, r.e.opened.Version))
	for _, l := range layers {
		if l.mem != nil {
			l.mem.unref() // the state holds it
		}
	}
	return nil
}

// close returns the memory of segments that no memtable has taken over.
func (r *recovering) close() {
	if r.mem != nil {
		r.mem.unref()
	}
	for _, s := range r.segments {
		if !r.taken[s] {
			r.e.arenas.Put(s.Buf)
		}
	}
}
