package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/cairndb/cairn"
)

// keyCalls are all calls that take a key.
var keyCalls = map[string]func(db *cairn.DB, key []byte) error{
	"Get":    func(db *cairn.DB, key []byte) error { _, err := db.Get(key); return err },
	"GetTo":  func(db *cairn.DB, key []byte) error { _, err := db.GetTo(key, nil); return err },
	"Has":    func(db *cairn.DB, key []byte) error { _, err := db.Has(key); return err },
	"Put":    func(db *cairn.DB, key []byte) error { return db.Put(key, b("v")) },
	"Delete": func(db *cairn.DB, key []byte) error { return db.Delete(key) },
	"Tx.Get": inTx(func(tx *cairn.Tx, key []byte) error { _, err := tx.Get(key); return err }),
	"Tx.Has": inTx(func(tx *cairn.Tx, key []byte) error { _, err := tx.Has(key); return err }),
	"Tx.Put": inTx(func(tx *cairn.Tx, key []byte) error { return tx.Put(key, b("v")) }),
	"Tx.PutIfAbsent": inTx(func(tx *cairn.Tx, key []byte) error {
		_, err := tx.PutIfAbsent(key, b("v"))
		return err
	}),
	"Tx.CompareAndSwap": inTx(func(tx *cairn.Tx, key []byte) error {
		_, err := tx.CompareAndSwap(key, b("v"), b("w"))
		return err
	}),
	"Tx.Delete": inTx(func(tx *cairn.Tx, key []byte) error { return tx.Delete(key) }),
}

func inTx(call func(tx *cairn.Tx, key []byte) error) func(db *cairn.DB, key []byte) error {
	return func(db *cairn.DB, key []byte) error {
		return db.Update(func(tx *cairn.Tx) error {
			err := call(tx, key)
			refused := errors.Is(err, cairn.ErrEmptyKey) || errors.Is(err, cairn.ErrKeyTooLarge)
			if refused && tx.Err() != nil {
				return fmt.Errorf("a refused argument has spoilt the transaction: %v", tx.Err())
			}
			return err
		})
	}
}

func TestKeyLimits(t *testing.T) {
	db := openNew(t, nil)
	for name, call := range keyCalls {
		for _, c := range []struct {
			key  []byte
			want error
		}{
			{nil, cairn.ErrEmptyKey}, {[]byte{}, cairn.ErrEmptyKey},
			{make([]byte, cairn.MaxKeyBytes+1), cairn.ErrKeyTooLarge},
			{make([]byte, 2<<20), cairn.ErrKeyTooLarge},
			{[]byte{0}, nil},
			{bytes.Repeat([]byte{0xFF}, cairn.MaxKeyBytes-1), nil},
			{bytes.Repeat([]byte{0xFF}, cairn.MaxKeyBytes), nil},
		} {
			err := call(db, c.key)
			if !errors.Is(err, c.want) && (c.want != nil || !errors.Is(err, cairn.ErrNotFound)) {
				t.Errorf("%s of a key of %d bytes: %v, want %v", name, len(c.key), err, c.want)
			}
		}
	}
}

// TestKeysAtTheLimit are as good as any other, wherever they are.
func TestKeysAtTheLimit(t *testing.T) {
	long := func(last byte) []byte {
		return append(bytes.Repeat(b("k"), cairn.MaxKeyBytes-1), last)
	}
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		for c := byte(0); c < 20; c++ {
			check(t, db.Put(long(c), []byte{c}))
		}
		check(t, db.Update(func(tx *cairn.Tx) error {
			return tx.DeleteRange(cairn.Range{Low: long(5), High: long(9)})
		}))
	}, func(t *testing.T, db *cairn.DB) {
		check(t, db.View(func(tx *cairn.Tx) error {
			if n := len(keysOf(tx, cairn.Range{})); n != 16 {
				t.Errorf("%d keys", n)
			}
			v, err := tx.Get(long(9))
			if !bytes.Equal(v, []byte{9}) {
				t.Errorf("%v", v)
			}
			if ok, _ := tx.Has(long(8)); ok {
				t.Error("a deleted key is there")
			}
			return err
		}))
	})
}

// TestValueTooLarge: a value over the limit is refused before anything is copied.
func TestValueTooLarge(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "old")
	seq := db.Stats().Seq
	value := make([]byte, cairn.MaxValueBytes+1) // never touched, so never resident
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	expect(t, db.Put(b("a"), value), cairn.ErrValueTooLarge)
	batch := cairn.NewBatch()
	batch.Put(b("a"), value)
	expect(t, db.Write(batch), cairn.ErrValueTooLarge)
	check(t, db.Update(func(tx *cairn.Tx) error {
		expect(t, tx.Put(b("a"), value), cairn.ErrValueTooLarge)
		_, err := tx.PutIfAbsent(b("b"), value)
		expect(t, err, cairn.ErrValueTooLarge)
		_, err = tx.CompareAndSwap(b("a"), b("old"), value)
		expect(t, err, cairn.ErrValueTooLarge)
		return nil
	}))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes allocated on the way to a refusal", n)
	}
	wantValue(t, db, "a", "old")
	wantValue(t, db, "b", "")
	if s := db.Stats().Seq; s != seq {
		t.Errorf("sequence %d, was %d", s, seq)
	}
}

// TestLargeValues: values of any size up to the limit; beyond 64 MiB on demand.
func TestLargeValues(t *testing.T) {
	sizes := []int{0, 1, 4095, 4096, 65 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 9 << 20, 17 << 20}
	if n := count("CAIRN_VALUE_BYTES", 0); n > 0 {
		sizes = append(sizes, n-1, n)
	}
	opts := &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed}
	dir := t.TempDir()
	db := openAt(t, dir, opts)
	name := func(n int) []byte { return fmt.Appendf(nil, "%010d", n) }
	value := make([]byte, sizes[len(sizes)-1])
	for i := 0; i+8 <= len(value); i += 8 {
		binary.LittleEndian.PutUint64(value[i:], uint64(i)*0x9E3779B97F4A7C15)
	}
	for _, n := range sizes {
		check(t, db.Put(name(n), value[:n]))
	}
	for range 2 {
		for _, n := range sizes {
			if v, err := db.Get(name(n)); err != nil || !bytes.Equal(v, value[:n]) {
				t.Fatalf("value of %d bytes: %d bytes, %v", n, len(v), err)
			}
		}
		check(t, db.View(func(tx *cairn.Tx) error {
			i := 0
			for k, v := range tx.Scan(cairn.Range{}) {
				if n := sizes[i]; !bytes.Equal(k, name(n)) || !bytes.Equal(v, value[:n]) {
					t.Fatalf("row %q of %d bytes", k, len(v))
				}
				i++
			}
			return nil
		}))
		check(t, db.Compact(t.Context(), cairn.Range{}))
		check(t, db.Close())
		db = openAt(t, dir, opts)
	}
}
