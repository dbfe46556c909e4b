package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestOrder: the log is what links say it is, in their order. What they pass over is void, as is a segment that
// nothing was written to.
func TestOrder(t *testing.T) {
	w := newWritten(t)
	first := w.segment(false)
	w.commit(first, 0, "a", "b")
	good, sum := first.Tail()
	w.commit(first, 0, "failed")
	w.commit(w.segment(false), 0, "failed too")
	w.seq = 3
	next := w.begin(false)
	next.Link(good, good, sum)
	w.commit(next, good, "c")
	w.begin(false)
	want(t, "a round that failed", w.disk, "a b c")
	want(t, "no commits at all", newEmpty(t).disk, "")
	want(t, "three segments", three(t, true).disk, "a a2 b b2 c c2 d d2 e e2 f f2")
}

func newEmpty(t *testing.T) *written {
	w := newWritten(t)
	w.segment(false)
	return w
}

// TestTogether: memtables become runs as large as they may be, the oldest first.
func TestTogether(t *testing.T) {
	w := three(t, false)
	each := w.segs[0].Appended() // about
	for together, runs := range map[int64][]int{1: {1, 1, 1}, 2*each + 16: {2, 1}, 3*each + 16: {3}} {
		r := open(t, w.disk.Clone(), false)
		r.Together = together
		if err := r.run(); err != nil || !slices.Equal(r.flushed, runs) {
			t.Errorf("%d bytes together: runs of %v memtables, want %v; %v", together, r.flushed, runs, err)
		}
		r.contents()
	}
}

// TestTornTail cuts the log in every frame: what was before is there, all behind it is dropped, and that is told,
// with what a recovery before had dropped.
// Where a mark says that it was durable, it is damage.
func TestTornTail(t *testing.T) {
	const keys = "a a2 b b2 c c2 d d2 e e2 f f2"
	for _, marks := range []bool{false, true} {
		w := three(t, marks)
		for i, s := range w.segs {
			end, _ := s.Tail()
			frame := (end.Offset() - int64(wal.OverheadBytes)) / 2
			for n := range 2 {
				disk := w.disk.Clone()
				what := fmt.Sprintf("segment %d is cut in frame %d, marks %v", i, n, marks)
				if err := disk.Corrupt(path(s.Num), end.Offset()-frame*int64(2-n)+50, 1); err != nil {
					t.Fatal(err)
				}
				if last := i == 2 && n == 1; marks && !last {
					refused(t, what, disk)
					continue
				}
				left := strings.Join(strings.Fields(keys)[:4*i+2*n], " ")
				want(t, what, disk, left)
				r := open(t, disk, true)
				if err := r.run(); err != nil || r.Dropped().Bytes == 0 || r.Dropped().From>>32 != s.Num {
					t.Errorf("%s: dropped %+v, %v", what, r.Dropped(), err)
				}
				r.dropLayers()
				second := open(t, disk, true)
				second.State.Dropped = manifest.Dropped{Bytes: 5, From: 1}
				if err := second.run(); err != nil || second.Dropped() != (manifest.Dropped{Bytes: r.Dropped().Bytes + 5, From: r.Dropped().From}) {
					t.Errorf("%s, behind a recovery that had dropped 5 bytes: dropped %+v, %v", what, second.Dropped(), err)
				}
				second.dropLayers()
			}
		}
	}
}

