package recovery

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const size = 4096 // of a segment

// written is a store that is not closed.
type written struct {
	*testing.T
	disk *memfs.FS
	ledger.Ledger
	segs []*wal.Segment
	seq  uint64 // of the next entry
}

func newWritten(t *testing.T) *written {
	t.Helper()
	w := &written{T: t, disk: memfs.New(), seq: 1}
	w.ok(errors.Join(w.disk.MkdirAll("/db"), w.disk.SyncDir("/")))
	w.FS, w.Dir, w.Obsolete, w.Edited = w.disk, "/db", new(obsolete.Files), func() {}
	w.Poison = func(err error) { t.Error(err) }
	w.Start(manifest.NewState(base.NewID()), 1)
	t.Cleanup(func() {
		for _, s := range w.segs {
			s.Close()
		}
		w.Close()
	})
	return w
}

func (w *written) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func path(num uint64) string { return base.FilePath("/db", base.FileLog, num) }

// begin makes a segment without a link.
func (w *written) begin(provisional bool) *wal.Segment {
	w.Helper()
	w.Lock()
	defer w.Unlock()
	num := w.NewNum()
	s, err := wal.Create(w.disk, path(num), num, w.Store, make([]byte, size), false)
	if err == nil && !provisional {
		err = w.SyncDir()
	}
	w.ok(err)
	w.ok(w.Record(manifest.Segment{Num: num, File: s.File}, provisional))
	w.segs = append(w.segs, s)
	return s
}

// segment makes a segment that continues the last one.
func (w *written) segment(provisional bool) *wal.Segment {
	w.Helper()
	end, sum := wal.Position(0), uint32(0)
	if n := len(w.segs); n > 0 {
		end, sum = w.segs[n-1].Tail()
	}
	s := w.begin(provisional)
	s.Link(end, 0, sum)
	w.ok(s.WriteOut())
	return s
}

// frame appends a frame to a segment, and syncs it.
func (w *written) frame(s *wal.Segment, h frame.Header, payload []byte) {
	w.Helper()
	h.Seq = w.seq
	s.Append(h, payload)
	w.ok(errors.Join(s.WriteOut(), s.Sync()))
	w.seq += uint64(h.Count)
}

// commit appends a commit of puts to a segment, with a durable mark.
func (w *written) commit(s *wal.Segment, durable wal.Position, keys ...string) {
	w.Helper()
	w.frame(s, frame.Header{Kind: frame.KindCommit, Count: uint32(len(keys)), Durable: uint64(durable)}, puts(keys...))
}

func puts(keys ...string) (payload []byte) {
	for _, k := range keys {
		payload = frame.AppendEntry(payload, base.KindPut, []byte("\x00"+k), []byte(k))
	}
	return payload
}

// private makes a table of a large transaction with a key, and returns the frame's payload.
func (w *written) private(key string) (payload []byte) {
	w.Helper()
	w.Lock()
	defer w.Unlock()
	num := w.NewNum()
	f, err := w.disk.Create(base.FilePath("/db", base.FileTable, num))
	w.ok(err)
	t := table.NewWriter(f, table.WriterOptions{Num: num, Store: w.Store})
	w.ok(t.Add([]byte("\x00"+key), 0, base.KindPut, []byte(key)))
	meta, err := t.Finish()
	w.ok(err)
	w.ok(w.SyncDir())
	tablefiles.Resequence(&meta, w.seq)
	return (&manifest.Edit{Added: []manifest.Added{{Run: w.seq, Table: &meta}}}).Append(nil)
}

// stray returns a segment with a commit that no manifest names.
func (w *written) stray(num uint64, provisional bool) []byte {
	id, payload := base.NewID(), puts("stray")
	b := base.AppendFileHeader(nil, base.FileHeader{Type: base.FileLog, Version: 1, File: id, Store: w.Store, Num: num, Provisional: provisional})
	b = append(b, make([]byte, size-len(b))...)
	at := b[base.FileHeaderBytes:][:frame.PaddedBytes(len(payload))]
	copy(at[frame.HeaderBytes:], payload)
	frame.Put(at, frame.NewIdentity(id), base.FileHeaderBytes, len(payload), frame.Header{Kind: frame.KindCommit, Seq: w.seq, Count: 1})
	return b
}

// three is a log of three segments. marks has each commit say that what was before it is durable.
func three(t *testing.T, marks bool) *written {
	t.Helper()
	w := newWritten(t)
	for _, keys := range []string{"ab", "cd", "ef"} {
		s := w.segment(false)
		for _, k := range keys {
			durable, _ := s.Tail()
			if !marks {
				durable = 0
			}
			w.commit(s, durable, string(k), string(k)+"2")
		}
	}
	return w
}

// replayed is a recovery of what is on a disk.
type replayed struct {
	Log
	t       *testing.T
	budget  *arena.Budget
	view    view.View
	pages   *cache.Cache
	next    uint64
	flushed []int // how many memtables became a run at a time
}

