package cairn_test

import (
	"fmt"
	"math/rand"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// tableReads is a file system that counts the bytes that are read from tables.
type tableReads struct {
	vfs.FS
	bytes atomic.Int64
}

type countedFile struct {
	vfs.File
	bytes *atomic.Int64
}

func (c *tableReads) Create(name string) (vfs.File, error) { return c.counted(c.FS.Create, name) }
func (c *tableReads) Open(name string) (vfs.File, error)   { return c.counted(c.FS.Open, name) }

func (c *tableReads) counted(open func(string) (vfs.File, error), name string) (vfs.File, error) {
	f, err := open(name)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &countedFile{f, &c.bytes}, nil
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	f.bytes.Add(int64(len(p)))
	return f.File.ReadAt(p, off)
}

// valuesInTables opens a store that has 12 values of so many bytes in tables, none of them in memory.
func valuesInTables(t *testing.T, size int) (db *cairn.DB, reads *tableReads, key func(int) []byte) {
	reads = &tableReads{FS: memfs.New()}
	opts := &cairn.Options{FS: reads, Memory: 1 << 20, Compression: cairn.None}
	key = func(i int) []byte { return fmt.Appendf(nil, "key%02d", i) }
	db = openAt(t, "/db", opts)
	value := make([]byte, size)
	for i := range 12 {
		rand.Read(value)
		check(t, db.Put(key(i), value))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	check(t, db.Close())
	return openAt(t, "/db", opts), reads, key
}

// TestHasReadsNoValue: what asks whether keys have values reads none, neither one of several pages nor one that stands
// in a page: Has, also of what a transaction has written itself to tables, PutIfAbsent, and CompareAndSwap with nil.
func TestHasReadsNoValue(t *testing.T) {
	for _, size := range []int{100_000, 2 << 20} {
		db, reads, key := valuesInTables(t, size)
		each := func(what string, ask func(key []byte) (bool, error), want bool) {
			t.Helper()
			before := reads.bytes.Load()
			for i := range 12 {
				if ok, err := ask(key(i)); ok != want || err != nil {
					t.Fatalf("%s of %s: %v, %v", what, key(i), ok, err)
				}
			}
			if n := reads.bytes.Load() - before; n >= int64(size) {
				t.Errorf("%s of 12 keys with values of %d bytes read %d bytes of tables", what, size, n)
			}
		}
		each("DB.Has", db.Has, true)
		check(t, db.View(func(tx *cairn.Tx) error {
			each("Tx.Has", tx.Has, true)
			return nil
		}))
		check(t, db.Update(func(tx *cairn.Tx) error {
			each("PutIfAbsent", func(key []byte) (bool, error) { return tx.PutIfAbsent(key, nil) }, false)
			each("CompareAndSwap", func(key []byte) (bool, error) { return tx.CompareAndSwap(key, nil, nil) }, false)
			value := make([]byte, size)
			for i := range 12 {
				rand.Read(value)
				check(t, tx.Put(key(i), value))
			}
			each("Tx.Has of its own", tx.Has, true)
			return nil
		}))
	}
}

// TestCommitReadsNoValue: a commit that looks in tables for what was committed since it began reads no values of the
// keys that the transaction has read: others may wait for it.
func TestCommitReadsNoValue(t *testing.T) {
	const size = 200_000
	db, reads, key := valuesInTables(t, size)
	tx, err := db.Begin(true)
	check(t, err)
	defer tx.Rollback()
	for i := range 12 {
		if ok, err := tx.Has(key(i)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	check(t, tx.Put(b("other"), nil))
	for i := range 12 { // into the tables of the values
		check(t, db.Put(append(key(i), 'x'), nil))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	before := reads.bytes.Load()
	check(t, tx.Commit())
	if n := reads.bytes.Load() - before; n >= size {
		t.Errorf("a commit that had read 12 keys with values of %d bytes read %d bytes of tables", size, n)
	}
}
