package cairn_test

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn"
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
