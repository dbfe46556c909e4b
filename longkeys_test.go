package cairn_test

import (
	"bytes"
	"errors"
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

// putVersions puts n keys that differ late, which take many fences, and behind them one key so many times, with a snapshot after each.
func putVersions(t *testing.T, db *cairn.DB, n, versions, valueBytes int) (last []byte, snapshots []*cairn.Tx) {
	t.Helper()
	long := bytes.Repeat([]byte("k"), cairn.MaxKeyBytes-6)
	for i := range n {
		check(t, db.Put(fmt.Appendf(bytes.Clone(long), "%06d", i), nil))
	}
	last = fmt.Appendf(long, "%06d", 999999)
	value := bytes.Repeat([]byte("v"), valueBytes)
	for i := range versions {
		check(t, db.Put(last, fmt.Appendf(value[:valueBytes], "%06d", i)))
		tx, err := db.Begin(false)
		check(t, err)
		t.Cleanup(func() { tx.Rollback() })
		snapshots = append(snapshots, tx)
	}
	return last, snapshots
}

// wantVersions looks at what some of the snapshots see of the last key: a value that ends with their number.
func wantVersions(t *testing.T, last []byte, snapshots []*cairn.Tx) {
	t.Helper()
	for i := 0; i < len(snapshots); i += 13 {
		tx, want := snapshots[i], fmt.Sprintf("%06d", i)
		v, err := tx.Get(last)
		check(t, err)
		if !bytes.HasSuffix(v, []byte(want)) {
			t.Fatalf("snapshot %s sees version %q", want, v[max(0, len(v)-6):])
		}
		for _, v := range tx.ScanBackward(cairn.Range{Low: last}) {
			if !bytes.HasSuffix(v, []byte(want)) {
				t.Fatalf("snapshot %s walks to version %q", want, v[max(0, len(v)-6):])
			}
		}
		check(t, tx.Err())
	}
}

// TestVersionsOfALongKey: snapshots keep some hundred versions of a key of the greatest length, behind others; each
// was alone behind a whole key in the index, and 136 of them could neither be flushed nor merged.
func TestVersionsOfALongKey(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 64 << 20, Durability: cairn.Relaxed, OnEvent: func(e cairn.Event) {
		if e.Err != nil {
			t.Errorf("in the background: %v", e.Err)
		}
	}})
	last, snapshots := putVersions(t, db, 120, 200, 0)
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantVersions(t, last, snapshots)
	for _, tx := range snapshots {
		check(t, tx.Rollback())
	}
	check(t, db.Close())
}

// TestMoreVersionsThanATableHolds: then merging fails with ErrLimit, what there is can be read, and it passes.
func TestMoreVersionsThanATableHolds(t *testing.T) {
	large(t)
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 256 << 20, Durability: cairn.Relaxed})
	last, snapshots := putVersions(t, db, 120, 140, 1<<20) // values of more than a MiB have a block each
	if err := db.Compact(t.Context(), cairn.Range{}); !errors.Is(err, cairn.ErrLimit) {
		t.Errorf("Compact: %v", err)
	}
	wantVersions(t, last, snapshots)
	for _, tx := range snapshots {
		check(t, tx.Rollback())
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	check(t, db.Close())
}
