package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// cutOff returns what a power cut leaves of a store that is open, with key a, and its log;
// if it holds much, tables, several log segments, and a large transaction too.
func cutOff(t *testing.T, much bool) *memfs.FS {
	t.Helper()
	m := memfs.New()
	db, err := cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20})
	check(t, err)
	if much {
		fillUp(t, db, "old", 20)
		check(t, db.Close())
		db, err = cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20})
		check(t, err)
		fillUp(t, db, "new", 20)
		check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Prefix(b("old1"))) }))
		check(t, db.Update(func(tx *cairn.Tx) error {
			for i := range 40 {
				if err := tx.Put(b(fmt.Sprint("tx", i)), b(strings.Repeat("x", 8<<10))); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	put(t, db, "a", "1")
	image := m.Crash(memfs.Everything())
	check(t, db.Close())
	return image
}

func fillUp(t *testing.T, db *cairn.DB, prefix string, keys int) {
	t.Helper()
	for i := range keys {
		put(t, db, fmt.Sprint(prefix, i), strings.Repeat("v", 8<<10))
	}
}

// pairsOf returns everything in a store.
func pairsOf(t *testing.T, db *cairn.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			all[string(k)] = string(v)
		}
		return nil
	}))
	return all
}

// TestOpenFailsAnywhere: an Open that has something to recover, or the Close after it, fails
// at each operation in turn. Whatever came before the failure, the next Open finds everything, and so does one
// after a power cut in the middle of that, which loses of what was not synced what it likes.
// (The failed close of the new manifest made Open remove the tables that it named; and the
// name of that manifest was trusted, and the log removed, before it was durable.)
func TestOpenFailsAnywhere(t *testing.T) {
	for _, much := range []bool{false, true} {
		whole := cutOff(t, much)
		counting := faultfs.New(whole.Clone())
		all := counting.Add(faultfs.Rule{})
		db, err := cairn.Open("/db", &cairn.Options{FS: counting})
		check(t, err)
		last, want := all.Seen(), pairsOf(t, db)
		check(t, db.Close())
		failed, cut, step := 0, 0, int64(1)
		if testing.Short() {
			step = 2
		}
		for n := int64(1); n <= last; n += step {
			for _, why := range []error{syscall.EIO, vfs.ErrNoSpace} {
				m := whole.Clone()
				disk := faultfs.New(m)
				disk.Add(faultfs.Rule{At: n, Do: faultfs.Fail(why)})
				db, err := cairn.Open("/db", &cairn.Options{FS: disk})
				if err == nil {
					err = db.Close() // what an Open leaves to the background may be what fails
				}
				if err == nil {
					continue
				}
				if !errors.Is(err, why) {
					t.Errorf("much %t, operation %d of %d: %v is not %v", much, n, last, err, why)
				}
				failed++
				what := fmt.Sprintf("much %t, operation %d of %d: %v", much, n, last, why)
				cut += openCut(t, m, what, want)
			}
		}
		if failed < int(40/step) || cut < int(200/step) {
			t.Errorf("much %t: %d Opens and Closes failed, of %d operations, %d power cuts: is anything tested?", much, failed, last, cut)
		}
	}
}

// openCut opens a store after an Open that failed, and again after a power cut, whatever that
// takes, and returns how often.
func openCut(t *testing.T, m *memfs.FS, what string, want map[string]string) (cuts int) {
	t.Helper()
	db, err := cairn.Open("/db", &cairn.Options{FS: m})
	if err != nil {
		t.Fatalf("%s; the next Open: %v", what, err)
	}
	if got := pairsOf(t, db); !maps.Equal(got, want) {
		t.Fatalf("%s; then there are %d pairs of %d, or others", what, len(got), len(want))
	}
	journal := m.Journal()
	at := journal.Len()
	for choice := range journal.Choices(at, memfs.Plan{Random: 2}) {
		cuts++
		image := journal.State(at, choice)
		image.StopJournal()
		holds(t, image, fmt.Sprintf("%s; the next Open, then a power cut (%v)", what, choice), want)
	}
	check(t, db.Close())
	return cuts
}

