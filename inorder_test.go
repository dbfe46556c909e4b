package cairn_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn"
)

// TestInOrder: what is put in the order of its keys into a store several times larger than Memory, some of it overwritten
// and deleted meanwhile, is what every snapshot of it holds, through flushes, merges and reopenings.
func TestInOrder(t *testing.T) {
	r, dir, opts := rand.New(rand.NewPCG(17, 4)), t.TempDir(), &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed}
	db, err := cairn.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	want, next := map[string][]byte{}, 0
	check := func(tx *cairn.Tx, want map[string][]byte) {
		t.Helper()
		keys, i := slices.Sorted(maps.Keys(want)), 0
		for k, v := range tx.Scan(cairn.Range{}) {
			if i == len(keys) || string(k) != keys[i] || !bytes.Equal(v, want[keys[i]]) {
				t.Fatalf("row %d of %d is %q, %.20q", i, len(keys), k, v)
			}
			i++
		}
		if err := tx.Err(); err != nil || i != len(keys) {
			t.Fatalf("%d rows of %d, %v", i, len(keys), err)
		}
		for range 200 {
			k := keys[r.IntN(len(keys))]
			if v, err := tx.Get([]byte(k)); err != nil || !bytes.Equal(v, want[k]) {
				t.Fatalf("get %q: %.20q, %v", k, v, err)
			}
		}
	}
	rounds := 12
	if testing.Short() {
		rounds = 9
	}
	for round := range rounds {
		old := maps.Clone(want)
		held, err := db.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			b := new(cairn.Batch)
			put := func(key []byte) {
				v := bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, r.IntN(300))
				want[string(key)] = v
				b.Put(key, v)
			}
			for range 80 {
				put(fmt.Appendf(nil, "key %08d", next))
				next += 1 + r.IntN(3)
			}
			switch round % 4 {
			case 1: // a row here and there
				put(fmt.Appendf(nil, "key %08d", r.IntN(next)))
			case 2:
				k := fmt.Sprintf("key %08d", r.IntN(next))
				delete(want, k)
				b.Delete([]byte(k))
			case 3:
				low := r.IntN(next)
				from, to := fmt.Sprintf("key %08d", low), fmt.Sprintf("key %08d", low+r.IntN(50)+1)
				maps.DeleteFunc(want, func(k string, _ []byte) bool { return from <= k && k < to })
				b.DeleteRange(cairn.Range{Low: []byte(from), High: []byte(to)})
			}
			if err := db.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if len(old) > 0 {
			check(held, old)
		}
		held.Rollback()
		if round%3 == 2 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if db, err = cairn.Open(dir, opts); err != nil {
				t.Fatal(err)
			}
		}
		if round%5 == 4 {
			if err := db.Compact(context.Background(), cairn.Range{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.View(func(tx *cairn.Tx) error { check(tx, want); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if s := db.Stats(); s.RawBytes < 4*s.MemoryLimit {
		t.Errorf("%d bytes with %d of memory: the test tests little", s.RawBytes, s.MemoryLimit)
	}
	if _, err := db.Verify(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestInOrderFewTables: what is put in the order of its keys is flushed to tables of their own, which little memory makes
// small. There are not many of them also while the store is written to, since each takes a descriptor.
func TestInOrderFewTables(t *testing.T) {
	db := openAt(t, t.TempDir(), &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed, Compression: cairn.Fast})
	r, value := rand.NewChaCha8([32]byte{}), make([]byte, 1000)
	for i := range 20_000 {
		r.Read(value)
		check(t, db.Put(fmt.Appendf(nil, "%08d", i), value))
	}
	if s := db.Stats(); s.Tables > int(s.DiskBytes>>23)+128 {
		t.Errorf("%d bytes in %d tables", s.DiskBytes, s.Tables)
	}
}
