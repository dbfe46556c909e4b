package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

type store struct {
	Ledger
	disk     *memfs.FS
	faults   *faultfs.FS
	poisoned error
	edits    int // that Edited was told of
}

// newStore is the ledger of a store whose first segment, 1, is provisional.
func newStore(t *testing.T) *store {
	t.Helper()
	disk := memfs.New()
	s := &store{disk: disk, faults: faultfs.New(disk)}
	s.FS, s.Dir, s.Obsolete = s.faults, "/db", new(obsolete.Files)
	s.Poison = func(err error) { s.poisoned = errors.Join(s.poisoned, err) }
	s.Edited = func() { s.edits++ }
	if err := errors.Join(disk.MkdirAll("/db"), disk.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	s.Start(manifest.NewState(base.NewID()), 1)
	s.record(t, true)
	t.Cleanup(func() { s.Close() })
	return s
}

// record records the next segment, and makes its file, of which nothing is synced.
func (s *store) record(t *testing.T, provisional bool) uint64 {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	num := s.NewNum()
	f, err := s.disk.Create(s.name(num))
	if err == nil {
		err = errors.Join(s.Record(manifest.Segment{Num: num, File: base.NewID()}, provisional), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return num
}

func (s *store) name(num uint64) string { return fmt.Sprintf("/db/%06d.log", num) }

func (s *store) append(t *testing.T, edit *manifest.Edit) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	if _, err := s.Append(edit); err != nil {
		t.Fatal(err)
	}
}

func (s *store) confirm(t *testing.T, last uint64) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	if err := s.Confirm(last); err != nil {
		t.Fatal(err)
	}
}

// onDisk returns the state after a power cut, and the log files that are left.
func (s *store) onDisk(t *testing.T) (*manifest.State, []string) {
	t.Helper()
	cut := s.disk.Crash(memfs.SyncedOnly())
	state, err := manifest.Recover(cut, "/db", false)
	if err != nil {
		t.Fatal(err)
	}
	names, err := cut.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	return state, slices.DeleteFunc(names, func(name string) bool {
		kind, _ := base.ParseFileName(name)
		return kind != base.FileLog
	})
}

// TestEdited: readers in other processes are told of each change to the manifest.
func TestEdited(t *testing.T) {
	s := newStore(t)
	told := func(what string, change func() error) {
		t.Helper()
		before := s.edits
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if s.edits != before+1 {
			t.Errorf("%s: %d times", what, s.edits-before)
		}
	}
	if s.edits != 1 {
		t.Errorf("a new manifest: %d times", s.edits)
	}
	told("a provisional segment", func() error { s.record(t, true); return nil })
	told("confirmed segments", func() error { s.confirm(t, 100); return nil })
	told("a segment", func() error { s.record(t, false); return nil })
	told("an edit", func() error {
		s.Lock()
		defer s.Unlock()
		_, err := s.Append(&manifest.Edit{LastSeq: 7})
		return err
	})
	told("the seal", func() error { _, err := s.Seal(7); return err })
}

// TestSealReports: what a recovery has dropped is told until a store that was written to is closed, whichever manifest it ends with.
func TestSealReports(t *testing.T) {
	for _, rested := range []bool{false, true} {
		for _, c := range []struct{ flushed, last uint64 }{{0, 7}, {7, 7}, {0, 8}, {8, 8}} {
			s, dropped := newStore(t), manifest.Dropped{Bytes: 9, From: 8}
			s.Lock()
			_, err := s.Append(&manifest.Edit{LogStart: 2, LastSeq: 7, Dropped: &dropped})
			s.Unlock()
			if err = errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			opened, _ := s.onDisk(t)
			s.Ledger = Ledger{FS: s.FS, Dir: s.Dir, Obsolete: s.Obsolete, Poison: s.Poison, Edited: s.Edited}
			s.Start(opened, opened.NextFileNum)
			num := s.record(t, true)
			s.Lock()
			_, err = s.Append(&manifest.Edit{LogStart: num + 1, LastSeq: c.flushed})
			s.Unlock()
			if rested {
				num = s.record(t, true)
				s.Lock()
				_, again := s.Append(&manifest.Edit{LogStart: num + 1})
				s.Unlock()
				err = errors.Join(err, again)
			}
			before := s.State().Manifest
			if _, again := s.Seal(c.last); err != nil || again != nil {
				t.Fatal(err, again)
			}
			want := dropped
			if c.last > 7 {
				want = manifest.Dropped{}
			}
			if state, _ := s.onDisk(t); opened.Dropped != dropped || state.Dropped != want || (state.Manifest != before) != rested {
				t.Errorf("%+v, rested %v: %+v became %+v, want %+v; manifest %d, then %d", c, rested, opened.Dropped, state.Dropped, want, before, state.Manifest)
			}
		}
	}
}

// TestSegmentNumbersEnd: where there is no number left for a log segment that is a limit, and not damage, for the first one after
// Open and for a later one; nothing is recorded.
func TestSegmentNumbersEnd(t *testing.T) {
	s := newStore(t)
	ends := func() {
		t.Helper()
		s.Lock()
		defer s.Unlock()
		s.next = manifest.MaxSegmentNum + 1
		for _, provisional := range []bool{false, true} {
			err := s.Record(manifest.Segment{Num: s.NewNum(), File: base.NewID()}, provisional)
			if !errors.Is(err, base.ErrLimit) || errors.Is(err, base.ErrCorrupt) || s.poisoned != nil {
				t.Errorf("provisional %v: %v; poisoned: %v", provisional, err, s.poisoned)
			}
		}
	}
	ends()
	if n := len(s.State().Segments); n != 1 {
		t.Errorf("%d segments are recorded", n)
	}
	opened := s.State()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Ledger = Ledger{FS: s.FS, Dir: s.Dir, Obsolete: s.Obsolete, Poison: s.Poison, Edited: s.Edited}
	s.Start(opened, 0)
	ends()
	if s.Live() {
		t.Error("there is a manifest without a segment")
	}
}

// TestGiveBack: a number is given out again if nobody can know it: not one behind which there is another, nor one that the manifest
// says is taken, the one that Open found included.
func TestGiveBack(t *testing.T) {
	s := newStore(t)
	want := func(next uint64) {
		t.Helper()
		if got := s.TakeNum(); got != next {
			t.Errorf("number %d, want %d", got, next)
		}
	}
	num := s.TakeNum()
	s.PutBack(num)
	want(num)
	want(num + 1)
	s.PutBack(num)
	want(num + 2)
	s.append(t, &manifest.Edit{})
	s.PutBack(num + 2)
	want(num + 3)
	opened := s.State()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Ledger = Ledger{FS: s.FS, Dir: s.Dir, Obsolete: s.Obsolete, Poison: s.Poison, Edited: s.Edited}
	s.Start(opened, opened.NextFileNum)
	s.PutBack(opened.NextFileNum - 1)
	want(opened.NextFileNum)
	s.PutBack(opened.NextFileNum)
	want(opened.NextFileNum)
}

// TestConfirm: segments are provisional until names and records are durable, and after that what is
// damaged of the records is not a torn tail.
func TestConfirm(t *testing.T) {
	s := newStore(t)
	syncs := s.faults.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.SyncDir, Sticky: true})
	second, third := s.record(t, true), s.record(t, true)
	if s.FirstProvisional() != 1 || syncs.Seen() != 0 {
		t.Errorf("first provisional is %d, after %d syncs", s.FirstProvisional(), syncs.Seen())
	}
	if state, logs := s.onDisk(t); len(state.Segments) != 1 || state.FirstProvisional() != 1 || len(logs) != 1 {
		t.Errorf("before: %+v, %q", state.Segments, logs)
	}
	s.confirm(t, 0)
	if syncs.Seen() != 0 {
		t.Error("nothing to confirm takes a sync")
	}
	s.confirm(t, second)
	state, logs := s.onDisk(t)
	if s.FirstProvisional() != third || state.FirstProvisional() != third || len(state.Segments) != 3 || len(logs) != 3 {
		t.Errorf("first provisional is %d; %+v, %q", s.FirstProvisional(), state.Segments, logs)
	}
	damaged := s.disk.Clone()
	name := fmt.Sprintf("/db/%s", base.FileName(base.FileManifest, state.Manifest))
	buf, err := damaged.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	id := state.Segments[1].File
	at := slices.IndexFunc(buf, func(b byte) bool { return b == id[0] })
	for ; at >= 0 && !slices.Equal(buf[at:at+len(id)], id[:]); at++ {
	}
	if err := damaged.Corrupt(name, int64(at), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Recover(damaged, "/db", false); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("a damaged record of a segment that was confirmed: %v", err)
	}
	before := syncs.Seen()
	s.confirm(t, second)
	if syncs.Seen() != before {
		t.Error("confirmed twice")
	}
	s.confirm(t, math.MaxUint64)
	if state, _ := s.onDisk(t); s.FirstProvisional() != 0 || state.FirstProvisional() != 0 {
		t.Errorf("first provisional is %d", s.FirstProvisional())
	}
	if s.record(t, false); s.FirstProvisional() != 0 {
		t.Error("a segment that is synced is provisional")
	}
	if num := s.record(t, true); s.FirstProvisional() != num {
		t.Errorf("first provisional is %d, want %d", s.FirstProvisional(), num)
	}
	if s.poisoned != nil {
		t.Error(s.poisoned)
	}
}