// open prepares the recovery of a store.
func open(t *testing.T, disk vfs.FS, readOnly bool) *replayed {
	t.Helper()
	r := &replayed{t: t, budget: arena.NewBudget(64 << 20)}
	state, err := manifest.Recover(disk, "/db", readOnly)
	if err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	r.view.Init(1<<20, func(int64) {})
	r.pages = cache.New(r.budget, r.view.Epochs)
	r.next = manifest.FirstFreeNum(names, state)
	buffers := tree.NewBuffers(r.budget)
	newNum := func() uint64 { r.next++; return r.next - 1 }
	tables := &tablefiles.Files{
		FS: disk, Dir: "/db", Store: state.Store, Pages: r.pages, Budget: r.budget, NewNum: newNum, PutBack: func(uint64) {},
		Raw: func() int64 { return 0 }, SyncDir: func() error { return disk.SyncDir("/db") },
	}
	m := &merger.Merger{View: &r.view, Tables: tables, MustStop: func() error { return nil }}
	r.Log = Log{
		FS: disk, Dir: "/db", Store: state.Store, ReadOnly: readOnly, Arenas: buffers.Pool, Tables: tables,
		FreeMemory: buffers.Free, Withdraw: m.Withdraw, Together: 1 << 20, NewNum: newNum,
		NextFileNum: func() uint64 { return r.next }, Progress: func(int64, int64) {}, State: state,
		WriteMemory: func(mems []*tree.Memory, bottom bool) ([]*tree.Handle, error) {
			r.flushed = append(r.flushed, len(mems))
			return m.FlushReplayed(mems, bottom)
		},
	}
	t.Cleanup(func() {
		buffers.Close()
		r.pages.Close()
	})
	return r
}

// run runs the recovery, and fails if memory or tables are left that nobody knows of.
func (r *replayed) run() error {
	r.t.Helper()
	names, err := r.FS.List("/db")
	if err == nil {
		err = r.Run(names)
	}
	held := int64(0)
	for _, l := range r.Layers {
		if l.Mem != nil && err == nil {
			held += int64(cap(l.Mem.Buf) + cap(l.Mem.Memory()))
		}
	}
	if used := r.budget.UsedBy(arena.ClassMemtable) - r.Arenas.Spare(); used != held {
		r.t.Errorf("%v: %d bytes are in use, %d of them for layers", err, used, held)
	}
	if err != nil {
		r.Withdraw(r.Written, err)
		r.Written = nil
	}
	return err
}

// contents returns the keys that there are, in order, and closes everything: those of layers, or of what the manifest
// names. Tests commit keys in order, so the sequence of one, where it is kept, is its place among all.
func (r *replayed) contents() string {
	r.t.Helper()
	seqs := map[string]uint64{}
	for _, l := range r.Layers {
		for i := 0; l.Mem != nil && i < l.Mem.Len(); i++ {
			seqs[string(l.Mem.Key(uint32(i)))] = l.Mem.FirstSeq() + uint64(i)
		}
	}
	tables := append(r.Opened, r.Written...)
	if !r.ReadOnly {
		for _, h := range tables {
			h.Reader.Close()
		}
		state, err := manifest.Recover(r.FS, "/db", true)
		if err != nil {
			r.t.Fatal(err)
		}
		tables = nil
		for _, m := range state.Version.Tables() {
			h, err := r.Tables.OpenListed(m)
			if err != nil {
				r.t.Fatal(err)
			}
			tables = append(tables, h)
		}
		r.NextSeq = state.LastSeq + 1
	}
	for _, h := range tables {
		it := h.NewIter(nil, table.IterOptions{})
		for ok := it.First(); ok; ok = it.Next() {
			seqs[string(it.Key())] = it.Seq()
		}
		if it.Err() != nil {
			r.t.Error(it.Err())
		}
		it.Close()
		h.Reader.Close()
	}
	r.dropLayers()
	var keys []string
	for i, key := range slices.Sorted(maps.Keys(seqs)) {
		if seq := seqs[key]; seq != 0 && int(r.NextSeq-seq) != len(seqs)-i {
			r.t.Errorf("%q has sequence %d", key, seq)
		}
		keys = append(keys, key[1:])
	}
	return strings.Join(keys, " ")
}

// want recovers a store as often as there are ways to, and compares with the keys it must have.
func want(t *testing.T, what string, disk *memfs.FS, keys string) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		for _, together := range []int64{1 << 20, 1} {
			disk := disk.Clone()
			before := disk.Hash()
			r := open(t, disk, readOnly)
			r.Together = together
			if err := r.run(); err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			next := r.NextSeq
			if got := r.contents(); got != keys {
				t.Errorf("%s, read-only %v, %d together: %q, want %q", what, readOnly, together, got, keys)
			}
			if readOnly {
				if disk.Hash() != before {
					t.Errorf("%s: read-only, and the disk has changed", what)
				}
				continue
			}
			state, err := manifest.Recover(disk.Crash(memfs.SyncedOnly()), "/db", false)
			if err != nil || !state.Clean || len(state.Segments) > 0 || state.LastSeq+1 != next || state.Dropped != r.Dropped() {
				t.Errorf("%s: what is durable then is %+v, %v", what, state, err)
			}
		}
	}
}

// refused checks that a store is taken for damaged, and nothing is changed.
func refused(t *testing.T, what string, disk *memfs.FS) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		before := disk.Hash()
		if err := open(t, disk, readOnly).run(); !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if disk.Hash() != before {
			t.Errorf("%s: damage changes something, read-only %v", what, readOnly)
		}
	}
}