// TestDroppedBeyondCount: what earlier recoveries have dropped may be as much as a manifest can tell of, if it says so. One that drops more
// leaves a manifest that can be read, in steps and as a whole.
func TestDroppedBeyondCount(t *testing.T) {
	w := three(t, false)
	most := uint64(1<<62 - 1)
	w.Lock()
	_, err := w.Append(&manifest.Edit{Dropped: &manifest.Dropped{Bytes: most, From: 1}})
	_, torn := w.Append(new(manifest.Edit))
	w.Unlock()
	w.ok(errors.Join(err, torn))
	end, _ := w.segs[2].Tail()
	w.ok(w.disk.Corrupt(path(w.segs[2].Num), end.Offset()-1, 1))
	want(t, "the log is torn", w.disk, "a a2 b b2 c c2 d d2 e e2")
	name := base.FilePath("/db", base.FileManifest, w.State().Manifest)
	b, err := w.disk.ReadFile(name)
	w.ok(err)
	w.ok(w.disk.Corrupt(name, int64(len(bytes.TrimRight(b, "\x00")))-1, 1))
	want(t, "the manifest is torn", w.disk, "a a2 b b2 c c2 d d2 e e2")
	r := full(t, w.disk)
	if err := r.run(); err != nil || r.found.Tail.Bytes == 0 || r.State.Dropped.Bytes != most || r.Dropped().Bytes != most {
		t.Errorf("in steps: the manifest has lost %d bytes, of the last step it says %+v, at the end %+v; %v", r.found.Tail.Bytes, r.State.Dropped, r.Dropped(), err)
	}
	if got := r.contents(); got != "a a2 b b2 c c2 d d2 e e2" {
		t.Errorf("in steps: %q", got)
	}
}

// TestDamageUpToTheEnd: damage that reaches to the end of the log looks like a tear though marks said that what it takes was durable, and
// from between two frames on, if it is zeros, like a log that ended there (docs/LIMITS.md).
func TestDamageUpToTheEnd(t *testing.T) {
	w := newWritten(t)
	s := w.segment(false)
	var ends []int64
	for _, key := range []string{"a", "b", "c", "d"} {
		durable, _ := s.Tail()
		ends = append(ends, durable.Offset())
		w.commit(s, durable, key)
	}
	data, err := w.disk.ReadFile(path(s.Num))
	w.ok(err)
	for fill, dropped := range map[byte]bool{0: false, 7: true} {
		damaged := slices.Concat(data[:ends[1]], bytes.Repeat([]byte{fill}, len(data)-int(ends[1])))
		disk := w.disk.Clone()
		w.ok(disk.WriteFile(path(s.Num), damaged))
		want(t, fmt.Sprintf("filled with %d", fill), disk, "a")
		r := open(t, disk, true)
		if err := r.run(); err != nil || (r.Dropped().Bytes > 0) != dropped {
			t.Errorf("filled with %d: dropped %+v, %v", fill, r.Dropped(), err)
		}
		r.dropLayers()
		copy(damaged[ends[3]:], data[ends[3]:]) // the last frame is there
		w.ok(disk.WriteFile(path(s.Num), damaged))
		refused(t, fmt.Sprintf("filled with %d up to the last frame", fill), disk)
	}
}

// TestMissing: a segment that a power cut has taken away, or a part of it, ends the log if it was provisional, where its frames end, and is
// damage else. What is left of it behind them counts as dropped.
func TestMissing(t *testing.T) {
	for what, lose := range map[string]func(disk *memfs.FS, name string) error{
		"no file":   func(disk *memfs.FS, name string) error { return disk.Remove(name) },
		"empty":     func(disk *memfs.FS, name string) error { return disk.Truncate(name, 0) },
		"no header": func(disk *memfs.FS, name string) error { return disk.WriteFile(name, make([]byte, size)) },
		"no frame":  func(disk *memfs.FS, name string) error { return disk.Truncate(name, int64(wal.OverheadBytes)) },
		"a part":    func(disk *memfs.FS, name string) error { return disk.Truncate(name, int64(wal.OverheadBytes)+44) },
		"half":      func(disk *memfs.FS, name string) error { return disk.Truncate(name, size/2) }, // the frames are whole
	} {
		for lost, left := range map[int]string{1: "a", 2: "a b"} {
			for _, provisional := range []bool{false, true} {
				w := newWritten(t)
				w.commit(w.segment(false), 0, "a")
				w.commit(w.segment(provisional), 0, "b")
				w.commit(w.segment(provisional), 0, "c")
				w.ok(lose(w.disk, path(w.segs[lost].Num)))
				if !provisional {
					refused(t, what, w.disk)
					continue
				}
				left := left
				if what == "half" {
					left = "a b c"
				}
				want(t, what, w.disk, left)
				r := open(t, w.disk, true)
				if err := r.run(); err != nil || (r.Dropped().Bytes > 0) != (what != "half" && lost == 1 || what == "a part") {
					t.Errorf("%s: segment %d: dropped %+v, %v", what, lost, r.Dropped(), err)
				}
				r.dropLayers()
			}
		}
	}
}

