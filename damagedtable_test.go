package cairn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// damagedStore opens a store of n keys of a kilobyte, whose tables all have a bit wrong in their first keys. It counts what
// fails in the background.
func damagedStore(t *testing.T, dir string, n int, failed *atomic.Int64) *cairn.DB {
	t.Helper()
	opts := &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed, OnEvent: func(e cairn.Event) {
		if e.Kind == cairn.EventBackgroundError {
			failed.Add(1)
		}
	}}
	db, err := cairn.Open(dir, opts)
	check(t, err)
	for i := range n {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), noise(1000)))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	check(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		check(t, err)
		data[100] ^= 1
		check(t, os.WriteFile(name, data, 0o600))
	}
	return openAt(t, dir, opts)
}

// TestDamagedTableHoldsUpNothingElse: a table that cannot be read is left out of merges, and what is written above it
// is merged without it.
func TestDamagedTableHoldsUpNothingElse(t *testing.T) {
	const keys = 4000
	dir := t.TempDir()
	var failed atomic.Int64
	db := damagedStore(t, dir, keys, &failed)
	r := rand.New(rand.NewPCG(2, 2))
	v := noise(64 << 10)
	puts := 25 * keys
	if testing.Short() {
		puts = 10 * keys
	}
	for range puts {
		at := r.IntN(len(v) - 1000)
		check(t, db.Put(fmt.Appendf(nil, "key%05d", r.IntN(keys)), v[at:at+1000]))
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		runs := db.Stats().Runs
		_, bytes := logs(t, dir)
		if runs <= 10 && bytes <= 40<<20 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d runs, and %d bytes on the disk", runs, bytes)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		before := failed.Load()
		time.Sleep(2500 * time.Millisecond) // the compactor does not wait longer after an error
		if after := failed.Load(); after == before {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d merges failed while nobody wrote", after-before)
		}
	}
	if err := db.Compact(t.Context(), cairn.Range{}); !errors.Is(err, cairn.ErrCorrupt) {
		t.Errorf("Compact: %v", err)
	}
	if err := db.Close(); err != nil && !errors.Is(err, cairn.ErrCorrupt) {
		t.Error(err)
	}
}

// TestDamageGoesWithClose is the same where Close merges what is in memory with the tables.
func TestDamageGoesWithClose(t *testing.T) {
	dir := t.TempDir()
	db := damagedStore(t, dir, 1000, new(atomic.Int64))
	check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{}) }))
	for k := range 500 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", k), noise(1000)))
	}
	check(t, db.Close())
	db = openAt(t, dir, nil)
	wantEntries(t, db, 500)
	_, err := db.Verify(t.Context())
	check(t, err)
}

// TestDamageGoesWithARangeDelete: a merge does not read a table of which a range delete hides everything. So what is
// damaged can be got rid of.
func TestDamageGoesWithARangeDelete(t *testing.T) {
	db := damagedStore(t, t.TempDir(), 1000, new(atomic.Int64))
	everything := cairn.Range{Low: b("key00000"), High: b("key01000")}
	if _, err := db.Verify(t.Context()); !errors.Is(err, cairn.ErrCorrupt) {
		t.Fatalf("the damage is not where it should be: %v", err)
	}
	check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(everything) }))
	put(t, db, "key00500", "new")
	tx, err := db.Begin(false)
	check(t, err)
	defer tx.Rollback()
	check(t, db.Compact(t.Context(), cairn.Range{}))
	check(t, tx.Rollback())
	check(t, db.Compact(t.Context(), cairn.Range{}))
	wantEntries(t, db, 1)
	wantValue(t, db, "key00500", "new")
	_, err = db.Verify(t.Context())
	check(t, err)
}