// TestConfirmFails: a failure leaves segments provisional, and is told.
func TestConfirmFails(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.SyncDir, faultfs.Sync, faultfs.Write} {
		s := newStore(t)
		s.record(t, true)
		s.faults.Add(faultfs.Rule{Kinds: kind, Do: faultfs.Fail(syscall.EIO)})
		s.Lock()
		err := s.Confirm(math.MaxUint64)
		s.Unlock()
		if !errors.Is(err, base.ErrPoisoned) || !errors.Is(s.poisoned, base.ErrPoisoned) || s.FirstProvisional() != 1 {
			t.Errorf("%v: %v, told %v, first provisional is %d", kind, err, s.poisoned, s.FirstProvisional())
		}
		if state, _ := s.onDisk(t); state.FirstProvisional() != 1 {
			t.Errorf("%v: on disk the first provisional is %d", kind, state.FirstProvisional())
		}
	}
}

// TestFailedSyncOfTheDirectoryIsRemembered: none is asked for again once one has failed, of tables' names or of manifests':
// it may say nothing of what the first has lost. One that was not attempted is.
func TestFailedSyncOfTheDirectoryIsRemembered(t *testing.T) {
	syncs := map[string]func(s *store) error{
		"names":          (*store).SyncDir,
		"a new manifest": func(s *store) error { _, err := s.Seal(7); return err },
	}
	for first, fail := range syncs {
		for then, again := range syncs {
			s := newStore(t)
			s.append(t, &manifest.Edit{LogStart: manifest.NoLog(s.Next())}) // it rests: the seal begins a manifest
			s.append(t, &manifest.Edit{LogStart: s.record(t, false) + 1})
			s.faults.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Do: faultfs.Fail(vfs.ErrNotAttempted)})
			if err := s.SyncDir(); !errors.Is(err, vfs.ErrNotAttempted) || errors.Is(err, base.ErrPoisoned) {
				t.Fatalf("not attempted: %v", err)
			}
			failed := s.faults.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Do: faultfs.Fail(syscall.EIO)})
			if err := fail(s); !errors.Is(err, base.ErrPoisoned) || failed.Fired() != 1 {
				t.Fatalf("%s: %v", first, err)
			}
			if err := again(s); !errors.Is(err, base.ErrPoisoned) || !errors.Is(err, syscall.EIO) || failed.Seen() != 1 {
				t.Errorf("%s, then %s: %v, %d syncs of the directory", first, then, err, failed.Seen())
			}
		}
	}
}