// TestMissingOfSnapshot: the file of a segment that the manifest's snapshot names had its name before, provisional or not. Where it is missing
// the manifest was cut: an edit said that it was not needed any more.
func TestMissingOfSnapshot(t *testing.T) {
	for _, provisional := range []bool{false, true} {
		w := newWritten(t)
		w.commit(w.segment(provisional), 0, "a")
		w.ok(w.disk.Remove(path(w.segs[0].Num)))
		refused(t, fmt.Sprintf("provisional: %v", provisional), w.disk)
	}
}

// movedFS is a file system on which the store's name has come to lead elsewhere.
type movedFS struct{ vfs.FS }

var errMoved = errors.New("moved")

func (movedFS) Check() error { return errMoved }

// TestMissingWhereItIsNot: a segment that is missing where another directory has the store's name does not end the log.
func TestMissingWhereItIsNot(t *testing.T) {
	for _, provisional := range []bool{false, true} {
		w := newWritten(t)
		w.commit(w.segment(provisional), 0, "a")
		w.ok(w.disk.Remove(path(w.segs[0].Num)))
		if err := open(t, movedFS{w.disk}, false).run(); !errors.Is(err, errMoved) {
			t.Errorf("provisional %v: %v", provisional, err)
		}
	}
}

// TestStrays: files with names of the log that no manifest knows are nothing if they are of others or without commits,
// dropped if they were provisional, and damage of the manifest else.
func TestStrays(t *testing.T) {
	w := newWritten(t)
	w.commit(w.segment(false), 0, "a")
	for what, data := range map[string][]byte{"of others": []byte("a log of others"), "empty": nil, "a header": w.stray(70, false)[:base.FileHeaderBytes], "zeros": make([]byte, size)} {
		disk := w.disk.Clone()
		w.ok(disk.WriteFile(path(70), data))
		want(t, what, disk, "a")
	}
	disk := w.disk.Clone()
	w.ok(disk.WriteFile(path(20250131120000), append(make([]byte, size), 1)))
	want(t, "a number that no segment has", disk, "a")
	if r := open(t, disk, true); r.run() != nil || r.Dropped().Bytes != 0 {
		t.Errorf("a number that no segment has: dropped %+v", r.Dropped())
	} else {
		r.dropLayers()
	}
	w.ok(w.disk.MkdirAll(path(80)))
	want(t, "a directory", w.disk, "a")
	disk, store := w.disk.Clone(), w.Store
	w.Store = base.NewID()
	w.ok(errors.Join(disk.WriteFile(path(70), w.stray(70, false)), disk.WriteFile(path(71), w.stray(71, true))))
	w.Store = store
	want(t, "of another store", disk, "a")
	disk = w.disk.Clone()
	w.ok(disk.WriteFile(path(70), w.stray(70, true)))
	want(t, "provisional", disk, "a")
	r := open(t, disk, true)
	if err := r.run(); err != nil || r.Dropped().Bytes == 0 || r.Dropped().From>>32 != 70 {
		t.Errorf("provisional: dropped %+v, %v", r.Dropped(), err)
	}
	r.dropLayers()
	w.ok(disk.Remove(path(70)))
	w.ok(disk.WriteFile(path(70), w.stray(70, false)))
	refused(t, "with a commit", disk)
	w.ok(disk.Remove(path(70)))
	w.segs[0].Close()
	state := w.State()
	edit := state.Record(manifest.Segment{Num: 90, File: base.NewID()}, true)
	edit.LogStart = 90
	w.Lock()
	_, err := w.Append(edit)
	w.Unlock()
	w.ok(err)
	w.ok(w.disk.WriteFile(path(70), w.stray(70, false)))
	want(t, "older than the log", w.disk, "")
}

