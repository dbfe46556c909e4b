package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Log replays the log of a store that was not closed into memtables and, unless
// ReadOnly, the memtables into tables. The exported fields above the line are set
// before Run, those below it are the result.
type Log struct {
	FS       vfs.FS
	Dir      string
	Store    base.ID
	ReadOnly bool
	Arenas   *arena.Pool
	Tables   *tablefiles.Files

	FreeMemory  func(*tree.Memory)
	WriteMemory func(newestFirst []*tree.Memory, bottom bool) ([]*tree.Handle, error)
	Withdraw    func(written []*tree.Handle, err error) // removes tables that no manifest names
	Together    int64                                   // bytes of log that become one run of level 0, or one segment if it is larger
	NewNum      func() uint64                           // takes the number of the next file
	NextFileNum func() uint64
	Progress    func(done, total int64)

	State   *manifest.State // from the manifest; then with what the log adds
	NextSeq uint64
	Layers  []*tree.Layer  // ReadOnly: what lies above the tables, newest first
	Opened  []*tree.Handle // tables that the manifest names by now, or the log: those of large transactions
	Written []*tree.Handle // tables made of memtables
	Total   int64          // bytes of log
	replay  wal.Replay

	found    *manifest.State // what State was at first
	inSteps  bool            // see steps.go
	current  uint64          // number of the segment whose frames are being replayed
	mem      *tree.Memory    // being filled
	filled   []*tree.Memory  // newest first; they become one run
	done     int64
	segments []*wal.Loaded
	strays   []*wal.Loaded        // of provisional segments that the manifest has forgotten
	taken    map[*wal.Loaded]bool // a memtable owns the bytes
	named    map[uint64]bool      // tables that frames name, void ones too; nil: not wanted
	anyNamed bool                 // there may be others that frames name
}

// Run replays the log and, unless ReadOnly, records that nothing of it is needed any more. names are
// those in the store's directory. Where there is not the space for tables of all of it, it goes in
// steps.
func (r *Log) Run(names []string) error {
	r.found = r.State
	err := r.run(names)
	if r.ReadOnly || !reserve.IsFull(err) || errors.Is(err, base.ErrPoisoned) {
		return err
	}
	r.Withdraw(r.Written, err)
	r.forget()
	return r.runInSteps(names)
}

// run replays the log once.
func (r *Log) run(names []string) error {
	r.NextSeq, r.taken = r.State.LastSeq+1, map[*wal.Loaded]bool{}
	defer r.close()
	if err := r.checkStrays(names); err != nil {
		return err
	}
	err := r.load()
	if g, ok := r.FS.(vfs.Guard); ok { // what is missing may be where the directory is now
		err = cmp.Or(g.Check(), err)
	}
	if err != nil {
		return err
	}
	if r.named != nil {
		r.noteNamed()
	}
	r.Progress(0, r.Total)
	err = r.segmentsInOrder()
	slices.Reverse(r.Layers)
	if err != nil {
		r.dropLayers()
	}
	if err != nil || r.ReadOnly {
		return err
	}
	return r.seal()
}

// seal makes a manifest that needs no log the live one.
func (r *Log) seal() error {
	num := r.NewNum()
	snapshot := *r.State
	snapshot.Segments, snapshot.Provisional = nil, 0
	snapshot.Dropped = r.Dropped()
	edit := snapshot.Snapshot()
	edit.LogStart, edit.NextFileNum = manifest.NoLog(r.NextFileNum()), r.NextFileNum()
	return manifest.CreateSealed(r.FS, r.Dir, r.Store, num, edit)
}

// dropLayers gives back what was replayed, read-only, before the log turned out to be damaged.
func (r *Log) dropLayers() {
	for _, l := range r.Layers {
		if l.Mem != nil {
			l.Mem.Unref()
		}
	}
	r.Layers = nil
}

