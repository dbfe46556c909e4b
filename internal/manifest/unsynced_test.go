package manifest

import (
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestAppendUnsynced: a power cut may take such an edit away, and with it what follows unsynced;
// the next sync, whoever asks for it, covers it, and no mark or seal says more than is durable.
func TestAppendUnsynced(t *testing.T) {
	unsynced := func(l *Log, i int) {
		t.Helper()
		if err := l.AppendUnsynced(stamped(i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		then   func(l *Log) error
		sealed uint64
		frames []uint64 // which frame each frame's mark points to
	}{
		"nothing": {func(*Log) error { return nil }, 1, []uint64{0, 1, 2, 2}},
		"Sync":    {(*Log).Sync, 1, []uint64{0, 1, 2, 2}},
		"Append": {func(l *Log) error {
			_, err := l.Append(stamped(4))
			return err
		}, 2, []uint64{0, 1, 2, 2, 2}},
		"Mark":       {(*Log).Mark, 2, []uint64{0, 1, 2, 2, 2}},
		"Mark twice": {func(l *Log) error { return errors.Join(l.Mark(), l.Mark()) }, 4, []uint64{0, 1, 2, 2, 2, 5}},
		"Seal":       {func(l *Log) error { return l.Seal(&Edit{LogStart: 3}) }, 5, []uint64{0, 1, 2, 2, 2, 5}},
	} {
		fsys := memfs.New()
		if err := errors.Join(fsys.MkdirAll("db"), fsys.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		l := newLog(t, fsys, segments(2))
		mustAppend(t, l, stamped(1))
		kept := l.State()
		unsynced(l, 2)
		unsynced(l, 3)
		if err := c.then(l); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if l.SealedThrough() != c.sealed {
			t.Errorf("%s: sealed through %d, want %d", name, l.SealedThrough(), c.sealed)
		}
		wantSame(t, mustRecover(t, fsys), l.State()) // the process ends: all is there
		cut := fsys.Crash(memfs.SyncedOnly())
		if name == "nothing" {
			wantSame(t, mustRecover(t, cut), kept)
		} else {
			wantSame(t, mustRecover(t, cut), l.State())
		}
		buf, _ := fsys.ReadFile("db/MANIFEST-000001")
		list, offs := frames(t, buf)
		if len(list) != len(c.frames) {
			t.Fatalf("%s: %d frames, want %d", name, len(list), len(c.frames))
		}
		for i, h := range list {
			want := uint64(0)
			if i > 0 {
				want = uint64(offs[c.frames[i]])
			}
			if h.Durable != want {
				t.Errorf("%s: frame %d of kind %d has mark %d, want %d", name, i, h.Kind, h.Durable, want)
			}
		}
	}
}

// TestUnsyncedEditDamagedLater: once a synced edit with a mark behind it follows, it is no torn tail.
func TestUnsyncedEditDamagedLater(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	if err := l.AppendUnsynced(stamped(1)); err != nil {
		t.Fatal(err)
	}
	at := l.Size() - frame.Align
	damaged := func() error {
		t.Helper()
		clone := fsys.Clone()
		if err := clone.Corrupt("db/MANIFEST-000001", at, 1); err != nil {
			t.Fatal(err)
		}
		_, err := Recover(clone, "db", false)
		return err
	}
	if err := damaged(); err != nil {
		t.Errorf("not synced: %v", err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, stamped(2))
	if err := damaged(); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("synced before the next: %v", err)
	}
}

// TestSealOfUnsynced: a seal that says nothing new makes durable what was not synced.
func TestSealOfUnsynced(t *testing.T) {
	fsys := memfs.New()
	if err := errors.Join(fsys.MkdirAll("db"), fsys.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	l := newLog(t, fsys, segments(2))
	if err := errors.Join(l.AppendUnsynced(&Edit{LogStart: 3}), l.Seal(&Edit{LogStart: 3})); err != nil {
		t.Fatal(err)
	}
	cut := fsys.Crash(memfs.SyncedOnly())
	if s := mustRecover(t, cut); s.LogStart != 3 || len(s.Segments) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestProvisional: which segments are, after which records.
func TestProvisional(t *testing.T) {
	s := NewState(testStore)
	record := func(num uint64, provisional bool) {
		t.Helper()
		var err error
		if s, err = s.Apply(s.Record(Segment{Num: num, File: testID(byte(num))}, provisional)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(first uint64, provisional ...uint64) {
		t.Helper()
		if got := s.FirstProvisional(); got != first {
			t.Errorf("first %d, want %d", got, first)
		}
		for _, seg := range s.Segments {
			want := false
			for _, num := range provisional {
				want = want || num == seg.Num
			}
			if s.IsProvisional(seg.Num) != want {
				t.Errorf("segment %d: provisional %v, want %v", seg.Num, !want, want)
			}
		}
		fold := newFold(testStore) // the snapshot says the same, in bytes
		e, err := DecodeEdit(s.Snapshot().Append(nil))
		if err == nil {
			err = fold.apply(e)
		}
		if err != nil || fold.state.FirstProvisional() != first || fold.state.Provisional != s.Provisional {
			t.Errorf("decoded: %v, first %d of %d, want %d of %d", err, fold.state.FirstProvisional(), fold.state.Provisional, first, s.Provisional)
		}
	}
	record(3, false)
	want(0)
	record(5, true)
	want(5, 5)
	record(6, true)
	want(5, 5, 6)
	apply := func(e *Edit) {
		t.Helper()
		var err error
		if s, err = s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	apply(&Edit{Provisional: 6})
	want(6, 6)
	apply(&Edit{Provisional: 5}) // it only grows
	want(6, 6)
	apply(&Edit{Provisional: 7})
	want(0)
	record(9, true)
	want(9, 9)
	apply(&Edit{LogStart: 10})
	want(0)
	record(11, false)
	want(0)
	record(12, true)
	want(12, 12)
	if _, err := s.Apply(&Edit{Provisional: MaxSegmentNum + 2}); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("a number that is none of a segment: %v", err)
	}
}

// TestRoomToConfirm: while a segment is provisional there is room for the edit that says that it is
// not any more, whatever was written last.
func TestRoomToConfirm(t *testing.T) {
	for n := range 200 {
		for _, mark := range []bool{false, true} {
			fsys := memfs.New()
			l := newLog(t, fsys, segments(2))
			if err := l.AppendUnsynced(l.State().Record(Segment{Num: 3, File: testID(3)}, true)); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				mustAppend(t, l, &Edit{LastSeq: uint64(i + 1)})
			}
			if mark {
				if err := l.Mark(); err != nil {
					t.Fatal(err)
				}
			}
			fsys.SetCapacity(fsys.Used())
			if _, err := l.Append(&Edit{Provisional: 1 << 31, NextFileNum: maxFileNum}); err != nil {
				t.Errorf("after %d edits, mark %v: %v", n, mark, err)
			}
		}
	}
}

// TestManyEditsBesideManySegments: what it takes to read an edit does not grow with the log segments that there are. Were each of them
// looked at for each edit, this would take minutes.
func TestManyEditsBesideManySegments(t *testing.T) {
	const n = 1 << 20
	snapshot := &Edit{Provisional: 1}
	for i := range uint64(n) {
		snapshot.Segments = append(snapshot.Segments, Segment{Num: i + 1})
	}
	table := func(num uint64) []Added { return []Added{{Run: num, Table: tab(num, "a", "b")}} }
	f := newFold(testStore)
	apply := func(e *Edit) {
		if err := f.apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		edit  *Edit
		named uint64 // the last segment whose name is durable then
	}{
		{snapshot, n},
		{segments(n + 2), n},
		{&Edit{Added: table(n + 1)}, n},
		{&Edit{Added: table(n + 3)}, n + 2},
		{&Edit{Added: table(n + 5), Segments: segments(n+4, n+6).Segments}, n + 4},
		{&Edit{LogStart: n + 6}, n + 4},
		{&Edit{Added: table(n + 7)}, n + 6},
	} {
		apply(step.edit)
		for range n / 16 {
			apply(new(Edit))
		}
		if f.state.MayBeMissing(step.named) || !f.state.MayBeMissing(step.named+1) {
			t.Errorf("step %d: names up to segment %d are durable, want %d", i, f.state.named, step.named)
		}
	}
}
