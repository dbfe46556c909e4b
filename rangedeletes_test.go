package cairn_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

func rangeOf(n int) cairn.Range {
	return cairn.Range{Low: fmt.Appendf(nil, "key%09d", 3*n), High: fmt.Appendf(nil, "key%09d", 3*n+2)}
}

// TestRangeDeletesFillMemtables: a memtable is flushed when its range deletes take
// memory, long before its records do.
func TestRangeDeletesFillMemtables(t *testing.T) {
	const memory, n = 16 << 20, 60_000
	db := openNew(t, &cairn.Options{Memory: memory, Durability: cairn.Relaxed})
	b := cairn.NewBatch()
	most := int64(0)
	for i := range n {
		if b.DeleteRange(rangeOf(i)); b.Len() == 100 {
			check(t, db.Write(b))
			b.Reset()
			most = max(most, db.Stats().Memtables)
		}
	}
	s := db.Stats()
	t.Logf("%d flushes, memtables took %d bytes at most", s.Flushes, most)
	// A range delete takes 60 bytes and more, on 32 bit, 115 on 64. Half of Memory is for memtables, each of which
	// takes up to 2.6 MB here with its index; one that was flushed may be about to be given back.
	if s.Flushes < n/(memory/16/4/60) || most > memory*3/4 {
		t.Errorf("%d flushes, memtables took %d bytes at most", s.Flushes, most)
	}
}

// TestBatchOfRangeDeletes: one batch may have more range deletes than a memtable
// should hold, in a memtable alone, after others, and when it is recovered; and it
// may have so many that it is written as a large transaction.
func TestBatchOfRangeDeletes(t *testing.T) {
	large(t)
	for _, n := range []int{1, 100, 250, 1000, 20_000} { // at 1 MiB a segment has room for about 110
		m := memfs.New()
		db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 1 << 20})
		deadline := time.AfterFunc(time.Minute, func() { panic("a batch waits for ever") })
		b := cairn.NewBatch()
		for round := range 3 {
			b.Reset()
			for i := range n {
				b.Put(rangeOf(i).Low, nil)
			}
			check(t, db.Write(b))
			b.Reset()
			for i := range n {
				b.DeleteRange(rangeOf(i))
			}
			b.Put([]byte("round"), fmt.Append(nil, round))
			check(t, db.Write(b))
		}
		deadline.Stop()
		again := openAt(t, "/db", &cairn.Options{FS: m.Crash(memfs.Everything()), Memory: 1 << 20})
		wantValue(t, again, "round", "2")
		check(t, again.View(func(tx *cairn.Tx) error {
			keys := 0
			for range tx.Keys(cairn.Range{}) {
				keys++
			}
			if keys != 1 {
				t.Errorf("%d range deletes: %d keys are left", n, keys)
			}
			return nil
		}))
	}
}

// tablesIn counts the table files.
func tablesIn(m *memfs.FS) (n int) {
	for _, name := range m.Files() {
		if strings.HasSuffix(name, ".sst") {
			n++
		}
	}
	return n
}

// TestTransactionOfRangeDeletes: a transaction writes its range deletes to tables as
// soon as they take more than it may gather.
func TestTransactionOfRangeDeletes(t *testing.T) {
	large(t)
	const n, some = 50_000, 8_000 // 8,000 are half a megabyte of records
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 16 << 20})
	put(t, db, "key000000000", "v")
	put(t, db, "key000000002", "v")
	tables := tablesIn(m)
	tx, err := db.Begin(true)
	check(t, err)
	defer tx.Rollback()
	for i := range some {
		check(t, tx.DeleteRange(rangeOf(i)))
	}
	if tablesIn(m) == tables {
		t.Error("nothing has been spilled")
	}
	for i := some; i < n; i++ {
		check(t, tx.DeleteRange(rangeOf(i)))
	}
	check(t, tx.Commit())
	wantValue(t, db, "key000000000", "")
	wantValue(t, db, "key000000002", "v")
}

// TestLongTransactionOfRangeDeletes: one that would fit into the log, but others would wait for its range deletes to be put in
// order, goes to tables first.
func TestLongTransactionOfRangeDeletes(t *testing.T) {
	large(t)
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 2 << 30})
	put(t, db, "key000000000", "v")
	put(t, db, "key000000002", "v")
	tables := tablesIn(m)
	check(t, db.Update(func(tx *cairn.Tx) error {
		for i := range 150_000 {
			check(t, tx.DeleteRange(rangeOf(i)))
		}
		return nil
	}))
	if tablesIn(m) == tables {
		t.Error("the commit has made no table")
	}
	wantValue(t, db, "key000000000", "")
	wantValue(t, db, "key000000002", "v")
}

// TestNestedRangeDeletesWithSnapshots: what expires is deleted again and again, up to a bound that grows, while snapshots from
// between stay open. Tables held every range once for each of the others then.
func TestNestedRangeDeletesWithSnapshots(t *testing.T) {
	large(t)
	const n = 1000
	key := func(i int) []byte { return fmt.Appendf(nil, "k%06d", i) }
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20, Durability: cairn.Relaxed})
	for i := range n {
		check(t, db.Put(key(i), []byte("v")))
	}
	var txs []*cairn.Tx
	for i := range n {
		tx, err := db.Begin(false)
		check(t, err)
		defer tx.Rollback()
		txs = append(txs, tx)
		check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{High: key(i + 1)}) }))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	if s := db.Stats(); s.MemoryUsed > s.MemoryLimit || s.DiskBytes > 3<<20 {
		t.Errorf("%d bytes of memory, %d of the disk", s.MemoryUsed, s.DiskBytes)
	}
	for i, tx := range txs {
		if has, err := tx.Has(key(i)); err != nil || !has {
			t.Fatalf("snapshot %d does not see key %d: %v", i, i, err)
		}
		if has, err := tx.Has(key(max(i-1, 0))); err != nil || has != (i == 0) {
			t.Fatalf("snapshot %d sees key %d: %v", i, i-1, err)
		}
	}
}

// TestRangeDeletesFreeSpaceUnderLoad: what is put at the end, and deleted by one range delete now and then, without a pause,
// takes space as what lives does, not as all that ever was.
func TestRangeDeletesFreeSpaceUnderLoad(t *testing.T) {
	large(t)
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 1 << 20, Durability: cairn.Relaxed})
	const n = 4000
	r := rand.New(rand.NewPCG(1, 2))
	key := func(i int) []byte { return fmt.Appendf(nil, "q/%09d", i) }
	value := make([]byte, 1000)
	for end, round := 0, 0; round < 20; round++ {
		low := end
		for ; end < low+n; end++ {
			for i := range value {
				value[i] = byte(r.Uint32())
			}
			check(t, db.Put(key(end), value))
		}
		b := cairn.NewBatch()
		b.DeleteRange(cairn.Range{Low: key(0), High: key(low)})
		check(t, db.Write(b))
		held := int64(0)
		for _, l := range db.Stats().Levels {
			held += l.Bytes
		}
		if most := int64(10 * n * len(value)); held > most { // two rounds live, and merges may be behind
			t.Fatalf("round %d: tables of %d bytes, want at most %d", round, held, most)
		}
	}
}
