package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestCreateAppendRecover(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	s := mustRecover(t, fsys)
	wantSame(t, s, l.State())
	if s.Manifest != 1 || s.NextFileNum != 3 || s.Clean || s.Tail != (Tail{}) || s.Store != testStore {
		t.Errorf("state %+v", s)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 100 {
		if n := mustAppend(t, l, randomEdit(rng, l.State())); n != uint64(i+2) {
			t.Fatalf("ordinal %d of edit %d", n, i)
		}
		wantSame(t, mustRecover(t, fsys), l.State())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wantSame(t, mustRecover(t, fsys), l.State())
	if _, err := l.Append(stamped(1)); !errors.Is(err, base.ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestSealedThrough(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	want := func(n uint64) {
		t.Helper()
		if got := l.SealedThrough(); got != n {
			t.Errorf("sealed through %d, want %d", got, n)
		}
	}
	want(1) // by CURRENT
	mustAppend(t, l, stamped(1))
	want(1)
	mustAppend(t, l, stamped(2))
	want(2)
	for range 2 {
		if err := l.Mark(); err != nil {
			t.Fatal(err)
		}
		want(3)
	}
	size := l.Size()
	if err := l.Mark(); err != nil || l.Size() != size {
		t.Errorf("a mark too many: %v", err)
	}
	mustAppend(t, l, stamped(3))
	want(3)
	next, err := l.Rotate(200)
	if err != nil {
		t.Fatal(err)
	}
	l = next
	want(5) // the snapshot is edit 5
	if n := mustAppend(t, l, stamped(4)); n != 6 {
		t.Errorf("ordinal %d", n)
	}
	if err := l.Seal(&Edit{LogStart: 3}); err != nil {
		t.Fatal(err)
	}
	want(7)
	wantSame(t, mustRecover(t, fsys), l.State())
}

// What the marks say is what was synced.
func TestMarksOnDisk(t *testing.T) {
	fsys, _ := closedStore(t)
	buf, _ := fsys.ReadFile("db/MANIFEST-000001")
	list, offs := frames(t, buf)
	wantKinds := []frame.Kind{frame.KindEdit, frame.KindEdit, frame.KindEdit, frame.KindMark, frame.KindEdit, frame.KindEdit, frame.KindSeal}
	for i, h := range list {
		want := uint64(offs[i])
		if i == 0 {
			want = 0
		}
		if h.Kind != wantKinds[i] || h.Durable != want {
			t.Errorf("frame %d of kind %d has mark %d, want %d", i, h.Kind, h.Durable, want)
		}
	}
	if len(list) != len(wantKinds) || frameBytes(t, buf) != offs[6]+frame.HeaderBytes {
		t.Errorf("%d frames in %d bytes", len(list), frameBytes(t, buf))
	}
	if len(buf)%fileUnit != 0 || len(bytes.TrimRight(buf, "\x00")) > int(frameBytes(t, buf)) {
		t.Errorf("a file of %d bytes, %d of them frames, not filled up with zeros to a multiple of %d", len(buf), frameBytes(t, buf), fileUnit)
	}
}

func TestSeal(t *testing.T) {
	fsys, want := closedStore(t)
	s := mustRecover(t, fsys)
	wantSame(t, s, want)
	if !s.Clean || s.Tail != (Tail{}) || len(s.Segments) != 0 || s.LastSeq != 5000 {
		t.Errorf("state %+v", s)
	}
	fsys = memfs.New()
	l := newLog(t, fsys, segments(2))
	mustAppend(t, l, &Edit{Dropped: &Dropped{Bytes: 9, From: 8}})
	if s := mustRecover(t, fsys); s.Dropped != (Dropped{9, 8}) {
		t.Errorf("report %+v", s.Dropped)
	}
	if err := l.Seal(&Edit{}); err == nil {
		t.Error("sealed with a live segment")
	}
	if err := l.Seal(&Edit{LogStart: 3, Dropped: &Dropped{}}); err != nil {
		t.Fatal(err)
	}
	if s := mustRecover(t, fsys); s.Dropped != (Dropped{}) || !s.Clean {
		t.Errorf("state %+v", s)
	}
	for name, err := range map[string]error{"seal": l.Seal(&Edit{}), "mark": l.Mark(), "close": l.Close()} {
		if name != "close" && !errors.Is(err, base.ErrClosed) || name == "close" && err != nil {
			t.Errorf("%s after seal: %v", name, err)
		}
	}
	if _, err := l.Rotate(9); !errors.Is(err, base.ErrClosed) {
		t.Errorf("rotate after seal: %v", err)
	}
}

// TestSealAnewCloses: where a file cannot be closed behind the new name of CURRENT, the manifest is the new one. What the
// old one's says does not matter; the new one's is an error after which nothing else is tried.
func TestSealAnewCloses(t *testing.T) {
	for name, want := range map[string]error{"MANIFEST-000001": nil, "MANIFEST-000009": base.ErrPoisoned} {
		disk := memfs.New()
		faults := faultfs.New(disk)
		l := newLog(t, faults, segments(2))
		rule := faults.Add(faultfs.Rule{Kinds: faultfs.Close, Name: name, Do: faultfs.Fail(syscall.EIO)})
		err := l.SealAnew(9, &Edit{LogStart: 3})
		if rule.Fired() != 1 || !errors.Is(err, want) || want != nil && !errors.Is(err, syscall.EIO) {
			t.Errorf("close of %s fails: %v, want %v", name, err, want)
		}
		if s := mustRecover(t, disk); !s.Clean || s.Manifest != 9 {
			t.Errorf("close of %s fails: state %+v", name, s)
		}
		if err := l.Seal(&Edit{}); !errors.Is(err, base.ErrClosed) {
			t.Errorf("close of %s fails: sealed again: %v", name, err)
		}
	}
}

func TestSealWithoutFinalEdit(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	mustAppend(t, l, &Edit{LogStart: 3})
	size := l.Size()
	if err := l.Seal(&Edit{}); err != nil || l.Size() != size+frame.HeaderBytes {
		t.Fatalf("%d bytes more, %v", l.Size()-size, err)
	}
	if s := mustRecover(t, fsys); !s.Clean {
		t.Errorf("state %+v", s)
	}
}

func TestCreateRefusesASnapshotWithoutLog(t *testing.T) {
	fsys := memfs.New()
	if _, err := CreateWhen(nil, fsys, "", testStore, 1, new(Edit)); err == nil {
		t.Error("created without a log segment")
	}
	if err := CreateSealed(fsys, "", testStore, 1, segments(2)); err == nil {
		t.Error("sealed with a log segment")
	}
	if _, err := CreateToReplay(fsys, "", testStore, 1, new(Edit), nil); err == nil {
		t.Error("created without a log segment to replay")
	}
	if names, _ := fsys.List(""); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestCreateSealed(t *testing.T) {
	fsys := memfs.New()
	if err := fsys.MkdirAll("db"); err != nil {
		t.Fatal(err)
	}
	if err := CreateSealed(fsys, "db", testStore, 8, stamped(1)); err != nil {
		t.Fatal(err)
	}
	if s := mustRecover(t, fsys); !s.Clean || s.Manifest != 8 || s.Version.NumTables() != 1 || s.NextFileNum != 102 {
		t.Errorf("state %+v", s)
	}
	if err := CreateSealed(fsys, "db", testStore, 8, stamped(1)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the live manifest was made again: %v", err)
	}
	mustRecover(t, fsys)
}

// TestCreateToReplay: segments whose names are not known to be durable still may be missing, those of the snapshot may not. Damage to
// what records them is seen.
func TestCreateToReplay(t *testing.T) {
	for _, named := range [][]uint64{{2}, nil} {
		for _, unnamed := range [][]uint64{{3, 4}, nil} {
			fsys := memfs.New()
			if err := errors.Join(fsys.MkdirAll("db"), fsys.SyncDir("/")); err != nil {
				t.Fatal(err)
			}
			snapshot := mustApply(t, NewState(testStore), stamped(1)).Snapshot()
			snapshot.Segments, snapshot.Provisional = segments(named...).Segments, 2
			made, err := CreateToReplay(fsys, "db", testStore, 8, snapshot, segments(unnamed...).Segments)
			if len(named)+len(unnamed) == 0 {
				if err == nil {
					t.Error("created without a log segment to replay")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			s := mustRecover(t, fsys.Crash(memfs.SyncedOnly()))
			if wantSame(t, s, made); s.Clean || len(s.Segments) != len(named)+len(unnamed) {
				t.Errorf("named %v, not named %v: %+v", named, unnamed, s)
			}
			for _, num := range named {
				if s.MayBeMissing(num) {
					t.Errorf("segment %d of the snapshot may be missing", num)
				}
			}
			for _, num := range unnamed {
				if !s.MayBeMissing(num) {
					t.Errorf("segment %d may not be missing", num)
				}
			}
			const name = "db/MANIFEST-000008"
			data, err := fsys.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for at := range int64(len(data)) {
				damaged := fsys.Clone()
				if err := damaged.Corrupt(name, at, 1); err != nil {
					t.Fatal(err)
				}
				if s, err := Recover(damaged, "db", false); err == nil {
					if wantSame(t, s, made); len(unnamed) == 0 || at < int64(len(data)-frame.HeaderBytes) {
						t.Errorf("named %v, not named %v: damage at %d is not seen", named, unnamed, at)
					}
				} else if !isTyped(err) {
					t.Errorf("damage at %d: %v", at, err)
				}
			}
		}
	}
}

func TestRotate(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	for i := range 50 {
		mustAppend(t, l, stamped(i))
	}
	before, old := l.State(), l
	l, err := l.Rotate(400)
	if err != nil {
		t.Fatal(err)
	}
	s := mustRecover(t, fsys)
	if s.Manifest != 400 || s.NextFileNum != 401 || l.State().NextFileNum != 401 {
		t.Errorf("manifest %d, next file %d", s.Manifest, s.NextFileNum)
	}
	wantSame(t, s, l.State())
	if s.Version.String() != before.Version.String() || l.Size() >= old.Size() {
		t.Errorf("%d bytes after %d", l.Size(), old.Size())
	}
	if _, err := old.Append(stamped(77)); !errors.Is(err, base.ErrClosed) {
		t.Errorf("append to the old manifest: %v", err)
	}
	names, _ := fsys.List("db")
	if g := Obsolete(names, s, nil); !slices.Equal(g, []string{"MANIFEST-000001"}) {
		t.Errorf("garbage %v of %v", g, names)
	}
}

func TestBloated(t *testing.T) {
	l := newLog(t, memfs.New(), segments(2))
	for i := 0; !l.Bloated(); i++ {
		mustAppend(t, l, &Edit{Added: []Added{{Level: 1, Table: tab(100, "a", strings.Repeat("b", 9000))}}})
		mustAppend(t, l, &Edit{Removed: []Removed{{1, 100}}})
		if i > 100 {
			t.Fatalf("%d bytes are not too many", l.Size())
		}
	}
	if l.Size() < bloatBytes {
		t.Errorf("%d bytes are too many", l.Size())
	}
	if l, err := l.Rotate(200); err != nil || l.Bloated() {
		t.Errorf("still bloated, %v", err)
	}
}

// TestGreatestManifest: a manifest grew until Recover called it impossibly large. Now an edit
// is refused before that, the snapshot likewise; whatever was accepted can be read, and a
// store that removes tables goes on.
func TestGreatestManifest(t *testing.T) {
	defer func(n int64) { maxManifestBytes = n }(maxManifestBytes)
	maxManifestBytes = 1 << 20
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	tables, manifests := 0, uint64(1_000_000)
	rotate := func() {
		if l.Bloated() {
			manifests++
			if next, err := l.Rotate(manifests); err == nil {
				l = next
			}
		}
	}
	var err error
	for ; err == nil && tables < 100; tables++ {
		low := fmt.Sprintf("%03d%s", tables, strings.Repeat("a", 20_000))
		_, err = l.Append(&Edit{Added: []Added{{Level: 1, Table: tab(uint64(100+tables), low, low+"b")}}})
		wantSame(t, mustRecover(t, fsys), l.State())
		rotate()
	}
	if !errors.Is(err, base.ErrLimit) || errors.Is(err, base.ErrPoisoned) || tables < 20 {
		t.Fatalf("%d tables: %v", tables, err)
	}
	for num := range uint64(tables - 1) {
		mustAppend(t, l, &Edit{Removed: []Removed{{1, 100 + num}}})
		rotate()
	}
	mustAppend(t, l, stamped(1))
	if err := l.Seal(&Edit{LogStart: 300}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, mustRecover(t, fsys), l.State())
}

// An edit in many frames is one edit: for recovery, and for every length it is cut at.
func TestEditInParts(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	l.parts = 60
	mustAppend(t, l, stamped(1))
	before, size := l.State(), l.Size()
	long := new(Edit)
	for i := range 10 {
		long.Added = append(long.Added, stamped(i+10).Added...)
	}
	mustAppend(t, l, long)
	wantSame(t, mustRecover(t, fsys), l.State())
	buf, _ := fsys.ReadFile("db/MANIFEST-000001")
	if list, _ := frames(t, buf); len(list) < 8 || list[2].Count != uint32(len(list)-3) {
		t.Fatalf("frames %+v", list)
	}
	for n := size; n < l.Size(); n++ {
		if err := fsys.Truncate("db/MANIFEST-000001", n); err != nil {
			t.Fatal(err)
		}
		if err := fsys.WriteFile("db/MANIFEST-000001", buf[:n]); err != nil {
			t.Fatal(err)
		}
		s := mustRecover(t, fsys)
		wantSame(t, s, before)
		some := len(bytes.Trim(buf[size:n], "\x00")) > 0 // a checksum may begin with a zero, which is no tail
		if some && (s.Tail.From != size || s.Tail.Bytes == 0 || s.Tail.Bytes > n-size) {
			t.Fatalf("cut at %d: tail %+v", n, s.Tail)
		}
	}
	l.parts = 50
	fsys.WriteFile("db/MANIFEST-000001", buf)
	if l, err := l.Rotate(300); err != nil {
		t.Fatal(err)
	} else {
		wantSame(t, mustRecover(t, fsys), l.State())
	}
	buf, _ = fsys.ReadFile("db/MANIFEST-000300")
	for n := range frameBytes(t, buf) {
		fsys.WriteFile("db/MANIFEST-000300", buf[:n])
		if _, err := Recover(fsys, "db", true); !errors.Is(err, base.ErrCorrupt) {
			t.Fatalf("snapshot cut at %d of %d: %v", n, len(buf), err)
		}
	}
}

func TestAnEditLongerThanAFrame(t *testing.T) {
	fsys := memfs.New()
	fsys.StopJournal()
	l := newLog(t, fsys, segments(2))
	e := new(Edit)
	for i := range 17 {
		key := strings.Repeat("k", 1<<20)
		e.Added = append(e.Added, Added{Level: 1, Table: tab(uint64(i+10), fmt.Sprintf("%06d a%s", i, key), fmt.Sprintf("%06d b", i))})
	}
	mustAppend(t, l, e)
	if l.Size() < frame.MaxShortBytes {
		t.Fatalf("only %d bytes", l.Size())
	}
	wantSame(t, mustRecover(t, fsys), l.State())
	if l, err := l.Rotate(500); err != nil {
		t.Fatal(err)
	} else {
		wantSame(t, mustRecover(t, fsys), l.State())
	}
}

func TestBadEditLeavesTheLogUsable(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	size := l.Size()
	if _, err := l.Append(&Edit{Removed: []Removed{{1, 1}}}); !errors.Is(err, base.ErrCorrupt) || !strings.Contains(err.Error(), l.name) || l.Size() != size {
		t.Errorf("%d bytes, %v", l.Size(), err)
	}
	twice := segments(2)
	twice.Segments = append(twice.Segments, twice.Segments[0])
	if _, err := CreateWhen(nil, fsys, "db", l.State().Store, 9, twice); !errors.Is(err, base.ErrCorrupt) || !strings.Contains(err.Error(), "MANIFEST-000009") {
		t.Errorf("a snapshot that names a segment twice: %v", err)
	}
	if _, err := l.Append(&Edit{unknown: true}); !errors.Is(err, base.ErrFormatTooNew) {
		t.Errorf("unknown fields: %v", err)
	}
	mustAppend(t, l, stamped(1))
	wantSame(t, mustRecover(t, fsys), l.State())
}

// A full disk fails edits before anything of them is written, and only those that
// do not fit; with space back the log goes on, and it can be sealed.
func TestNoSpace(t *testing.T) {
	for _, unsupported := range []bool{false, true} {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		if unsupported {
			fsys.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Do: faultfs.Fail(errors.ErrUnsupported), Sticky: true})
		}
		l := newLog(t, fsys, segments(2))
		disk.SetCapacity(disk.Used() + 1)
		failures := 0
		for i := range 100 {
			before := l.State()
			_, err := l.Append(stamped(i))
			if err == nil {
				continue
			}
			failures++
			if !vfs.IsNoSpace(err) || !errors.Is(err, base.ErrNoSpace) || errors.Is(err, base.ErrPoisoned) {
				t.Fatalf("unsupported %t: %v", unsupported, err)
			}
			s := mustRecover(t, disk)
			wantSame(t, s, before)
			if s.Tail != (Tail{}) {
				t.Fatalf("something was written: %+v", s.Tail)
			}
			if failures == 3 {
				disk.SetCapacity(0)
			}
		}
		if failures != 3 {
			t.Fatalf("%d failures", failures)
		}
		disk.SetCapacity(disk.Used() + 1)
		var err error
		for i := 200; err == nil && i < 400; i++ {
			_, err = l.Append(stamped(i))
		}
		if err := l.Seal(&Edit{LogStart: 3, Added: stamped(999).Added}); !vfs.IsNoSpace(err) && err != nil {
			t.Fatal(err)
		} else if err != nil {
			disk.SetCapacity(0)
			if err := l.Seal(&Edit{LogStart: 3, Added: stamped(999).Added}); err != nil {
				t.Fatal(err)
			}
		}
		s := mustRecover(t, disk)
		wantSame(t, s, l.State())
		if !s.Clean {
			t.Errorf("unsupported %t: not clean, tail %+v", unsupported, s.Tail)
		}
	}
}

// A seal that does not fit fails before the final edit is written, so that it can
// be tried again as it is.
func TestSealReservesRoomForBoth(t *testing.T) {
	failed := 0
	for n := range 80 {
		disk := memfs.New()
		l := newLog(t, disk, segments(2))
		mustAppend(t, l, &Edit{Added: []Added{{Level: 1, Table: tab(9, "a", strings.Repeat("b", 3700))}}})
		disk.SetCapacity(disk.Used())
		final := &Edit{LogStart: 3, Added: []Added{{Level: 2, Table: tab(10, "a", strings.Repeat("c", n+1))}}}
		err := l.Seal(final)
		if err != nil {
			failed++
			disk.SetCapacity(0)
			if n := l.State().Version.NumTables(); !errors.Is(err, base.ErrNoSpace) || n != 1 {
				t.Fatalf("%d tables, %v", n, err)
			}
			err = l.Seal(final)
		}
		if err != nil || !mustRecover(t, disk).Clean {
			t.Fatal(err)
		}
	}
	if failed == 0 || failed == 80 {
		t.Errorf("%d of 80 failed", failed)
	}
}

func TestAppendsSideBySide(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				n, err := l.Append(stamped(g*20 + i))
				if err != nil || l.SealedThrough() > n+200 || l.State().Version.NumTables() == 0 || l.Bloated() {
					t.Errorf("append: %v", err)
				}
				if i%5 == 0 && l.Mark() != nil {
					t.Error("mark")
				}
			}
		})
	}
	wg.Wait()
	wantSame(t, mustRecover(t, fsys), l.State())
	if l.State().Version.NumTables() != 160 {
		t.Errorf("%d tables", l.State().Version.NumTables())
	}
}
