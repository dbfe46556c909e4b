package memfs_test

import (
	"strings"
	"testing"

	"github.com/cairndb/cairn/vfs/memfs"
)

func TestEntryChangesAreIndependent(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	durable(t, f, "b", "2")
	create(t, f, "c", "")
	check(t, f.Remove("a"))
	check(t, f.Link("b", "d"))
	only(t, f,
		"a=1 b=2", "a=1 b=2 c=", "b=2", "a=1 b=2 d=2",
		"b=2 c=", "a=1 b=2 c= d=2", "b=2 d=2", "b=2 c= d=2")
}

func TestSyncDirMakesEntriesDurable(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.MkdirAll("/d"))
	check(t, f.SyncDir("/"))
	create(t, f, "/d/x", "")
	check(t, f.Remove("a"))
	check(t, f.SyncDir("/d")) // says nothing about "/"
	only(t, f, "a=1 d/x=", "d/x=")
	check(t, f.SyncDir("/"))
	only(t, f, "d/x=")
}

// TestDirectoryNeedsItsParentSynced: a directory's own name is an entry too.
func TestDirectoryNeedsItsParentSynced(t *testing.T) {
	f := memfs.New()
	check(t, f.MkdirAll("/d"))
	h := create(t, f, "/d/x", "1")
	check(t, h.Sync())
	check(t, f.SyncDir("/d"))
	only(t, f, "", "d/x=1")
	check(t, f.Rename("/d/x", "/d/y")) // within the lost directory: lost with it
	check(t, f.SyncDir("/d"))
	only(t, f, "", "d/y=1")
	check(t, f.SyncDir("/"))
	only(t, f, "d/y=1")
}

func TestRenameIsAtomic(t *testing.T) {
	f := memfs.New()
	durable(t, f, "old", "1")
	durable(t, f, "new", "0")
	check(t, f.Rename("old", "new"))
	only(t, f, "new=0 old=1", "new=1") // never both, never neither
	check(t, f.SyncDir("/"))
	only(t, f, "new=1")
}

// TestRenameBeforeData: the classic: the new name is there and the bytes are not.
func TestRenameBeforeData(t *testing.T) {
	f := memfs.New()
	durable(t, f, "CURRENT", "1")
	create(t, f, "tmp", "2")
	check(t, f.Rename("tmp", "CURRENT"))
	got := states(t, f)
	for _, want := range []string{"CURRENT=", "CURRENT=.", "CURRENT=2", "CURRENT=1 tmp=", "CURRENT=1 tmp=2", "CURRENT=1"} {
		if !got[want] {
			t.Errorf("%q is not reachable", want)
		}
	}
	for state := range got {
		if !strings.HasPrefix(state, "CURRENT=") {
			t.Errorf("%q has no CURRENT", state)
		}
	}
}

// TestRenameKeptByLaterChangeOfItsName: with the rename lost and the later creation
// of its old name kept, the renamed file would have vanished.
func TestRenameKeptByLaterChangeOfItsName(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.Rename("a", "b"))
	create(t, f, "a", "")
	only(t, f, "a=1", "b=1", "a= b=1")
}

// TestRenameChain: of a->b->c the file is under exactly one name.
func TestRenameChain(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.Rename("a", "b"))
	check(t, f.Rename("b", "c"))
	only(t, f, "a=1", "b=1", "c=1")
}

func TestRenameAcrossDirectories(t *testing.T) {
	for _, synced := range []string{"/", "/d"} {
		f := memfs.New()
		check(t, f.MkdirAll("/d"))
		durable(t, f, "a", "1")
		check(t, f.Rename("a", "d/b"))
		only(t, f, "a=1", "d/b=1")
		check(t, f.SyncDir(synced)) // either side settles both
		only(t, f, "d/b=1")
	}
}

// TestRenameIntoLostDirectory: what was durable is not lost with a new directory.
func TestRenameIntoLostDirectory(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.MkdirAll("/d/e"))
	check(t, f.Rename("a", "d/e/b"))
	only(t, f, "a=1", "d/e/b=1")
}

// TestSettledRenameStaysAboveEarlierChanges: the other directory's earlier change of
// the name must not come back over it.
func TestSettledRenameStaysAboveEarlierChanges(t *testing.T) {
	f := memfs.New()
	check(t, f.MkdirAll("/d"))
	durable(t, f, "a", "1")
	create(t, f, "/d/b", "")
	check(t, f.Rename("a", "/d/b"))
	check(t, f.SyncDir("/"))
	only(t, f, "d/b=1")
}

func TestNameShowsPrefixOfItsHistory(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.Remove("a"))
	h := create(t, f, "a", "2")
	check(t, h.Sync())
	only(t, f, "a=1", "", "a=2")
}

func TestHardLinkSurvivesRemoval(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.Link("a", "b"))
	check(t, f.SyncDir("/"))
	check(t, f.Remove("a"))
	only(t, f, "a=1 b=1", "b=1")
	image := f.Crash(memfs.SyncedOnly())
	h, err := image.OpenReadWrite("a")
	check(t, err)
	write(t, h, "2", 0)
	if show(t, image) != "a=2 b=2" {
		t.Fatal("the image's links lead to different files")
	}
}

func TestEntriesIndependentOfData(t *testing.T) {
	f := memfs.New()
	create(t, f, "a", "1")
	j := f.Journal()
	for c, want := range map[memfs.Choice]string{
		memfs.SyncedOnly():               "",
		memfs.SyncedOnly().EntriesKept(): "a=",
		memfs.Everything():               "a=1",
		memfs.Everything().EntriesLost(): "",
		memfs.KeepOne(0):                 "a=",
		memfs.KeepOne(1):                 "",
		memfs.KeepOne(1).EntriesKept():   "a=1",
		memfs.DropOne(1):                 "a=",
		memfs.Everything().LaterKept():   "a=1",
	} {
		if got := show(t, j.State(j.Len(), c)); got != want {
			t.Errorf("%v leaves %q, want %q", c, got, want)
		}
	}
}

func TestLockFileIsAnEntry(t *testing.T) {
	f := memfs.New()
	l, err := f.Lock("LOCK", false)
	check(t, err)
	check(t, l.Close())
	only(t, f, "", "LOCK=")
}