// recoveredByHalf is the disk of a store, the last commit to which is in the system's cache only, and whose next Open has
// made its table and a manifest of it, and was killed when CURRENT had its new name, which was not durable yet.
func recoveredByHalf(t *testing.T, d cairn.Durability) *memfs.FS {
	t.Helper()
	m := memfs.New()
	disk := faultfs.New(m)
	opts := &cairn.Options{FS: disk, Memory: 4 << 20, Durability: d, SyncInterval: time.Hour}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	put(t, db, "first", "1")
	check(t, db.Sync())
	killed := faultfs.Rule{Kinds: faultfs.All &^ (faultfs.Close | faultfs.Lock | faultfs.Write), Sticky: true, Do: faultfs.Fail(syscall.EIO)}
	disk.Add(killed)
	_ = db.Put(b("last"), b("2")) // written; where it is durable nobody knows what became of it
	killed.Kinds |= faultfs.Write
	disk.Add(killed)
	db.Close()
	disk.Heal()
	renamed := disk.Add(faultfs.Rule{Kinds: faultfs.Rename, Do: faultfs.DoneBut(syscall.EIO)})
	if _, err := cairn.Open("/db", opts); !errors.Is(err, syscall.EIO) || renamed.Fired() != 1 {
		t.Fatalf("Open was to fail behind the new name of CURRENT: %v", err)
	}
	return m
}

// TestNothingIsShownBeforeItIsDurable: what an Open shows that finds a recovery done whose manifest is in the system's cache
// only, no power cut takes back, whatever it could not look at; where there is no space to make that sure it fails.
func TestNothingIsShownBeforeItIsDurable(t *testing.T) {
	for what, arrange := range map[string]func(m *memfs.FS, disk *faultfs.FS){
		"no fault": func(*memfs.FS, *faultfs.FS) {},
		"nothing left over can be opened": func(m *memfs.FS, disk *faultfs.FS) {
			current, err := m.ReadFile("/db/CURRENT")
			check(t, err)
			for _, path := range m.Files() {
				text, err := m.ReadFile(path)
				check(t, err)
				name := filepath.Base(path)
				if ahead := strings.HasSuffix(name, ".sst") && len(text) == 0; ahead || strings.HasSuffix(name, ".log") || strings.Contains(name, "MANIFEST") && !bytes.Contains(current, b(name)) {
					disk.Add(faultfs.Rule{Kinds: faultfs.Open, Name: name, Sticky: true, Do: faultfs.Fail(syscall.EMFILE)})
				}
			}
		},
		"one block is free": func(m *memfs.FS, _ *faultfs.FS) { m.SetCapacity(m.Used() + 4096) },
		"none is free":      func(m *memfs.FS, _ *faultfs.FS) { m.SetCapacity(m.Used()) },
	} {
		for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
			t.Run(fmt.Sprint(what, ", ", d), func(t *testing.T) {
				m := recoveredByHalf(t, d)
				disk := faultfs.New(m)
				arrange(m, disk)
				opts := &cairn.Options{FS: disk, Memory: 4 << 20, Durability: d, SyncInterval: time.Hour}
				db, err := cairn.Open("/db", opts)
				if what == "none is free" {
					expect(t, err, cairn.ErrNoSpace)
					m.SetCapacity(0)
					db, err = cairn.Open("/db", opts)
				}
				check(t, err)
				want := pairsOf(t, db)
				if len(want) != 2 {
					t.Errorf("there is %v", want)
				}
				check(t, db.Sync())
				holds(t, m.Crash(memfs.SyncedOnly()), "after a power cut", want)
				disk.Heal()
				check(t, db.Close())
			})
		}
	}
}

// TestManifestTailIsReported: what was dropped of the manifest is told beside what the log gives.
func TestManifestTailIsReported(t *testing.T) {
	whole := cutOff(t, false)
	for _, name := range whole.Files() {
		if strings.Contains(name, "MANIFEST") {
			text, err := whole.ReadFile(name)
			check(t, err)
			copy(text[(len(bytes.TrimRight(text, "\x00"))+47)/8*8:], bytes.Repeat([]byte{0xAA}, 16))
			check(t, whole.WriteFile(name, text))
		}
	}
	told := [2]int64{}
	for i, readOnly := range []bool{true, false} {
		db, err := cairn.Open("/db", &cairn.Options{FS: whole, ReadOnly: readOnly})
		check(t, err)
		told[i] = db.Stats().Recovery.DroppedBytes
		check(t, db.Close())
	}
	if told[0] == 0 || told[1] != told[0] {
		t.Errorf("%d bytes dropped as a read-only Open tells it, %d as the next", told[0], told[1])
	}
}

// holds opens a store and checks that it is what it should be.
func holds(t *testing.T, m *memfs.FS, what string, want map[string]string) {
	t.Helper()
	db, err := cairn.Open("/db", &cairn.Options{FS: m})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := pairsOf(t, db); !maps.Equal(got, want) {
		t.Fatalf("%s: %d pairs of %d, or others", what, len(got), len(want))
	}
	check(t, db.Close())
}

