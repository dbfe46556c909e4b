package cairn_test

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn"
)

// TestWalkOverRangeDelete: a walk does not read what a range delete hides, in either direction, be it that it has just come, or
// that it was merged with the rows, which a snapshot keeps; nor does it pass what was put there since.
func TestWalkOverRangeDelete(t *testing.T) {
	large(t)
	const n = 60_000
	key := func(i int) []byte { return fmt.Appendf(nil, "key%09d", i) }
	for _, merged := range []bool{false, true} {
		for _, backward := range []bool{false, true} {
			name := fmt.Sprintf("merged %v, backward %v", merged, backward)
			db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
			b := cairn.NewBatch()
			for i := range n {
				if b.Put(key(i), make([]byte, 50)); b.Len() == 1000 {
					check(t, db.Write(b))
					b.Reset()
				}
			}
			check(t, db.Compact(t.Context(), cairn.Range{}))
			old, err := db.Begin(false)
			check(t, err)
			check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{Low: key(1), High: key(n - 1)}) }))
			check(t, db.Put(key(n/2), nil))
			if merged {
				check(t, db.Compact(t.Context(), cairn.Range{}))
			}
			before := db.Stats().PageMisses
			var rows []string
			check(t, db.View(func(tx *cairn.Tx) error {
				it := tx.Iter(cairn.Range{})
				defer it.Close()
				begin, step := it.First, it.Next
				if backward {
					begin, step = it.Last, it.Prev
				}
				for ok := begin(); ok; ok = step() {
					rows = append(rows, string(it.Key()))
				}
				return it.Err()
			}))
			if len(rows) != 3 || rows[1] != string(key(n/2)) {
				t.Errorf("%s: %q", name, rows)
			}
			if read := db.Stats().PageMisses - before; read > 150 { // of 470: those around the row, 64 blocks, are passed one by one
				t.Errorf("%s: %d pages were read", name, read)
			}
			seen := 0
			for range old.Keys(cairn.Range{}) {
				seen++
			}
			if seen != n {
				t.Errorf("%s: the snapshot sees %d keys", name, seen)
			}
			check(t, old.Rollback())
		}
	}
}
