package cairn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// cutOff returns what a power cut leaves of a store that is open, with key a, and its log.
func cutOff(t *testing.T) *memfs.FS {
	t.Helper()
	m := memfs.New()
	db, err := cairn.Open("/db", &cairn.Options{FS: m})
	check(t, err)
	put(t, db, "a", "1")
	image := m.Crash(memfs.Everything())
	check(t, db.Close())
	return image
}

// TestOpenFailsAnywhere: an Open that has something to recover fails at each operation in
// turn. Whatever came before the failure, the next Open finds everything, and so does one
// after a power cut in the middle of that, which loses of what was not synced what it likes.
// (The failed close of the new manifest made Open remove the tables that it named; and the
// name of that manifest was trusted, and the log removed, before it was durable.)
func TestOpenFailsAnywhere(t *testing.T) {
	whole := cutOff(t)
	counting := faultfs.New(whole.Clone())
	all := counting.Add(faultfs.Rule{})
	db, err := cairn.Open("/db", &cairn.Options{FS: counting})
	check(t, err)
	last := all.Seen()
	check(t, db.Close())
	failed, cut := 0, 0
	for n := int64(1); n <= last; n++ {
		m := whole.Clone()
		disk := faultfs.New(m)
		disk.Add(faultfs.Rule{At: n, Do: faultfs.Fail(syscall.EIO)})
		if db, err := cairn.Open("/db", &cairn.Options{FS: disk}); err == nil {
			check(t, db.Close())
			continue
		}
		failed++
		db, err := cairn.Open("/db", &cairn.Options{FS: m})
		if err != nil {
			t.Fatalf("operation %d of %d failed; the next Open: %v", n, last, err)
		}
		wantValue(t, db, "a", "1")
		journal := m.Journal()
		at := journal.Len()
		for choice := range journal.Choices(at, memfs.Plan{Random: 4}) {
			cut++
			again, err := cairn.Open("/db", &cairn.Options{FS: journal.State(at, choice)})
			if err != nil {
				t.Fatalf("operation %d of %d failed, and after the next Open the power (%v): %v", n, last, choice, err)
			}
			wantValue(t, again, "a", "1")
			check(t, again.Close())
		}
		check(t, db.Close())
	}
	if failed < 20 || cut < 100 {
		t.Errorf("%d Opens of %d failed, %d power cuts: is anything tested?", failed, last, cut)
	}
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
	var logs []string
	for _, name := range image.Files() {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, name)
		}
	}
	damaged := 0
	for _, name := range logs[1:] {
		if info, err := image.Stat(name); err == nil && info.Size > 70_000 && image.Corrupt(name, 1000, 1) == nil {
			damaged++
			break
		}
	}
	before := arena.Mapped()
	if db, err := cairn.Open("/db", &cairn.Options{FS: image, ReadOnly: true}); !errors.Is(err, cairn.ErrCorrupt) {
		if err == nil {
			db.Close()
		}
		t.Fatalf("%d of %d segments damaged: %v", damaged, len(logs), err)
	}
	if n := arena.Mapped() - before; n != 0 {
		t.Errorf("%d bytes are still mapped", n)
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
