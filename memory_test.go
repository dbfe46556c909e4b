package cairn_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestMemoryIsABound: with small values the index of a memtable takes more than its
// records, each memtable's index has another size, and buffers of sizes nobody asked
// for again piled up: Memory was exceeded by half.
func TestMemoryIsABound(t *testing.T) {
	large(t)
	for _, c := range []struct {
		memory              int64
		value, batch, times int
	}{{1 << 20, 10, 1000, 150}, {4 << 20, 1, 1000, 300}, {8 << 20, 10, 1000, 300}, {16 << 20, 100, 100, 3000}} {
		m := memfs.New()
		m.StopJournal()
		db := openAt(t, "/db", &cairn.Options{FS: m, Memory: c.memory, Durability: cairn.Relaxed})
		most, key := int64(0), 0
		b := cairn.NewBatch()
		for range c.times {
			b.Reset()
			for range c.batch {
				b.Put(fmt.Appendf(nil, "key%013d", key), make([]byte, c.value))
				key++
			}
			check(t, db.Write(b))
			s := db.Stats()
			if s.MemoryUsed > most {
				most = s.MemoryUsed
				if most > c.memory {
					t.Logf("mem %d pages %d index %d", s.Memtables, s.Pages, s.PointIndexes)
				}
			}
		}
		check(t, db.Close())
		if most > c.memory {
			t.Errorf("values of %d bytes: %d of %d bytes used", c.value, most, c.memory)
		}
	}
}

// TestValidationKeepsToMemory: thousands of keys that a transaction has read are looked up in tables larger than Memory when it
// commits, since what others wrote meanwhile has left the memtables. The pages of one key are free again for the next.
func TestValidationKeepsToMemory(t *testing.T) {
	large(t)
	const pairs = 60_000
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 8 << 20, Durability: cairn.Relaxed})
	rng, value := rand.NewChaCha8([32]byte{1}), make([]byte, 1000)
	key := func(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }
	for i := range pairs {
		rng.Read(value)
		check(t, db.Put(key(i), value))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	tx, err := db.Begin(true)
	check(t, err)
	for i := 0; i < pairs; i += 10 {
		if _, err := tx.Has(key(i)); err != nil {
			t.Fatal(err)
		}
	}
	check(t, tx.Put([]byte("of the transaction"), nil))
	for i := 5; i < pairs; i += 10 {
		check(t, db.Put(key(i), value))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	done, most := make(chan error), int64(0)
	go func() { done <- tx.Commit() }()
	for {
		select {
		case err := <-done:
			check(t, err)
			s := db.Stats()
			if most = max(most, s.MemoryUsed); most > s.MemoryLimit {
				t.Errorf("%d bytes of %d were used", most, s.MemoryLimit)
			}
			return
		case <-time.After(100 * time.Microsecond):
			most = max(most, db.Stats().MemoryUsed)
		}
	}
}

// Of a store larger than Memory, what gets read once does not fill memory; of a smaller
// one it stays there.
func TestGetsOfAStoreLargerThanMemory(t *testing.T) {
	const pairs, step = 8000, 20
	get := func(memory int64) cairn.Stats {
		m := memfs.New()
		m.StopJournal()
		opts := &cairn.Options{FS: m, Memory: memory, Durability: cairn.Relaxed}
		db := openAt(t, "/db", opts)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range pairs {
			value := make([]byte, 1000)
			for j := range value {
				value[j] = byte(rng.Uint32()) // nothing is gained by compression
			}
			check(t, db.Put(fmt.Appendf(nil, "key%05d", i), value))
		}
		check(t, db.Close())
		db = openAt(t, "/db", opts)
		for i := 0; i < pairs; i += step {
			value, err := db.Get(fmt.Appendf(nil, "key%05d", i))
			if check(t, err); len(value) != 1000 {
				t.Fatalf("value of %d bytes", len(value))
			}
		}
		s := db.Stats()
		check(t, db.Close())
		return s
	}
	if s := get(4 << 20); s.Pages > 1<<20 || s.PageEvictions == 0 {
		t.Errorf("larger than Memory: %d bytes of pages after %d gets, %d evicted", s.Pages, pairs/step, s.PageEvictions)
	}
	if s := get(64 << 20); s.Pages < pairs*1000*9/10 || s.PageEvictions != 0 {
		t.Errorf("smaller than Memory: %d bytes of pages after gets in all blocks, %d evicted", s.Pages, s.PageEvictions)
	}
}

// measuredFS is a file system that notes how much of the Go heap is in use whenever a table is made, once it is armed.
type measuredFS struct {
	vfs.FS
	armed atomic.Bool
	most  atomic.Int64
}

func (f *measuredFS) Create(name string) (vfs.File, error) {
	if f.armed.Load() && strings.HasSuffix(name, ".sst") {
		f.most.Store(max(f.most.Load(), heapBytes()))
	}
	return f.FS.Create(name)
}

// TestMergeKeepsNoTableItHasRead: a merge of more than Memory has in memory what it reads of one table of each level: it kept the
// last large value of each table it had read until it ended.
func TestMergeKeepsNoTableItHasRead(t *testing.T) {
	large(t)
	const values, size = 200, 256 << 10
	fs := &measuredFS{FS: vfs.OS()}
	db := openAt(t, t.TempDir(), &cairn.Options{FS: fs, Memory: 1 << 20, Durability: cairn.Relaxed})
	rng, value := rand.NewChaCha8([32]byte{1}), make([]byte, size)
	for i := range values {
		rng.Read(value)
		check(t, db.Put(fmt.Appendf(nil, "key%06d", i), value))
	}
	for i := 0; i < values; i += 20 {
		check(t, db.Put(fmt.Appendf(nil, "key%06d", i), nil))
	}
	fs.armed.Store(true)
	tables, before := db.Stats().Tables, heapBytes()
	check(t, db.Compact(t.Context(), cairn.Range{}))
	fs.armed.Store(false)
	if held := fs.most.Load() - before; fs.most.Load() == 0 || held > 4<<20 {
		t.Errorf("a merge of %d tables held %d bytes", tables, held)
	}
	check(t, db.Close())
}