// Dropped returns what was dropped of the log, and of the manifest, with what recoveries before had dropped, and
// where the log was last torn.
func (r *Log) Dropped() manifest.Dropped {
	d := r.found.Dropped
	if r.replay.Dropped > 0 {
		d.From = uint64(r.replay.DroppedFrom)
	}
	return d.More(uint64(r.replay.Dropped) + uint64(r.found.Tail.Bytes))
}

func (r *Log) path(num uint64) string {
	return base.FilePath(r.Dir, base.FileLog, num)
}

// load reads every live segment.
func (r *Log) load() error {
	for _, seg := range r.State.Segments {
		if seg.Num < r.State.LogStart {
			continue
		}
		s, err := r.loadSegment(seg)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
		r.Total += int64(len(s.Buf))
	}
	return nil
}

func (r *Log) loadSegment(seg manifest.Segment) (*wal.Loaded, error) {
	name := r.path(seg.Num)
	rec := wal.Recorded{Num: seg.Num, File: seg.File, Provisional: r.State.IsProvisional(seg.Num)}
	f, size, err := r.openSegment(name)
	if missing := errors.Is(err, fs.ErrNotExist); missing && r.State.MayBeMissing(seg.Num) {
		return wal.Torn(name, rec, nil), nil
	} else if missing {
		return nil, base.Corruptf(name, -1, "the log segment is missing")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size < base.FileHeaderBytes && rec.Provisional {
		return wal.Torn(name, rec, nil), nil
	} else if size < base.FileHeaderBytes {
		return nil, base.Corruptf(name, 0, "log segment of %d bytes", size)
	}
	buf, err := r.Arenas.Get(int(size))
	if err != nil {
		return nil, err
	}
	s, err := wal.Load(f, name, rec, r.Store, buf[:size])
	if err != nil {
		r.Arenas.Put(buf)
	}
	return s, err
}

// openSegment opens the file of a log segment, and returns its size.
func (r *Log) openSegment(name string) (vfs.File, int64, error) {
	f, err := r.FS.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open log segment: %w", err)
	}
	size, err := segmentSize(f, name)
	if err != nil {
		f.Close()
	}
	return f, size, err
}

func segmentSize(f vfs.File, name string) (int64, error) {
	size, err := f.Size()
	if err == nil && size > wal.MaxCapacity {
		err = base.Corruptf(name, 0, "log segment of %d bytes", size)
	}
	if err != nil {
		return 0, fmt.Errorf("open log segment %s: %w", name, err)
	}
	return size, nil
}

// CheckNone looks at a store whose manifest says that there is no log: where there is one all the same, the manifest is an
// older one, or not all of it.
func (r *Log) CheckNone(names []string) error {
	defer r.close()
	return r.checkStrays(names)
}

// checkStrays looks at the log segments that the manifest does not name. Those of
// an interrupted Open or Close are empty or older than the log; one with a commit
// is proof that the manifest is an older one or its end is missing, or was provisional. No segment has a number beyond manifest.MaxSegmentNum.
func (r *Log) checkStrays(names []string) error {
	known := map[uint64]bool{}
	for _, seg := range r.State.Segments {
		known[seg.Num] = true
	}
	for _, name := range names {
		t, num := base.ParseFileName(name)
		if t != base.FileLog || num < r.State.LogStart || num > manifest.MaxSegmentNum || known[num] {
			continue
		}
		if err := r.checkStray(num); err != nil {
			return err
		}
	}
	return nil
}