// TestNothingLeftToConfirm: segments whose entries are in tables need no confirmation.
func TestNothingLeftToConfirm(t *testing.T) {
	s := newStore(t)
	last := s.record(t, true)
	s.Lock()
	defer s.Unlock()
	if _, err := s.Append(&manifest.Edit{LogStart: last + 1}); err != nil {
		t.Fatal(err)
	}
	syncs := s.faults.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.SyncDir, Sticky: true})
	if err := s.Confirm(last); err != nil || s.FirstProvisional() != 0 || syncs.Seen() != 0 {
		t.Errorf("%v, first provisional is %d, %d syncs", err, s.FirstProvisional(), syncs.Seen())
	}
}

// TestSealInANewManifest: the manifest of a store that has rested is replaced at its end, and retired, whatever closing it says; that the
// new one cannot be closed is the error, and nothing else is tried.
func TestSealInANewManifest(t *testing.T) {
	for name, want := range map[string]error{"": nil, "MANIFEST-000002": nil, "MANIFEST-000004": syscall.EIO} {
		s := newStore(t)
		s.append(t, &manifest.Edit{LogStart: manifest.NoLog(s.Next())})
		last := s.record(t, false)
		s.append(t, &manifest.Edit{LogStart: last + 1})
		rule := s.faults.Add(faultfs.Rule{Kinds: faultfs.Close, Name: cmp.Or(name, "none"), Do: faultfs.Fail(syscall.EIO)})
		_, err := s.Seal(7)
		if !errors.Is(err, want) || errors.Is(err, base.ErrClosed) || name != "" && rule.Fired() != 1 {
			t.Errorf("close of %q fails: %v, want %v", name, err, want)
		}
		var retired []string
		for _, f := range s.TakeObsolete() {
			retired = append(retired, filepath.ToSlash(f.Path))
		}
		if want == nil && !slices.Equal(retired, []string{"/db/MANIFEST-000002"}) {
			t.Errorf("close of %q fails: %v is to be removed", name, retired)
		}
		if state, _ := s.onDisk(t); state.Manifest != 4 || !state.Clean {
			t.Errorf("close of %q fails: on disk is %+v", name, state)
		}
	}
}