// newIngested is a store with a large transaction between commits, and returns the segment that it begins and its frame's payload.
func newIngested(t *testing.T) (w *written, s *wal.Segment, payload []byte) {
	t.Helper()
	w = newWritten(t)
	w.commit(w.segment(false), 0, "a", "b")
	payload = w.private("c")
	s = w.segment(false)
	w.frame(s, frame.Header{Kind: frame.KindIngest, Count: 1}, payload)
	w.commit(s, 0, "d")
	w.commit(w.segment(false), 0, "e")
	return w, s, payload
}

// TestIngest: tables of a large transaction stand between the memtables around them, until a manifest names them.
func TestIngest(t *testing.T) {
	w, s, payload := newIngested(t)
	want(t, "not in the manifest", w.disk, "a b c d e")
	r := open(t, w.disk, true)
	if err := r.run(); err != nil || len(r.Layers) != 4 || r.Layers[2].Ingest == nil || r.Layers[2].Seq != 3 {
		t.Errorf("read-only: %d layers, %v", len(r.Layers), err)
	}
	r.contents()
	r = open(t, w.disk.Clone(), false)
	if err := r.run(); err != nil || !slices.Equal(r.flushed, []int{1, 2}) {
		t.Errorf("runs of %v memtables, some of them around the tables; %v", r.flushed, err)
	}
	r.contents()

	missing := w.disk.Clone()
	edit, err := manifest.DecodeEdit(payload)
	w.ok(err)
	w.ok(missing.Remove(base.FilePath("/db", base.FileTable, edit.Added[0].Table.Num)))
	refused(t, "the table is missing", missing)

	w.Lock()
	edit.IngestedThrough, edit.LogStart = 3, s.Num
	_, err = w.Append(edit)
	w.Unlock()
	w.ok(err)
	r = open(t, w.disk, false)
	if err := r.run(); err != nil || r.NextSeq != 6 || len(r.Opened) != 0 {
		t.Errorf("in the manifest: next sequence %d, %d tables opened; %v", r.NextSeq, len(r.Opened), err)
	}
	if got := r.contents(); got != "c d e" {
		t.Errorf("in the manifest: %q", got)
	}
}

// TestNonsense: frames whose checksums match and that say what no writer writes are damage.
func TestNonsense(t *testing.T) {
	for what, write := range map[string]func(w *written, s *wal.Segment){
		"a sequence too far": func(w *written, s *wal.Segment) { w.seq++; w.commit(s, 0, "b") },
		"a sequence again":   func(w *written, s *wal.Segment) { w.seq--; w.commit(s, 0, "b") },
		"a wrong count": func(w *written, s *wal.Segment) {
			w.frame(s, frame.Header{Kind: frame.KindCommit, Count: 2}, puts("b"))
		},
		"half an entry": func(w *written, s *wal.Segment) {
			w.frame(s, frame.Header{Kind: frame.KindCommit, Count: 1}, puts("b")[:3])
		},
		"a byte behind an entry": func(w *written, s *wal.Segment) {
			w.frame(s, frame.Header{Kind: frame.KindCommit, Count: 1}, append(puts("b"), 1))
		},
		"an edit": func(w *written, s *wal.Segment) { w.frame(s, frame.Header{Kind: frame.KindEdit, Count: 1}, nil) },
		"no edit in an ingest": func(w *written, s *wal.Segment) {
			w.frame(w.segment(false), frame.Header{Kind: frame.KindIngest, Count: 1}, []byte{1, 2, 3})
		},
		"an ingest of the past": func(w *written, s *wal.Segment) {
			payload := w.private("b")
			w.commit(s, 0, "b")
			w.frame(w.segment(false), frame.Header{Kind: frame.KindIngest, Count: 1}, payload)
		},
		"an ingest of no sequence": func(w *written, s *wal.Segment) {
			w.frame(w.segment(false), frame.Header{Kind: frame.KindIngest}, w.private("b"))
		},
		"a table twice": func(w *written, s *wal.Segment) {
			edit, err := manifest.DecodeEdit(w.private("b"))
			w.ok(err)
			for range 2 {
				tablefiles.Resequence(edit.Added[0].Table, w.seq)
				edit.Added[0].Run = w.seq
				w.frame(w.segment(false), frame.Header{Kind: frame.KindIngest, Count: 1}, edit.Append(nil))
			}
		},
		"an ingest behind a commit": func(w *written, s *wal.Segment) {
			w.frame(s, frame.Header{Kind: frame.KindIngest, Count: 1}, w.private("b"))
		},
	} {
		w := newWritten(t)
		s := w.segment(false)
		w.commit(s, 0, "a")
		write(w, s)
		refused(t, what, w.disk)
		if err := open(t, w.disk, true).run(); err == nil || !strings.Contains(filepath.ToSlash(err.Error()), "/db/00") || !strings.Contains(err.Error(), ".log") {
			t.Errorf("%s: %v does not say in which file", what, err)
		}
	}
}

