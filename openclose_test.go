package cairn_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestCloseSyncs: closing a small store syncs its table, whose name was made durable with
// that of its log, and the edit of the manifest that names the table. With the power cut
// right after it nothing is missing, and nothing is reported as dropped.
func TestCloseSyncs(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Relaxed, cairn.Durable} {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		db := openAt(t, "/db", &cairn.Options{FS: fsys, Durability: durability})
		for i := range 10 {
			check(t, db.Put([]byte(strconv.Itoa(i)), make([]byte, 1500)))
		}
		syncs := fsys.Add(faultfs.Rule{Kinds: faultfs.Sync, Sticky: true})
		dirs := fsys.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Sticky: true})
		check(t, db.Close())
		if syncs.Seen() != 2 || dirs.Seen() != 0 {
			t.Errorf("%v: %d syncs of files and %d of directories, want 2 and none", durability, syncs.Seen(), dirs.Seen())
		}
		for _, left := range []memfs.Choice{{}, memfs.Everything()} {
			again := openAt(t, "/db", &cairn.Options{FS: disk.Crash(left)})
			for i := range 10 {
				if _, err := again.Get([]byte(strconv.Itoa(i))); err != nil {
					t.Errorf("%v, %v: key %d: %v", durability, left, i, err)
				}
			}
			if n := again.Stats().Recovery.DroppedBytes; n != 0 {
				t.Errorf("%v, %v: %d bytes dropped", durability, left, n)
			}
		}
	}
}

// TestOpenReadsLittle: of the beginning of a table Open reads the header.
func TestOpenReadsLittle(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	db := openAt(t, "/db", &cairn.Options{FS: fsys})
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		value := make([]byte, 4096)
		for j := range value {
			value[j] = byte(noise.Uint32())
		}
		check(t, db.Put([]byte(strconv.Itoa(i)), value))
	}
	check(t, db.Close())
	fsys.StartTrace()
	check(t, openAt(t, "/db", &cairn.Options{FS: fsys, ReadOnly: true}).Close())
	headers := 0
	for _, e := range fsys.Trace(faultfs.Read) {
		if strings.HasSuffix(e.Name, ".sst") && e.Offset == 0 {
			headers++
			if e.Length != 64 {
				t.Errorf("%d bytes were read for the header of %s", e.Length, e.Name)
			}
		}
	}
	if headers == 0 {
		t.Error("no table was opened; the test shows nothing")
	}
}

// brokenRoot cannot sync the root directory, and takes its time to say so.
type brokenRoot struct{ *memfs.FS }

func (f brokenRoot) SyncDir(dir string) error {
	if filepath.ToSlash(dir) != "/" {
		return f.FS.SyncDir(dir)
	}
	time.Sleep(50 * time.Millisecond)
	return syscall.EIO
}

// TestParentsBeforeCurrent: the directories above a new store are synced while its first
// files are made, but there is no store before they are.
func TestParentsBeforeCurrent(t *testing.T) {
	disk := memfs.New()
	_, err := cairn.Open("/db", &cairn.Options{FS: brokenRoot{disk}})
	expect(t, err, syscall.EIO)
	if _, err := disk.ReadFile("/db/CURRENT"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a store whose directory may be lost: %v", err)
	}
	openAt(t, "/db", &cairn.Options{FS: disk})
}

// TestParentsThatCannotBeSynced: what an Open has made that could not make it durable the next one does not take for
// somebody else's, nor a sync that succeeds then for proof: no power cut takes a commit.
func TestParentsThatCannotBeSynced(t *testing.T) {
	failing := func(err error) []faultfs.Rule {
		// The first sync is there to see whether anything is to be made.
		return []faultfs.Rule{{Kinds: faultfs.SyncDir, Name: "p", At: 2, Sticky: true, Do: faultfs.Fail(err)}}
	}
	for what, rules := range map[string][]faultfs.Rule{
		"no memory":  failing(errors.New("no memory")),
		"no answer":  failing(syscall.ETIMEDOUT),
		"not ours":   failing(fs.ErrPermission),
		"no support": failing(syscall.EINVAL),
		"fails once, and forgets": {
			{Kinds: faultfs.SyncDir, Name: "p", At: 2, Do: faultfs.Fail(syscall.EIO)},
			{Kinds: faultfs.SyncDir, Name: "p", At: 3, Do: faultfs.Pretend()},
		},
	} {
		for _, dir := range []string{"/p/d", "/p/q/d"} {
			disk := memfs.New()
			check(t, errors.Join(disk.MkdirAll("/p"), disk.SyncDir("/")))
			faults := faultfs.New(disk)
			for _, rule := range rules {
				faults.Add(rule)
			}
			if _, err := cairn.Open(dir, &cairn.Options{FS: faults}); err == nil {
				t.Fatalf("%s, %s: Open succeeds", what, dir)
			}
			db, err := cairn.Open(dir, &cairn.Options{FS: faults})
			if err != nil {
				continue
			}
			put(t, db, "k", "v")
			image := disk.Crash(memfs.SyncedOnly())
			check(t, db.Close())
			again := openAt(t, dir, &cairn.Options{FS: image})
			if got := pairsOf(t, again); len(got) != 1 {
				t.Errorf("%s, %s: after a power cut there is %v", what, dir, got)
			}
		}
	}
}