// TestFailedReplayGivesMemoryBack: a read-only Open of a damaged log kept what it had
// replayed before it found the damage.
func TestFailedReplayGivesMemoryBack(t *testing.T) {
	m := memfs.New()
	db, err := cairn.Open("/db", &cairn.Options{FS: m, Memory: 8 << 20})
	check(t, err)
	for i := range 40 {
		put(t, db, fmt.Sprint("key", i), strings.Repeat("v", 64<<10))
	}
	image := m.Crash(memfs.Everything())
	check(t, db.Close())
	damaged := 0
	for _, name := range image.Files() {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		copied := image.Clone()
		if copied.Corrupt(name, 1000, 1) != nil {
			continue
		}
		before := arena.Mapped()
		db, err := cairn.Open("/db", &cairn.Options{FS: copied, ReadOnly: true})
		if err == nil { // a segment that is not used yet, or no more
			check(t, db.Close())
			continue
		}
		expect(t, err, cairn.ErrCorrupt)
		damaged++
		if n := arena.Mapped() - before; n != 0 {
			t.Errorf("%d bytes are still mapped after %v", n, err)
		}
	}
	if damaged == 0 {
		t.Error("no damage was found")
	}
}

// meanwhileFS does something when a manifest is opened for the first time.
type meanwhileFS struct {
	vfs.FS
	do func()
}

func (f *meanwhileFS) Open(name string) (vfs.File, error) {
	if do := f.do; do != nil && strings.Contains(name, "MANIFEST") {
		f.do = nil
		do()
	}
	return f.FS.Open(name)
}

// TestLockMadeMeanwhile: where there is no lock file a read-only Open takes no lock. A writer
// that came a moment later was not noticed.
func TestLockMadeMeanwhile(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, db.Close())
	for _, stays := range []bool{true, false} {
		check(t, os.Remove(filepath.Join(dir, "LOCK")))
		var writer *cairn.DB
		meanwhile := func() {
			writer, err = cairn.Open(dir, nil)
			check(t, err)
			put(t, writer, "a", "2")
			if !stays {
				check(t, writer.Close())
			}
		}
		reader, err := cairn.Open(dir, &cairn.Options{ReadOnly: true, FS: &meanwhileFS{vfs.OS(), meanwhile}})
		if stays {
			expect(t, err, cairn.ErrLocked)
			check(t, writer.Close())
			continue
		}
		check(t, err)
		if _, err := cairn.Open(dir, nil); !errors.Is(err, cairn.ErrLocked) {
			t.Errorf("a writer beside a reader: %v", err)
		}
		check(t, reader.Close())
	}
}

// failedMaker is the disk of an Open that makes a directory below parent, which the sync of parent then fails for: the first one is
// of before there is anything.
type failedMaker struct {
	vfs.FS
	parent string
	syncs  atomic.Int32
	made   chan struct{} // is closed when there is the directory, and its lock
	fail   chan struct{} // the sync waits until it is closed
}

func (f *failedMaker) SyncDir(name string) error {
	if name == f.parent && f.syncs.Add(1) == 2 {
		close(f.made)
		<-f.fail
		return syscall.EIO
	}
	return f.FS.SyncDir(name)
}

// lockingFS calls before and after around the first attempt to take a lock.
type lockingFS struct {
	vfs.FS
	once          sync.Once
	before, after func()
}

func (f *lockingFS) Lock(name string, shared bool) (lock io.Closer, err error) {
	first := false
	f.once.Do(func() { first = true })
	if first {
		f.before()
		defer f.after()
	}
	return f.FS.Lock(name, shared)
}

// TestOpenBesideOneThatFails: who opens a store while somebody else makes it, and cannot make it durable, makes it anew: the other
// has removed what it made. (Open was fs.ErrNotExist, whether it had waited for the lock or came just then.)
func TestOpenBesideOneThatFails(t *testing.T) {
	for _, system := range []bool{false, true} {
		for _, waits := range []bool{false, true} {
			m := memfs.New()
			fsys, parent := vfs.FS(m), filepath.FromSlash("/p")
			if system {
				fsys, parent = vfs.OS(), t.TempDir()
			} else {
				check(t, m.MkdirAll(parent))
			}
			maker := &failedMaker{FS: fsys, parent: parent, made: make(chan struct{}), fail: make(chan struct{})}
			dir, failed := filepath.Join(parent, "db"), make(chan error, 1)
			go func() {
				_, err := cairn.Open(dir, &cairn.Options{FS: maker})
				failed <- err
			}()
			fail := func() {
				close(maker.fail)
				expect(t, <-failed, syscall.EIO)
			}
			other := &lockingFS{FS: fsys, before: fail, after: func() {}}
			if waits {
				other.before, other.after = other.after, fail
			}
			<-maker.made
			db, err := cairn.Open(dir, &cairn.Options{FS: other, LockTimeout: time.Minute})
			if err != nil {
				t.Errorf("of the system: %t, waits for the lock: %t: %v", system, waits, err)
				continue
			}
			put(t, db, "a", "1")
			check(t, db.Close())
		}
	}
}