// TestRoll: a manifest that has grown makes way for a new one, and is removed once that is there.
func TestRoll(t *testing.T) {
	s := newStore(t)
	roll := func() uint64 {
		s.Lock()
		defer s.Unlock()
		s.Roll()
		return s.State().Manifest
	}
	old := s.State().Manifest
	if now := roll(); now != old {
		t.Fatalf("manifest %d makes way for %d though it is small", old, now)
	}
	for i := range uint64(16 << 10) {
		s.append(t, &manifest.Edit{LastSeq: i})
	}
	if roll() == old || s.poisoned != nil {
		t.Fatalf("it is still manifest %d, and %v", old, s.poisoned)
	}
	if files := s.TakeObsolete(); len(files) != 1 || files[0].Path != base.FilePath("/db", base.FileManifest, old) {
		t.Errorf("obsolete: %+v", files)
	}
}

// TestNumbersOfManifests: the number of a manifest for which there is no space is given out again, the first one's or that of one in
// its place, unless something of it is left, or it failed for another reason.
func TestNumbersOfManifests(t *testing.T) {
	first, later := newStore(t), newStore(t)
	opened := first.State()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	first.Ledger = Ledger{FS: first.FS, Dir: first.Dir, Obsolete: first.Obsolete, Poison: first.Poison, Edited: first.Edited}
	first.Start(opened, opened.NextFileNum)
	for i := range uint64(16 << 10) {
		later.append(t, &manifest.Edit{LastSeq: i})
	}
	for _, c := range []struct {
		kind  faultfs.Kind
		name  string
		err   error
		stays string // cannot be removed
		back  bool
	}{
		{faultfs.Create, "MANIFEST-*", vfs.ErrNoSpace, "none", true}, {faultfs.Write, "MANIFEST-*", vfs.ErrNoSpace, "none", true},
		{faultfs.Sync, "MANIFEST-*", vfs.ErrNoSpace, "none", true}, {faultfs.Create, "*.tmp", vfs.ErrNoSpace, "none", true},
		{faultfs.Rename, "CURRENT", vfs.ErrNoSpace, "none", true}, {faultfs.Write, "MANIFEST-*", vfs.ErrNoSpace, "MANIFEST-*", false},
		{faultfs.Write, "*.tmp", vfs.ErrNoSpace, "*.tmp", false}, {faultfs.Create, "MANIFEST-*", syscall.EIO, "none", false},
		{faultfs.Write, "*.tmp", syscall.EIO, "none", false},
	} {
		for what, s := range map[string]*store{"first": first, "later": later} {
			left := s.faults.Add(faultfs.Rule{Kinds: faultfs.Remove, Name: c.stays, Do: faultfs.Fail(syscall.EIO)})
			rule := s.faults.Add(faultfs.Rule{Kinds: c.kind, Name: c.name, Do: faultfs.Fail(c.err)})
			s.Lock()
			num := s.NewNum()
			var err error
			if s == first {
				err = s.Record(manifest.Segment{Num: num, File: base.NewID()}, true)
			} else {
				s.Roll()
			}
			next := s.Next()
			s.Unlock()
			left.Stop()
			if (s == first) != (err != nil) || rule.Fired() != 1 || s.poisoned != nil {
				t.Errorf("%s, %+v: %v, poisoned by %v, %d failures", what, c, err, s.poisoned, rule.Fired())
			}
			if back := next == num+1; back != c.back {
				t.Errorf("%s, %+v: the next number behind %d is %d", what, c, num, next)
			}
		}
	}
}
