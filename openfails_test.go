package cairn_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
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
		failed, cut := 0, 0
		for n := int64(1); n <= last; n++ {
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
		if failed < 40 || cut < 200 {
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

// killedFull returns what a process leaves that was killed while no table could be written: several
// log segments of what cannot be compressed, behind a large transaction whose tables only the log
// names, and what is left of a flush. want is what it holds.
func killedFull(t *testing.T, d cairn.Durability) (whole *memfs.FS, want map[string]string) {
	t.Helper()
	m := memfs.New()
	disk := faultfs.New(m)
	opts := &cairn.Options{FS: disk, Memory: 4 << 20, Durability: d}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	fillUp(t, db, "old", 20)
	check(t, db.Close())
	db, err = cairn.Open("/db", opts)
	check(t, err)
	check(t, db.Update(func(tx *cairn.Tx) error {
		for i := range 40 {
			if err := tx.Put(b(fmt.Sprint("tx", i)), b(strings.Repeat("x", 8<<10))); err != nil {
				return err
			}
		}
		return nil
	}))
	full := disk.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.sst", Do: faultfs.NoSpace(), Sticky: true})
	r := rand.New(rand.NewPCG(1, 2))
	for i, err := 0, error(nil); i < 120; i++ {
		noise := make([]byte, 6<<10)
		for j := range noise {
			noise[j] = byte(r.Uint32())
		}
		if err = db.Put(fmt.Append(nil, "noise", i), noise); err != nil {
			expect(t, err, cairn.ErrNoSpace)
			break
		}
	}
	whole, want = m.Crash(memfs.Everything()), pairsOf(t, db)
	full.Stop()
	check(t, db.Close())
	if err := whole.Remove("/db/RESERVE"); err != nil { // else a flush has got it
		expect(t, err, fs.ErrNotExist)
	}
	for _, name := range whole.Files() {
		if strings.HasSuffix(name, ".sst") {
			table, err := whole.ReadFile(name)
			check(t, err)
			check(t, whole.WriteFile("/db/009999.sst", append(table[:32:32], make([]byte, 256<<10)...)))
			break
		}
	}
	return whole, want
}

// TestOpenInSteps: a store that was killed on a full disk is opened in the space for the table of one
// memtable, which is recorded before the next one is made; wherever the power goes meanwhile, or the
// space, nothing is lost. (Open wanted the space for all of the log at once, and the store stayed shut.)
func TestOpenInSteps(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(fmt.Sprint(d), func(t *testing.T) { openInSteps(t, d) })
	}
}

func openInSteps(t *testing.T, d cairn.Durability) {
	whole, want := killedFull(t, d)
	for more := int64(0); ; more += 16 << 10 {
		m := whole.Clone()
		m.SetCapacity(m.Used() + more)
		disk := faultfs.New(m)
		manifests := disk.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "MANIFEST-*"})
		m.StartJournal()
		db, err := cairn.Open("/db", &cairn.Options{FS: disk, Memory: 4 << 20})
		journal := m.Journal()
		m.SetCapacity(0)
		if err != nil {
			expect(t, err, cairn.ErrNoSpace)
			holds(t, m, fmt.Sprintf("%d bytes more", more), want)
			continue
		}
		if got := pairsOf(t, db); !maps.Equal(got, want) {
			t.Errorf("%d pairs of %d, or others", len(got), len(want))
		}
		check(t, db.Close())
		steps, cuts, r := manifests.Seen(), 0, rand.New(rand.NewPCG(3, 4))
		for at := range journal.Len() + 1 {
			for choice := range journal.Choices(at, memfs.Plan{Random: 2}) {
				if r.IntN(500) == 0 {
					cuts++
					image := journal.State(at, choice)
					image.StopJournal()
					holds(t, image, fmt.Sprintf("power cut at %d (%v)", at, choice), want)
				}
			}
		}
		t.Logf("%d kB more than the store had, of %d kB: %d manifests, %d power cuts", more>>10, whole.Used()>>10, steps, cuts)
		if steps < 3 || more > 64<<10 {
			t.Errorf("%d manifests: it went in one, or %d bytes were needed", steps, more)
		}
		return
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
