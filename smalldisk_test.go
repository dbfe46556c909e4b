package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// smallDisk returns a disk of so many bytes.
func smallDisk(bytes int64) *memfs.FS {
	m := memfs.New()
	m.StopJournal()
	m.SetCapacity(bytes)
	return m
}

// aside returns how many bytes are put aside.
func aside(m *memfs.FS) int64 {
	info, err := m.Stat("/db/RESERVE")
	if err != nil {
		return 0
	}
	return info.Allocated
}

// TestTablesOnASmallDisk: a commit that becomes a table does not leave the store without the space for the flush of what
// comes next, a delete.
func TestTablesOnASmallDisk(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for size := 2_080_000; size > 1_960_000; size -= 4 << 10 {
			o := &cairn.Options{FS: smallDisk(2 << 20), Memory: 1 << 20, Durability: d}
			db, err := cairn.Open("/db", o)
			check(t, err)
			if err := db.Put(b("k"), noise(size)); errors.Is(err, cairn.ErrNoSpace) {
				check(t, db.Close())
				continue
			}
			check(t, db.Delete(b("k")))
			if err = db.Close(); err == nil {
				db, err = cairn.Open("/db", o)
			}
			if err != nil {
				t.Errorf("%v, a value of %d bytes: %v", d, size, err)
				continue
			}
			check(t, db.Put(b("after"), b("it")))
			check(t, db.Close())
		}
	}
}

// TestDeletesPutSpaceAside as other commits do, where they can.
func TestDeletesPutSpaceAside(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		m := smallDisk(32 << 20)
		o := &cairn.Options{FS: m, Durability: d}
		db, err := cairn.Open("/db", o)
		check(t, err)
		for i := range 10 {
			check(t, db.Put(fmt.Append(nil, i), noise(20_000)))
		}
		for i := range 30 {
			check(t, db.Delete(append(fmt.Append(nil, i), noise(2500)...)))
		}
		if n := aside(m); n == 0 {
			t.Errorf("%v: nothing is put aside", d)
		}
		m.SetCapacity(m.Used()) // somebody else takes the rest
		check(t, db.Close())
		db, err = cairn.Open("/db", o)
		check(t, err)
		check(t, db.Close())
	}
}

// takenFS is a disk on which somebody else takes what is put aside as soon as it is given back, while on.
type takenFS struct {
	*memfs.FS
	on atomic.Bool
}

func (f *takenFS) Remove(name string) error {
	err := f.FS.Remove(name)
	if filepath.ToSlash(name) == "/db/RESERVE" && f.on.Load() {
		f.SetCapacity(f.Used())
	}
	return err
}

// TestSpaceStaysAside: a put for which there is no space leaves what is put aside where it is. It was given back and put aside
// anew, so that somebody else could come between; and then puts went on without it.
func TestSpaceStaysAside(t *testing.T) {
	for size := 4 << 20; size < 8<<20; size += 300_000 {
		m := &takenFS{FS: smallDisk(8 << 20)}
		o := &cairn.Options{FS: m, Memory: 256 << 20}
		db, err := cairn.Open("/db", o)
		check(t, err)
		put := func(key string, n int) error {
			err := db.Put(b(key), noise(n))
			if err != nil {
				expect(t, err, cairn.ErrNoSpace)
			}
			return err
		}
		for i := range 30 {
			check(t, put(fmt.Sprint(i), 10_000))
		}
		before := aside(m.FS)
		m.on.Store(true)
		if put("large", size) == nil {
			t.Errorf("a put of %d bytes on a disk of %d", size, 8<<20)
		}
		m.on.Store(false)
		m.SetCapacity(m.Used())
		after := aside(m.FS)
		for i := range 15 {
			_ = put(fmt.Sprint("later", i), 10_000)
		}
		if err = db.Close(); err == nil {
			db, err = cairn.Open("/db", o)
		}
		if err != nil {
			t.Errorf("behind a put of %d bytes, %d put aside, then %d: %v", size, before, after, err)
			continue
		}
		check(t, db.Close())
	}
}

// TestDeletesOneByOne: where there is not the space for an ordinary segment and its flush, deletes go on as long as there is for a
// small one. All were refused once the first small segment was full.
func TestDeletesOneByOne(t *testing.T) {
	const n = 5000
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		m := smallDisk(64 << 20)
		o := &cairn.Options{FS: m, Durability: d}
		db, err := cairn.Open("/db", o)
		check(t, err)
		var batch cairn.Batch
		for i := range n {
			batch.Put(fmt.Appendf(nil, "key%06d", i), b("value"))
		}
		batch.Put(b("noise"), noise(480_000))
		check(t, db.Write(&batch))
		check(t, db.Close())
		m.SetCapacity(m.Used() + 600_000)
		db, err = cairn.Open("/db", o)
		check(t, err)
		for i, deadline := 0, time.Now().Add(time.Minute); i < n; {
			err := db.Delete(fmt.Appendf(nil, "key%06d", i))
			if err == nil {
				i++
				continue
			}
			if expect(t, err, cairn.ErrNoSpace); time.Now().After(deadline) {
				t.Fatalf("%v: delete %d: %v; %d of the disk are used", d, i, err, m.Used())
			}
			time.Sleep(5 * time.Millisecond)
		}
		check(t, db.Delete(b("noise")))
		check(t, db.Close())
	}
}

