package manifest

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestFailedRotatePoisonsTheLog(t *testing.T) {
	for n := int64(1); n <= 2; n++ {
		fsys := faultfs.New(memfs.New())
		l := newLog(t, fsys, segments(2))
		fsys.Add(faultfs.Rule{Kinds: faultfs.SyncDir, At: n, Do: faultfs.Fail(syscall.EIO)})
		if _, err := l.Rotate(50); !errors.Is(err, base.ErrPoisoned) {
			t.Fatal(err)
		}
		if _, err := l.Append(stamped(1)); !errors.Is(err, base.ErrPoisoned) {
			t.Errorf("sync of directory %d: append goes on in the old manifest: %v", n, err)
		}
	}
}

func TestRotateWithoutSpaceKeepsTheOldManifest(t *testing.T) {
	for n := int64(1); ; n++ {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		l := newLog(t, fsys, segments(2))
		mustAppend(t, l, stamped(1))
		rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Create | faultfs.Write | faultfs.Rename, At: n, Do: faultfs.NoSpace()})
		next, err := l.Rotate(50)
		if rule.Fired() == 0 {
			if n != 6 || err != nil {
				t.Fatalf("%d operations, %v", n-1, err)
			}
			return
		}
		if next != nil || !errors.Is(err, base.ErrNoSpace) || errors.Is(err, base.ErrPoisoned) {
			t.Fatalf("operation %d: %v", n, err)
		}
		if names, _ := disk.List("db"); !slices.Equal(names, []string{"CURRENT", "MANIFEST-000001"}) {
			t.Fatalf("operation %d left %v", n, names)
		}
		mustAppend(t, l, stamped(2))
		wantSame(t, mustRecover(t, disk), l.State())
	}
}

// Every failing operation but a lack of space breaks the log for good, and never
// loses an edit that was acknowledged.
func TestFailuresPoison(t *testing.T) {
	for n := int64(1); ; n++ {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		l := newLog(t, fsys, segments(2))
		rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Write | faultfs.Sync, At: n, Do: faultfs.Fail(syscall.EIO)})
		syncs := fsys.Add(faultfs.Rule{Kinds: faultfs.Sync})
		var err error
		acked := l.State()
		for i := 0; i < 3 && err == nil; i++ {
			if _, err = l.Append(stamped(i)); err == nil {
				acked = l.State()
			}
		}
		if err == nil {
			err = l.Mark()
		}
		if err == nil {
			err = l.Seal(&Edit{LogStart: 3})
		}
		if rule.Fired() == 0 {
			if n != 12 { // the seal is not synced
				t.Fatalf("%d writes and syncs", n-1)
			}
			return
		}
		if !errors.Is(err, base.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d: %v", n, err)
		}
		seen := syncs.Seen()
		for name, again := range map[string]error{"mark": l.Mark(), "seal": l.Seal(&Edit{LogStart: 3})} {
			if !errors.Is(again, base.ErrPoisoned) {
				t.Errorf("operation %d: %s afterwards: %v", n, name, again)
			}
		}
		if _, again := l.Append(stamped(9)); !errors.Is(again, base.ErrPoisoned) {
			t.Errorf("operation %d: append afterwards: %v", n, again)
		}
		if _, again := l.Rotate(70); !errors.Is(again, base.ErrPoisoned) {
			t.Errorf("operation %d: rotate afterwards: %v", n, again)
		}
		if syncs.Seen() != seen {
			t.Errorf("operation %d: a failed sync was retried", n)
		}
		if s := mustRecover(t, disk); s.Version.NumTables() < acked.Version.NumTables() {
			t.Errorf("operation %d: recovered %d tables of %d", n, s.Version.NumTables(), acked.Version.NumTables())
		}
	}
}

func TestCreateFailures(t *testing.T) {
	kinds := faultfs.Create | faultfs.Write | faultfs.Sync | faultfs.Rename | faultfs.SyncDir
	for n := int64(1); ; n++ {
		disk := memfs.New()
		disk.MkdirAll("db")
		fsys := faultfs.New(disk)
		rule := fsys.Add(faultfs.Rule{Kinds: kinds, At: n, Do: faultfs.Fail(syscall.EIO)})
		l, err := CreateWhen(nil, fsys, "db", testStore, 1, segments(2))
		if rule.Fired() == 0 {
			if n != 10 {
				t.Fatalf("%d operations", n-1)
			}
			l.Close()
			return
		}
		names, _ := disk.List("db")
		if l != nil || !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d: %v", n, err)
		}
		if !errors.Is(err, base.ErrPoisoned) && len(names) != 0 {
			t.Fatalf("operation %d left %v", n, names)
		}
	}
}

// TestNoSpaceAtTheSync: a file system may say only when a new manifest, or what is to be CURRENT, is synced that it is full
// (delayed allocation). Nothing names them yet: they go, and nothing has changed.
func TestNoSpaceAtTheSync(t *testing.T) {
	for _, file := range []string{"MANIFEST-*", "*.tmp"} {
		failsUnchanged(t, faultfs.Rule{Kinds: faultfs.Sync, Name: file, Do: faultfs.Fail(vfs.ErrNoSpace)}, base.ErrNoSpace)
	}
}

// TestRenameNotAttempted: where it was not even attempted to give CURRENT its new name nothing has changed.
func TestRenameNotAttempted(t *testing.T) {
	failsUnchanged(t, faultfs.Rule{Kinds: faultfs.Rename, Do: faultfs.Fail(vfs.ErrNotAttempted)}, vfs.ErrNotAttempted)
}

// failsUnchanged has everything that makes CURRENT anew meet a failure, which must leave the store as it was.
func failsUnchanged(t *testing.T, failure faultfs.Rule, want error) {
	t.Helper()
	disk := memfs.New()
	fsys := faultfs.New(disk)
	l := newLog(t, fsys, segments(2))
	before, _ := disk.List("db")
	for what, try := range map[string]func() error{
		"Rotate": func() error {
			_, err := l.Rotate(50)
			return err
		},
		"SealAnew":     func() error { return l.SealAnew(51, &Edit{LogStart: 3}) },
		"CreateSealed": func() error { return CreateSealed(fsys, "db", testStore, 52, &Edit{LogStart: 3, NextFileNum: 53}) },
		"Confirm":      func() error { return Confirm(fsys, "db", 54) },
	} {
		if what == "Confirm" && failure.Name == "MANIFEST-*" {
			continue // it makes none
		}
		rule := fsys.Add(failure)
		err := try()
		names, _ := disk.List("db")
		if rule.Fired() != 1 || !errors.Is(err, want) || errors.Is(err, base.ErrPoisoned) || !slices.Equal(names, before) {
			t.Errorf("%s, %v of %q: %v; files %q", what, failure.Kinds, failure.Name, err, names)
		}
	}
	mustAppend(t, l, stamped(1))
	wantSame(t, mustRecover(t, disk), l.State())
}

// The order of what makes a new manifest durable; each step relies on those before.
func TestCreateOrder(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	fsys.MkdirAll("db")
	fsys.StartTrace()
	if _, err := CreateWhen(nil, fsys, "db", testStore, 1, segments(2)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range fsys.Trace(faultfs.Mutations) {
		got = append(got, e.Kind.String())
	}
	want := "create write create write sync sync syncdir rename syncdir"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s\nwant %s\n%v", s, want, fsys.Trace(faultfs.Mutations))
	}
}
