package txn

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// haltFS halts one read of a table, and one write to the log.
type haltFS struct {
	vfs.FS
	read, write halt
}

// halt lets everybody pass, but for the first one after set.
type halt struct{ at atomic.Pointer[halted] }

// halted is where somebody stands, or will.
type halted struct{ there, goOn chan struct{} }

func (h *halt) set() *halted {
	at := &halted{make(chan struct{}), make(chan struct{})}
	h.at.Store(at)
	return at
}

func (h *halt) pass() {
	if at := h.at.Swap(nil); at != nil {
		close(at.there)
		<-at.goOn
	}
}

type haltFile struct {
	vfs.File
	read, write *halt
}

func (f *haltFS) file(x vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	h := &haltFile{File: x, read: new(halt), write: new(halt)}
	switch t, _ := base.ParseFileName(filepath.Base(name)); t {
	case base.FileTable:
		h.read = &f.read
	case base.FileLog:
		h.write = &f.write
	}
	return h, nil
}

func (f *haltFS) Create(name string) (vfs.File, error) {
	x, err := f.FS.Create(name)
	return f.file(x, name, err)
}

func (f *haltFS) Open(name string) (vfs.File, error) {
	x, err := f.FS.Open(name)
	return f.file(x, name, err)
}

func (f *haltFS) OpenReadWrite(name string) (vfs.File, error) {
	x, err := f.FS.OpenReadWrite(name)
	return f.file(x, name, err)
}

func (f *haltFile) ReadAt(p []byte, off int64) (int, error) {
	f.read.pass()
	return f.File.ReadAt(p, off)
}

func (f *haltFile) WriteAt(p []byte, off int64) (int, error) {
	f.write.pass()
	return f.File.WriteAt(p, off)
}

// TestGapBehindALargeTransaction: a walk that began in a State with the memtable behind a large transaction, and without
// its tables, does not know what that has deleted, however far the memtable goes by now.
func TestGapBehindALargeTransaction(t *testing.T) {
	for range 20 {
		if walkBesideALargeTransaction(t) {
			return
		}
	}
	t.Fatal("no walk read a table: the stores rested before")
}

// walkBesideALargeTransaction returns false if the store came to rest before its walk, as on a machine that stands still
// for a second.
func walkBesideALargeTransaction(t *testing.T) bool {
	const n, size = 20000, 100
	fs := &haltFS{FS: newWatchedFS()}
	e := openEngine(t, fs, 64<<20)
	check(t, Apply(e, batchOf(n, 0, size, newValues())))
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	check(t, e.Close())
	e = openEngine(t, fs, 64<<20) // of which no block is in memory
	begin := func(writable bool) *Tx {
		tx, err := Begin(e, writable)
		check(t, err)
		t.Cleanup(tx.Rollback)
		return tx
	}
	large := begin(true)
	for i := n / 2; i < n-1; i++ {
		check(t, large.Delete(key(i)))
	}
	check(t, large.spill())
	for i := range n / 2 {
		check(t, Delete(e, bucket, userKey(i)))
	}
	old := begin(false)
	var committed sync.WaitGroup
	writes := fs.write.set()
	committed.Go(func() {
		if _, err := large.Commit(); err != nil {
			t.Error(err)
		}
	})
	<-writes.there // the segment behind it is in the State

	reads := fs.read.set()
	it, walked := old.NewIter(bucket, base.PrefixEnd(bucket)), make(chan struct{})
	go func() {
		defer close(walked)
		it.First()
	}()
	select {
	case <-reads.there:
	case <-walked:
		close(reads.goOn) // a merge may stand there
		close(writes.goOn)
		committed.Wait()
		return false
	}
	close(writes.goOn)
	committed.Wait()
	check(t, Put(e, bucket, userKey(n), nil))
	young := begin(false).NewIter(bucket, base.PrefixEnd(bucket))
	if !young.Seek(key(n/4)) || !bytes.Equal(young.Key(), key(n-1)) {
		t.Errorf("%x, %v, want %x", young.Key(), young.Err(), key(n-1))
	}
	if _, _, _, ok := (*gaps)(young).Gap(key(n/2), math.MaxInt); !ok {
		t.Error("there is no gap")
	}
	close(reads.goOn)
	<-walked
	if !bytes.Equal(it.Key(), key(n/2)) {
		t.Errorf("the old snapshot begins at %x, %v, want %x", it.Key(), it.Err(), key(n/2))
	}
	return true
}