// TestPutsAfterCompact: a store of a few bytes that was compacted again and again takes puts as long as there is space for a log segment
// of any size and its flush.
func TestPutsAfterCompact(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for _, c := range []struct {
			disk    int64
			compact int
		}{{64 << 20, 7}, {8 << 20, 3}} {
			db, err := cairn.Open("/db", &cairn.Options{FS: smallDisk(c.disk), Durability: d})
			check(t, err)
			for i := range c.compact {
				check(t, db.Put(fmt.Append(nil, "small", i), noise(50)))
				check(t, db.Compact(t.Context(), cairn.Range{}))
			}
			for i := range 100 {
				if err := db.Put(fmt.Append(nil, i), noise(10_000)); err != nil {
					t.Errorf("%v, %d MiB, put %d: %v", d, c.disk>>20, i, err)
					break
				}
			}
			check(t, db.Close())
		}
	}
}

// leftInManifest returns how many bytes of the manifest's file are not written yet: as many zeros are at its end.
func leftInManifest(t *testing.T, m *memfs.FS) int {
	t.Helper()
	names, err := m.List("/db")
	check(t, err)
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST") {
			f, err := m.Open("/db/" + name)
			check(t, err)
			defer f.Close()
			size, err := f.Size()
			check(t, err)
			data := make([]byte, size)
			_, err = f.ReadAt(data, 0)
			check(t, err)
			return len(data) - len(bytes.TrimRight(data, "\x00"))
		}
	}
	t.Fatal("no manifest")
	return 0
}

// TestCloseOnAFullDisk: a store at rest whose manifest has no room for its end, on a disk that is full but for the space that is put
// aside, is closed well.
func TestCloseOnAFullDisk(t *testing.T) {
	const enough, unit = 30, 1 << 10 // bytes: for no end, and what the manifest grows by
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		m := memfs.New()
		m.StopJournal()
		o := &cairn.Options{FS: m, Memory: 4 << 20, Durability: d}
		db, err := cairn.Open("/db", o)
		check(t, err)
		check(t, db.Put(b("large"), noise(600_000)))
		for i, takes := 0, 0; ; i++ { // tables with keys of different lengths take different room there
			check(t, db.Put(append(fmt.Append(nil, i), noise(10+i%60)...), noise(10)))
			check(t, db.Compact(t.Context(), cairn.Range{}))
			left := leftInManifest(t, m)
			if i > 1000 {
				t.Fatal("the manifest never ends there")
			}
			if left < takes || left > takes+enough {
				continue
			}
			for end := time.Now().Add(time.Minute); aside(m) == 0 || strings.Contains(strings.Join(m.Files(), " "), ".log"); time.Sleep(2 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it does not come to rest", m.Files())
				}
			}
			if now := leftInManifest(t, m); now > enough {
				takes = (left - now + unit) % unit // to come to rest
				continue
			}
			break
		}
		m.SetCapacity(m.Used())
		check(t, db.Close())
		if left := m.Files(); slices.Contains(left, "/db/RESERVE") {
			t.Error(left)
		}
		o.ReadOnly = true
		db, err = cairn.Open("/db", o)
		check(t, err)
		if s := db.Stats(); s.Recovery != (cairn.RecoveryStats{}) || s.Tables == 0 {
			t.Errorf("%v: closed well, and opened again: %+v, %d tables", d, s.Recovery, s.Tables)
		}
		check(t, db.Close())
	}
}

// TestDeletesWhereNothingIsPutAside: on a disk that was filled, where no space can be preallocated, as on Windows, one can delete
// until there is room again.
func TestDeletesWhereNothingIsPutAside(t *testing.T) {
	f := faultfs.New(smallDisk(8 << 20))
	f.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Sticky: true, Do: faultfs.Fail(errors.ErrUnsupported)})
	db := openAt(t, "/db", &cairn.Options{FS: f, Memory: 16 << 20})
	key := func(i int) []byte { return fmt.Appendf(nil, "k%08d", i) }
	n, random, value := 0, rand.NewChaCha8([32]byte{3}), make([]byte, 1000)
	for ; ; n++ {
		random.Read(value) // else tables take next to nothing, and the disk fills only after many merges
		if err := db.Put(key(n), value); err != nil {
			expect(t, err, cairn.ErrNoSpace)
			break
		}
	}
	soon := func(what string, write func() error) {
		t.Helper()
		err := write()
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = write() {
			expect(t, err, cairn.ErrNoSpace)
			time.Sleep(5 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("%s of %d: %v", what, n, err)
		}
	}
	for i := range n {
		soon(fmt.Sprint("delete ", i), func() error { return db.Delete(key(i)) })
	}
	soon("put after the deletes", func() error { return db.Put(key(0), value) })
	check(t, db.Close())
}

// TestWhereReserveCannotBeOpened: beside a RESERVE that is no file a store puts nothing aside. Where it cannot be opened for a
// moment a put says so, and a delete goes on.
func TestWhereReserveCannotBeOpened(t *testing.T) {
	for _, c := range []struct{ why, want error }{{vfs.ErrNotRegular, nil}, {fs.ErrPermission, nil}, {syscall.EMFILE, syscall.EMFILE}} {
		m := memfs.New()
		m.StopJournal()
		f := faultfs.New(m)
		rule := f.Add(faultfs.Rule{Kinds: faultfs.Open | faultfs.Create, Name: "RESERVE", Sticky: true, Do: faultfs.Fail(c.why)})
		db := openAt(t, "/db", &cairn.Options{FS: f})
		var err error
		for i := 0; i < 400 && err == nil; i++ {
			err = db.Put(fmt.Append(nil, "key", i), noise(1000))
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%v: a put: %v", c.why, err)
		}
		for i := range 100 { // to the segment that is there, which then holds more than nothing is put aside for
			check(t, db.Delete(append(fmt.Append(nil, "key", i), noise(1000)...)))
		}
		rule.Stop()
		check(t, db.Put(b("after"), noise(1000)))
		check(t, db.Close())
	}
}