func (r *Log) checkStray(num uint64) error {
	name := r.path(num)
	f, err := r.FS.Open(name)
	if errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, fs.ErrNotExist) { // a directory, or a link that leads nowhere
		return nil
	} else if r.State.NoLog() && errors.Is(err, fs.ErrPermission) { // ours can be read, as what is needed can
		return nil
	} else if err != nil {
		return fmt.Errorf("open log segment: %w", err)
	}
	defer f.Close()
	head := make([]byte, base.HeadBytes)
	n, err := f.ReadAt(head, 0)
	switch {
	case err != nil && err != io.EOF:
		return fmt.Errorf("read log segment %s: %w", name, err)
	case !base.MayBeOurs(base.FileLog, head[:n]) || base.OfAnotherStore(base.FileLog, head[:n], r.Store):
		return nil
	case r.State.NoLog():
		return wal.NoCommits(f, head[:n], name)
	}
	size, err := segmentSize(f, name)
	if err != nil {
		return err
	}
	buf, err := r.Arenas.Get(max(int(size), 1))
	if err != nil {
		return err
	}
	if n, err := f.ReadAt(buf[:size], 0); n < int(size) {
		r.Arenas.Put(buf)
		return fmt.Errorf("read log segment %s: %w", name, err)
	}
	s, err := wal.LoadStray(buf[:size], name, num, r.Store)
	if s == nil {
		r.Arenas.Put(buf)
		return err
	}
	r.strays = append(r.strays, s)
	return nil
}

func (r *Log) segmentsInOrder() error {
	live, rest := wal.Chain(r.segments)
	for i, s := range live {
		var next *wal.Loaded
		if i+1 < len(live) {
			next = live[i+1]
		}
		replay := r.segment
		if !s.Linked() { // the log ends before it
			replay = func(s, next *wal.Loaded) error { return r.replay.Segment(s, next, nil) }
		}
		if err := replay(s, next); err != nil {
			return err
		}
	}
	if err := r.flush(); err != nil {
		return err
	}
	slices.SortFunc(r.strays, func(a, b *wal.Loaded) int { return cmp.Compare(a.Num, b.Num) })
	for _, s := range slices.Concat(rest, r.strays) {
		if err := r.replay.Segment(s, nil, nil); err != nil {
			return err
		}
	}
	_, err := r.replay.Finish(r.path, 0)
	return err
}

// segment replays one segment into a memtable over its own bytes.
func (r *Log) segment(s, next *wal.Loaded) error {
	records := s.Records() + 1
	index, err := r.Arenas.Get(tree.IndexBytes(len(s.Buf), records))
	if err != nil {
		return err
	}
	m := tree.NewMemory(nil, s.Buf, index, records, r.FreeMemory)
	r.taken[s] = true
	m.SetBase(r.NextSeq)
	r.mem = m
	err = r.replay.Segment(s, next, func(h frame.Header, at int64, payload []byte) error {
		return r.frame(s, h, at, payload)
	})
	if err == nil {
		err = r.keep()
	}
	r.done += int64(len(s.Buf))
	r.Progress(r.done, r.Total)
	return err
}

// frame replays one frame of the log.
func (r *Log) frame(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	if h.Seq != r.NextSeq && !(h.Kind == frame.KindIngest && h.Seq+uint64(h.Count)-1 <= r.State.IngestedThrough) {
		return base.Corruptf(s.Name, at, "frame has sequence %d, want %d", h.Seq, r.NextSeq)
	}
	if h.Beyond() {
		return base.Corruptf(s.Name, at, "frame of %d sequences from %d on goes beyond the last one", h.Count, h.Seq)
	}
	r.mem.Replayed, r.current = at+int64(len(payload)), s.Num
	switch h.Kind {
	case frame.KindCommit:
		return r.entries(s, h, at, payload)
	case frame.KindIngest:
		return r.ingest(s, h, at, payload)
	}
	return base.Corruptf(s.Name, at, "frame of kind %d in a log segment", h.Kind)
}

func (r *Log) entries(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	count, end := r.mem.InsertAll(int(at), int(at)+len(payload))
	switch {
	case end < int(at)+len(payload):
		return base.Corruptf(s.Name, int64(end), "malformed entry %d of a commit", count)
	case count != int(h.Count):
		return base.Corruptf(s.Name, int64(end), "commit of %d entries says it has %d", count, h.Count)
	}
	r.NextSeq += uint64(h.Count)
	return nil
}