// TestSequencesEnd: a commit may have the last sequence there is, and none that goes beyond is taken, by nobody.
func TestSequencesEnd(t *testing.T) {
	for before, keys := range map[uint64]string{base.MaxSeq - 2: "ab", base.MaxSeq - 1: "ab", base.MaxSeq: "a"} {
		w := newWritten(t)
		s := w.segment(false)
		w.Lock()
		_, err := w.Append(&manifest.Edit{LastSeq: before})
		w.Unlock()
		w.ok(err)
		w.seq = before + 1
		w.commit(s, 0, strings.Split(keys, "")...)
		what := fmt.Sprintf("%d entries behind sequence %d", len(keys), before)
		if w.seq-1 > base.MaxSeq {
			refused(t, what, w.disk)
			continue
		}
		for _, readOnly := range []bool{true, false} {
			r := open(t, w.disk.Clone(), readOnly)
			if err := r.run(); err != nil || r.NextSeq != base.MaxSeq+1 {
				t.Errorf("%s, read-only %v: the next sequence is %d, %v", what, readOnly, r.NextSeq, err)
			}
			r.contents()
		}
	}
}

// TestManifestTail: what is dropped of the manifest is reported, also where the log goes in steps.
func TestManifestTail(t *testing.T) {
	w := three(t, false)
	w.Lock()
	_, err := w.Append(&manifest.Edit{LastSeq: 1})
	name := base.FilePath("/db", base.FileManifest, w.State().Manifest)
	w.Unlock()
	w.ok(err)
	b, err := w.disk.ReadFile(name)
	w.ok(err)
	w.ok(w.disk.Corrupt(name, int64(len(bytes.TrimRight(b, "\x00"))-1), 1))
	interrupted := full(t, w.disk.Clone())
	interrupted.WriteMemory = func(mems []*tree.Memory, _ bool) ([]*tree.Handle, error) {
		return nil, map[bool]error{true: syscall.EIO, false: vfs.ErrNoSpace}[len(mems) == 1]
	}
	if err := interrupted.run(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if again := open(t, interrupted.FS, false).State; again.Manifest == w.State().Manifest || again.Dropped.Bytes != uint64(interrupted.found.Tail.Bytes) {
		t.Errorf("in steps, interrupted: manifest %d, dropped %+v", again.Manifest, again.Dropped)
	}
	for what, r := range map[string]*replayed{"at once": open(t, w.disk.Clone(), false), "in steps": full(t, w.disk.Clone())} {
		tail := uint64(r.State.Tail.Bytes)
		if err := r.run(); err != nil || tail == 0 || r.Dropped().Bytes != tail {
			t.Errorf("%s: dropped %+v, %d bytes of the manifest; %v", what, r.Dropped(), tail, err)
		}
		r.contents()
		if again := open(t, r.FS, false); again.State.Dropped.Bytes != tail {
			t.Errorf("%s: the next Open knows of %+v", what, again.State.Dropped)
		}
	}
}
