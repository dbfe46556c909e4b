package cairn_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// putBeside puts n keys several times, with a snapshot before each time but the first, and has everything merged.
func putBeside(t *testing.T, db *cairn.DB, n, times int) (snapshots []*cairn.Tx) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range times {
		if i > 0 {
			tx, err := db.Begin(false)
			check(t, err)
			snapshots = append(snapshots, tx)
			t.Cleanup(func() { tx.Rollback() })
		}
		batch := cairn.NewBatch()
		for k := range n {
			batch.Put(fmt.Appendf(nil, "%05d", k), fmt.Appendf(nil, "%x", r.Uint64()))
		}
		check(t, db.Write(batch))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, times*n)
	return snapshots
}

func wantEntries(t *testing.T, db *cairn.DB, n int) {
	t.Helper()
	if got := int(db.Stats().Entries); got != n {
		t.Fatalf("%d entries, want %d", got, n)
	}
}

// What is kept for snapshots goes when they have ended, though the store was closed or killed before: by itself,
// and when somebody asks.
func TestVersionsKeptBeforeOpen(t *testing.T) {
	const n = 3000
	again := func(t *testing.T) *cairn.DB {
		dir := t.TempDir()
		db := openAt(t, dir, nil)
		for _, tx := range putBeside(t, db, n, 3) {
			check(t, tx.Rollback())
		}
		check(t, db.Close())
		return openAt(t, dir, nil)
	}
	t.Run("by itself", func(t *testing.T) {
		db := again(t)
		for deadline := time.Now().Add(20 * time.Second); db.Stats().Entries > n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d entries of %d keys, and nobody to see them", db.Stats().Entries, n)
			}
		}
	})
	t.Run("asked", func(t *testing.T) {
		for range 20 {
			db := again(t)
			before := db.Stats().Entries
			check(t, db.Compact(t.Context(), cairn.Range{}))
			wantEntries(t, db, n)
			if before == 3*n {
				return
			}
		}
		t.Fatal("the store does it by itself before it can be asked")
	})
}

// What nobody sees but who has ended is not kept for the sake of one older snapshot.
func TestOldSnapshotKeepsOnlyItsOwn(t *testing.T) {
	const n = 3000
	db := openAt(t, t.TempDir(), nil)
	snapshots := putBeside(t, db, n, 4)
	for _, tx := range snapshots[1:] {
		check(t, tx.Rollback())
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, 2*n)
	check(t, snapshots[0].Rollback())
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, n)
}

// A little of it goes, too, when somebody asks.
func TestCompactRemovesAllThatIsHidden(t *testing.T) {
	const n = 3000
	db := openAt(t, t.TempDir(), nil)
	snapshots := putBeside(t, db, n, 1)
	tx, err := db.Begin(false)
	check(t, err)
	defer tx.Rollback()
	for k := 0; k < n; k += 50 {
		check(t, db.Put(fmt.Appendf(nil, "%05d", k), []byte("new")))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, n+n/50)
	for _, tx := range append(snapshots, tx) {
		check(t, tx.Rollback())
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, n)
}
