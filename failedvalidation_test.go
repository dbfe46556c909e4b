package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// gate stops one call and tells when it has come.
type gate struct {
	armed   atomic.Bool
	hit, on chan struct{}
	opened  sync.Once
}

// open lets the call that was stopped go on, and stops none that comes later.
func (g *gate) open() {
	g.armed.Store(false)
	g.opened.Do(func() { close(g.on) })
}

func newGate() *gate { return &gate{hit: make(chan struct{}), on: make(chan struct{})} }

// pass stops the first call after the gate was armed, and reports whether it did.
func (g *gate) pass() bool {
	if !g.armed.CompareAndSwap(true, false) {
		return false
	}
	close(g.hit)
	<-g.on
	return true
}

// gatedFS has a gate for the write to the log that contains fails, which then fails, and one for a read of
// a table by a commit that is being validated.
type gatedFS struct {
	vfs.FS
	log, table *gate
	fails      []byte
}

func newGatedFS(fails string) *gatedFS {
	return &gatedFS{memfs.New(), newGate(), newGate(), []byte(fails)}
}

type gatedFile struct {
	vfs.File
	fs   *gatedFS
	name string
}

func (f *gatedFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return &gatedFile{file, f, name}, err
}

func (f *gatedFS) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &gatedFile{file, f, name}, nil
}

func (f *gatedFile) WriteAt(p []byte, off int64) (int, error) {
	if strings.HasSuffix(f.name, ".log") && bytes.Contains(p, f.fs.fails) && f.fs.log.pass() {
		return 0, syscall.EIO
	}
	return f.File.WriteAt(p, off)
}

func (f *gatedFile) ReadAt(p []byte, off int64) (int, error) {
	if strings.HasSuffix(f.name, ".sst") && bytes.Contains(debug.Stack(), []byte("validateAll")) {
		f.fs.table.pass()
	}
	return f.File.ReadAt(p, off)
}

// TestValidationAcrossAFailedWrite: a transaction T had its reads validated against a
// commit P that was pending. P's write failed, its sequence went to another commit Q,
// and T took Q for what it had validated: it committed over a value that Q had changed.
func TestValidationAcrossAFailedWrite(t *testing.T) {
	fs := newGatedFS("never")
	db := openAt(t, "/db", &cairn.Options{FS: fs, Memory: 1 << 20})
	t.Cleanup(func() { // or Close waits for ever, where the test fails
		fs.log.open()
		fs.table.open()
	})
	other := make([]byte, 1000) // more than memory holds: to look at it again means reading
	for i := range 3000 {
		rand.Read(other)
		check(t, db.Put(fmt.Appendf(nil, "zz%04d", i), other))
	}
	x := b("m")
	check(t, db.Put(x, b("0")))
	check(t, db.Compact(t.Context(), cairn.Range{}))
	tx, err := db.Begin(true)
	check(t, err)
	defer tx.Rollback() // or Close waits for it for ever, where the test fails
	if _, err := tx.Get(x); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3000; i += 60 {
		if _, err := tx.Get(fmt.Appendf(nil, "zz%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	check(t, tx.Put(x, b("1")))
	batch := cairn.NewBatch() // around x, and in tables: T is validated without the lock
	for i := range 2000 {
		batch.Put(fmt.Appendf(nil, "a%04d", i), b("z"))
		batch.Put(fmt.Appendf(nil, "z%04d", i), b("z"))
	}
	check(t, db.Write(batch))
	check(t, db.Compact(t.Context(), cairn.Range{}))

	result := make(chan error, 2)
	fs.log.armed.Store(true)
	go func() { result <- db.Put(b("p"), b("never")) }()
	<-fs.log.hit // P has its sequence
	fs.table.armed.Store(true)
	committed := make(chan error, 1)
	go func() { committed <- tx.Commit() }()
	select {
	case <-fs.table.hit: // T is being validated, against P too
	case <-time.After(10 * time.Second):
		t.Fatal("the commit was not validated against tables")
	}
	fs.log.open()
	if err := <-result; !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	check(t, db.Put(x, b("100"))) // Q gets P's sequence
	fs.table.open()
	if err := <-committed; !errors.Is(err, cairn.ErrConflict) {
		v, _ := db.Get(x)
		t.Errorf("committed over a change: %v, x is %s", err, v)
	}
}

// TestScansAfterAFailedWrite: somebody scans while a put's write is under way, which then fails, and others scan while
// its sequence has been given to another: the key has the value it had before.
func TestScansAfterAFailedWrite(t *testing.T) {
	const n = 1000
	fs := newGatedFS("never")
	db := openAt(t, "/db", &cairn.Options{FS: fs})
	t.Cleanup(fs.log.open)
	key := func(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }
	scan := func(many int) {
		t.Helper()
		i := 0
		check(t, db.View(func(tx *cairn.Tx) error {
			for k, v := range tx.Scan(cairn.Range{}) {
				if string(k) != string(key(i)) || string(v) != "whole" {
					t.Fatalf("row %d is %q: %q", i, k, v)
				}
				i++
			}
			return nil
		}))
		if i != many {
			t.Fatalf("%d rows of %d", i, many)
		}
	}
	for i := range n {
		check(t, db.Put(key(i), b("whole")))
	}
	scan(n)
	fs.log.armed.Store(true)
	result := make(chan error, 1)
	go func() { result <- db.Put(key(n/2), b("never")) }()
	<-fs.log.hit
	scan(n)
	fs.log.open()
	if err := <-result; !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	for i := range n {
		check(t, db.Put(key(n+i), b("whole")))
		if i%10 == 0 {
			scan(n + i + 1)
		}
	}
}

// TestFailingLogKeepsToMemory: each write of the log that fails begins a segment. Nobody waited for memory then, nor for a
// flush: 300 such took nine times what they may.
func TestFailingLogKeepsToMemory(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	disk := faultfs.New(m)
	db := openAt(t, "/db", &cairn.Options{FS: disk, Memory: 16 << 20})
	most := int64(0)
	for i, failed := 0, 0; failed < 200; i++ {
		if i > 5000 {
			t.Fatalf("only %d of %d writes failed", failed, i)
		}
		rule := disk.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
		err := db.Put(fmt.Appendf(nil, "key%d", i), make([]byte, 100))
		rule.Stop()
		if err != nil {
			expect(t, err, syscall.EIO)
			failed++
		}
		most = max(most, db.Stats().MemoryUsed)
	}
	if s := db.Stats(); most > s.MemoryLimit {
		t.Errorf("%d bytes of %d were used", most, s.MemoryLimit)
	}
}
