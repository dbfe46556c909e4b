package cairn_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestRemovedLater: files that could not be removed when nobody needed them any more go when they can be, tables of a transaction
// that was rolled back too.
func TestRemovedLater(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	faults := faultfs.New(m)
	db := openAt(t, "/db", &cairn.Options{FS: faults, Memory: 4 << 20})
	fails := faults.Add(faultfs.Rule{Kinds: faultfs.Remove, Sticky: true, Do: faultfs.Fail(syscall.EBUSY)})
	for i := range 3 {
		check(t, db.Put(fmt.Append(nil, i), noise(100_000)))
		check(t, db.Compact(t.Context(), cairn.Range{}))
	}
	tx, err := db.Begin(true)
	check(t, err)
	for i := range 2000 {
		check(t, tx.Put(fmt.Append(nil, "private", i), noise(1000)))
	}
	check(t, tx.Rollback())
	left := func() (n int) {
		for _, name := range m.Files() {
			if ext := filepath.Ext(name); ext == ".sst" || ext == ".log" {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); fails.Fired() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was to be removed")
		}
	}
	most := int(db.Stats().Tables) + 3 // one made ahead, the log, and the next segment
	if left() <= most {
		t.Fatalf("%d files, though none can be removed", left())
	}
	faults.Heal()
	for deadline := time.Now().Add(time.Minute); left() > most; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d files are left of %d tables: %v", left(), db.Stats().Tables, m.Files())
		}
	}
}

// TestTablesThatIteratorsKeepAreCounted: DiskBytes has tables that others have replaced as long as they are there: those in which
// idle iterators stand until these are closed.
func TestTablesThatIteratorsKeepAreCounted(t *testing.T) {
	fs := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: fs, Durability: cairn.Relaxed})
	onDisk := func() (tables int, bytes int64) {
		names, err := fs.List("/db")
		check(t, err)
		for _, name := range names {
			if info, err := fs.Stat("/db/" + name); err == nil && strings.HasSuffix(name, ".sst") {
				tables, bytes = tables+1, bytes+info.Size
			}
		}
		return tables, bytes
	}
	counted := func(when string, want int) {
		t.Helper()
		for tries := 0; ; tries++ { // one may be about to go
			s := db.Stats()
			tables, size := onDisk()
			if tables == want && s.DiskBytes-s.LogBytes == size {
				return
			} else if tries == 1000 {
				t.Fatalf("%s: %d tables of %d bytes, want %d, %d bytes are counted", when, tables, size, want, s.DiskBytes-s.LogBytes)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	value := make([]byte, 100<<10)
	rand.NewChaCha8([32]byte{}).Read(value)
	var its []*cairn.Iterator
	for i := range 5 {
		put(t, db, "k", string(value))
		check(t, db.Compact(t.Context(), cairn.Range{}))
		tx, err := db.Begin(false)
		check(t, err)
		defer tx.Rollback()
		it := tx.Iter(cairn.Range{})
		if !it.First() {
			t.Fatal("nothing is there")
		}
		its = append(its, it)
		counted(fmt.Sprint("round ", i), i+1)
	}
	for _, it := range its {
		check(t, it.Close())
	}
	counted("closed", 1)
}

// TestLeftOverIsRemovedLater: what an earlier run has left, and cannot be removed, keeps nobody from opening the store, and goes
// when it can be.
func TestLeftOverIsRemovedLater(t *testing.T) {
	for _, name := range []string{"000900.sst", "000900.tmp", "000001.log", "MANIFEST-000001", "MANIFEST-000900", "RESERVE"} {
		for _, made := range []bool{false, true} {
			m := memfs.New()
			m.StopJournal()
			if made {
				db := openAt(t, "/db", &cairn.Options{FS: m})
				put(t, db, "a", "1")
				check(t, db.Close())
			} else {
				check(t, m.MkdirAll("/db"))
			}
			check(t, m.WriteFile("/db/"+name, nil))
			faults := faultfs.New(m)
			fails := faults.Add(faultfs.Rule{Kinds: faultfs.Remove, Name: name, Sticky: true, Do: faultfs.Fail(syscall.EACCES)})
			db := openAt(t, "/db", &cairn.Options{FS: faults})
			put(t, db, "b", "2")
			if fails.Fired() == 0 {
				t.Errorf("%s, a store %v: nobody has tried to remove it", name, made)
			}
			faults.Heal()
			there := func() bool { return slices.Contains(m.Files(), "/db/"+name) }
			for deadline := time.Now().Add(time.Minute); there() && name != "RESERVE"; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s stays: %v", name, m.Files())
				}
			}
			if check(t, db.Close()); there() {
				t.Errorf("%s is left by Close", name)
			}
		}
	}
}

// TestCompactEnds beside a snapshot and somebody who commits, though the tables that it makes of small ones are as many again: with
// long keys they are full before they have their size.
func TestCompactEnds(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20, Durability: cairn.Relaxed})
	put(t, db, "a", "1")
	snapshot, err := db.Begin(false)
	check(t, err)
	long := bytes.Repeat(b("x"), 4000)
	for i := range 20_000 {
		check(t, db.Put(fmt.Appendf(long, "%05d", i), b("v")))
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := db.Put(b("a"), b("2")); err != nil {
				stopped <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
		stopped <- nil
	}()
	before := db.Stats().Compactions
	within, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	err = db.Compact(within, cairn.Range{})
	stop()
	check(t, <-stopped)
	if err != nil {
		t.Errorf("%v, after %d compactions", err, db.Stats().Compactions-before)
	}
	check(t, snapshot.Rollback())
}