// ingest adds the tables a large transaction published, unless an edit of the
// manifest has done so already.
func (r *Log) ingest(s *wal.Loaded, h frame.Header, at int64, payload []byte) error {
	added, err := manifest.DecodeIngest(h, payload, s.Name, at)
	if err != nil {
		return err
	}
	last := h.Seq + uint64(h.Count) - 1
	r.NextSeq = max(r.NextSeq, last+1)
	if last <= r.State.IngestedThrough {
		if r.mem.Len() == 0 {
			r.mem.SetBase(r.NextSeq)
		}
		return nil
	}
	if r.mem.Len() > 0 {
		return base.Corruptf(s.Name, at, "ingest behind a commit in the same segment")
	}
	var tables []*tree.Handle
	for _, a := range added {
		t, err := r.Tables.OpenListed(a.Table)
		if err != nil {
			return err
		}
		r.Opened = append(r.Opened, t)
		tables = append(tables, t)
	}
	r.mem.SetBase(r.NextSeq)
	if r.ReadOnly {
		r.Layers = append(r.Layers, &tree.Layer{Ingest: tree.IngestRuns(tables), Seq: last})
	} else if err := r.flushOlder(); err != nil {
		return err
	}
	return r.add(&manifest.Edit{Added: added, IngestedThrough: last}, s.Name, at)
}

// keep keeps the memtable of a replayed segment: read-only for readers, else until it becomes a table.
func (r *Log) keep() error {
	m := r.mem
	r.mem = nil
	if r.ReadOnly {
		r.Layers = append(r.Layers, &tree.Layer{Mem: m})
		return nil
	}
	if m.Len() == 0 { // behind the end of the log all are
		m.Unref()
		return nil
	}
	bytes := m.Replayed
	for _, older := range r.filled {
		bytes += older.Replayed
	}
	if bytes > r.Together {
		if err := r.flushOlder(); err != nil {
			m.Unref()
			return err
		}
	}
	r.filled = slices.Insert(r.filled, 0, m)
	return nil
}

// flush turns the memtables kept into a run of level 0.
func (r *Log) flush() error {
	if len(r.filled) == 0 {
		return nil
	}
	defer r.dropFilled()
	tables, err := r.WriteMemory(r.filled, r.State.Version.NumTables() == 0)
	if err != nil {
		return err
	}
	last := r.filled[0].LastSeq()
	edit := &manifest.Edit{LastSeq: last}
	for _, h := range tables {
		edit.Added = append(edit.Added, manifest.Added{Run: last, Table: h.Meta})
	}
	r.Written = append(r.Written, tables...)
	return r.add(edit, base.FilePath(r.Dir, base.FileManifest, r.State.Manifest), -1)
}

// flushOlder is flush of what lies before the segment being replayed.
func (r *Log) flushOlder() error {
	n := len(r.filled)
	err := r.flush()
	if err == nil && n > 0 && r.inSteps {
		err = r.record()
	}
	return err
}

func (r *Log) dropFilled() {
	for _, m := range r.filled {
		m.Unref()
	}
	r.filled = nil
}

// add applies an edit to the state in memory; the engine records the result. Where it is nonsense the fault is that of what
// stands in a file at an offset.
func (r *Log) add(edit *manifest.Edit, file string, offset int64) error {
	edit.NextFileNum = r.NextFileNum()
	next, err := r.State.Apply(edit)
	if err == nil {
		r.State = next
	}
	return base.Locate(err, file, offset)
}

// close returns the memory of segments that no memtable has taken over.
func (r *Log) close() {
	if r.mem != nil {
		r.mem.Unref()
	}
	r.dropFilled()
	for _, s := range slices.Concat(r.segments, r.strays) {
		if !r.taken[s] && s.Buf != nil {
			r.Arenas.Put(s.Buf)
		}
	}
}
