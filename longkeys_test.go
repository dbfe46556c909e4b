package cairn_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestLongKeysThatDifferLate: such tables are full by their index long before they
// have their size, and were joined with their neighbours for ever.
func TestLongKeysThatDifferLate(t *testing.T) {
	large(t)
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 64 << 20, Durability: cairn.Relaxed})
	long := bytes.Repeat([]byte("k"), cairn.MaxKeyBytes-6)
	for i := range 600 {
		check(t, db.Put(fmt.Appendf(bytes.Clone(long), "%06d", i), nil))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	for deadline := time.Now().Add(20 * time.Second); db.Stats().CompactionDebt > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still compacting: %+v", db.Stats())
		}
	}
	check(t, db.Close())
}
