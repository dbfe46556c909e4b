package cairn_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// TestReadSetIsPartOfMemory: what a transaction has read is counted and bounded,
// points and seeks alike, is given back when it ends, and conflicts are found all
// the same.
func TestReadSetIsPartOfMemory(t *testing.T) {
	large(t)
	const memory, reads = 8 << 20, 300_000
	key := func(n int) []byte { return fmt.Appendf(nil, "key%09d", n) }
	for name, read := range map[string]func(tx *cairn.Tx, it *cairn.Iterator, n int){
		"points": func(tx *cairn.Tx, _ *cairn.Iterator, n int) { tx.Has(key(n)) },
		"seeks":  func(_ *cairn.Tx, it *cairn.Iterator, n int) { it.Seek(key(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			db := openNew(t, &cairn.Options{Memory: memory, Durability: cairn.Relaxed})
			for i := range 1000 {
				check(t, db.Put(key(i*1_000_000), nil))
			}
			check(t, db.View(func(tx *cairn.Tx) error { // which makes the order of what is in memtables
				tx.Iter(cairn.Range{}).First()
				return nil
			}))
			tx, err := db.Begin(true)
			check(t, err)
			defer tx.Rollback()
			before, heap := settledMemory(db), heapBytes()
			it := tx.Iter(cairn.Range{})
			r := rand.New(rand.NewPCG(1, 2))
			var some []int
			for i := range reads {
				n := r.IntN(1_000_000_000)
				read(tx, it, n)
				if i%10_000 == 0 {
					some = append(some, n)
				}
			}
			counted, used := db.Stats().MemoryUsed-before, heapBytes()-heap
			if counted < memory/16/8 || counted > memory/16 || used > 1<<20 {
				t.Errorf("%d bytes are counted, %d of heap used", counted, used)
			}
			it.Close()
			check(t, tx.Put(key(1), nil))
			check(t, db.Put(key(some[r.IntN(len(some))]), nil))
			expect(t, tx.Commit(), cairn.ErrConflict)
			if after := settledMemory(db); after >= before+counted/2 {
				t.Errorf("%d bytes are counted in the end, %d in the beginning", after, before)
			}
		})
	}
}

// settledMemory returns the memory in use once nothing is done in the background.
func settledMemory(db *cairn.DB) int64 {
	for last := int64(-1); ; {
		now := db.Stats().MemoryUsed
		if now == last {
			return now
		}
		last = now
		time.Sleep(50 * time.Millisecond)
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC() // twice: pools keep what they have for one collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
