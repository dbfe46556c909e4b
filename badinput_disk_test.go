package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
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

// TestFullDisk: commits fail with ErrNoSpace and leave nothing, reading goes on, and
// everything works again once there is space.
func TestFullDisk(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	random := rand.NewChaCha8([32]byte{1})
	noise := func() []byte { // does not compress
		v := make([]byte, 10_000)
		random.Read(v)
		return v
	}
	want := map[string]string{}
	fill := func() error {
		for i := range 1000 {
			k, v := fmt.Sprintf("key%05d", i), string(noise())
			if err := db.Put(b(k), b(v)); err != nil {
				return err
			}
			want[k] = v
		}
		return nil
	}
	for round := range 3 {
		m.SetCapacity(m.Used() + 3<<20)
		err := fill()
		expect(t, err, cairn.ErrNoSpace)
		for range 3 { // large ones do not get in either, and leave nothing behind
			big := cairn.NewBatch()
			for i := range 2500 { // more than compaction may free meanwhile
				big.Put(fmt.Appendf(nil, "big%05d", i), noise())
			}
			expect(t, db.Write(big), cairn.ErrNoSpace)
		}
		for k, v := range want {
			wantValue(t, db, k, v)
		}
		wantValue(t, db, "big00000", "")
		m.SetCapacity(0)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if err = db.Put(b("healed"), fmt.Append(nil, round)); err == nil {
				break
			}
			expect(t, err, cairn.ErrNoSpace)
			if time.Now().After(deadline) {
				t.Fatal("there is space, but no commit gets through:", err)
			}
		}
	}
	check(t, db.Close())
	db = openAt(t, "/db", &cairn.Options{FS: m})
	if d := db.Stats().Recovery.DroppedBytes; d != 0 {
		t.Errorf("%d bytes dropped", d)
	}
	want["healed"] = "2"
	for k, v := range want {
		wantValue(t, db, k, v)
	}
	_, err := db.Verify(t.Context())
	check(t, err)
}

// TestFullDiskFromTheStart: not even a store can be made, and nothing is left of it.
func TestFullDiskFromTheStart(t *testing.T) {
	for _, capacity := range []int64{1, 4 << 10, 8 << 10, 12 << 10, 100 << 10} {
		m := memfs.New()
		m.SetCapacity(capacity)
		db, err := cairn.Open("/db", &cairn.Options{FS: m})
		if err == nil {
			err = db.Put(b("a"), b("1"))
			check(t, db.Close())
		}
		expect(t, err, cairn.ErrNoSpace)
		m.SetCapacity(0)
		db = openAt(t, "/db", &cairn.Options{FS: m})
		wantKeys(t, db)
		put(t, db, "a", "1")
		check(t, db.Close())
	}
}

// TestReadOnlyFileSystem: everything that would write fails with the error of the
// file system and changes nothing; reading works.
func TestReadOnlyFileSystem(t *testing.T) {
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m})
	put(t, db, "a", "1")
	check(t, db.Close())
	before := m.Clone()
	f, fails := faultfs.New(m), errors.New("read-only file system")
	f.Add(faultfs.Rule{Kinds: faultfs.Mutations, Sticky: true, Do: faultfs.Fail(fails)})
	_, err := cairn.Open("/new", &cairn.Options{FS: f})
	expect(t, err, fails)
	readOnly := openAt(t, "/db", &cairn.Options{FS: f, ReadOnly: true})
	wantValue(t, readOnly, "a", "1")
	check(t, readOnly.Close())
	db, err = cairn.Open("/db", &cairn.Options{FS: f})
	check(t, err) // a clean store: opening it writes nothing
	wantValue(t, db, "a", "1")
	expect(t, db.Put(b("a"), b("2")), fails)
	wantValue(t, db, "a", "1")
	if err := db.Close(); err != nil {
		t.Log("close:", err)
	}
	if !m.Equal(before) {
		t.Error("something has changed")
	}
}

// TestFailedSync: the store is poisoned: it can be read but not written, until it
// is opened again.
func TestFailedSync(t *testing.T) {
	m := memfs.New()
	f := faultfs.New(m)
	opts := &cairn.Options{FS: f}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	put(t, db, "a", "1")
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
	err = db.Put(b("a"), b("2"))
	expect(t, err, cairn.ErrCommitUnknown)
	expect(t, err, syscall.EIO)
	for range 2 {
		expect(t, db.Put(b("b"), b("2")), cairn.ErrPoisoned)
		expect(t, db.Sync(), cairn.ErrPoisoned)
		wantValue(t, db, "a", "1")
		wantValue(t, db, "b", "")
	}
	for deadline := time.Now().Add(5 * time.Second); !errors.Is(db.Stats().BackgroundError, cairn.ErrPoisoned); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Stats say", db.Stats().BackgroundError)
		}
	}
	expect(t, db.Close(), cairn.ErrPoisoned)
	check(t, db.Close())
	db = openAt(t, "/db", opts)
	v, err := db.Get(b("a"))
	if err != nil || string(v) != "1" && string(v) != "2" {
		t.Errorf("%q, %v", v, err)
	}
	put(t, db, "a", "3")
}

// TestPoisonedIsNotFull: where a write of the log fails, and there is no space for the segment that would end it there, space
// does not help: the outcome is unknown, the store poisoned, and no error says that nothing happened.
func TestPoisonedIsNotFull(t *testing.T) {
	for _, failure := range []error{syscall.EIO, vfs.ErrNoSpace} {
		f := faultfs.New(memfs.New())
		db, err := cairn.Open("/db", &cairn.Options{FS: f})
		check(t, err)
		for range 100 {
			put(t, db, "a", "1")
			f.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Do: faultfs.Fail(failure)})
			f.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "*.log", Sticky: true, Do: faultfs.NoSpace()})
			err = db.Put(b("b"), b("2"))
			f.Heal()
			if !errors.Is(err, cairn.ErrNoSpace) || errors.Is(err, cairn.ErrCommitUnknown) {
				break
			} // else the store has come to rest meanwhile: there was no segment to write to
		}
		expect(t, err, failure)
		for _, c := range []struct{ err, want error }{
			{err, cairn.ErrCommitUnknown},
			{db.Put(b("b"), b("2")), cairn.ErrPoisoned},
			{db.Sync(), cairn.ErrPoisoned},
			{db.Close(), cairn.ErrPoisoned},
		} {
			if expect(t, c.err, c.want); errors.Is(c.err, cairn.ErrNoSpace) {
				t.Error("space would help, it says:", c.err)
			}
		}
	}
}

// TestNoEventAfterClose: Close waits for whoever is being told of a failure.
func TestNoEventAfterClose(t *testing.T) {
	f := faultfs.New(memfs.New())
	var told atomic.Int32
	var log bytes.Buffer
	db, err := cairn.Open("/db", &cairn.Options{FS: f, Logger: loggerTo(&log), OnEvent: func(e cairn.Event) {
		if e.Kind == cairn.EventBackgroundError {
			time.Sleep(50 * time.Millisecond)
			told.Add(1)
		}
	}})
	check(t, err)
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
	expect(t, db.Put([]byte("k"), nil), cairn.ErrPoisoned)
	expect(t, db.Close(), cairn.ErrPoisoned)
	if told.Load() == 0 {
		t.Error("Close returned before it was told why the store is poisoned")
	}
	if !strings.Contains(log.String(), `level=ERROR msg="cairn: background error"`) {
		t.Errorf("logged: %s", &log)
	}
}
