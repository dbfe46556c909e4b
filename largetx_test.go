package cairn_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn"
)

// TestLongKeysInOrder: the bounds of a table for each spill did not fit into the
// record of the commit.
func TestLongKeysInOrder(t *testing.T) {
	large(t)
	for _, noise := range []bool{false, true} { // else they compress to almost nothing
		opts := inMemory(&cairn.Options{Memory: 1 << 20})
		db := openAt(t, "/db", opts)
		name := func(i int) []byte {
			key := bytes.Repeat([]byte{'k'}, 65_535)
			if noise {
				rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(key)
			}
			copy(key, fmt.Sprintf("%04d", i))
			return key
		}
		check(t, db.Update(func(tx *cairn.Tx) error {
			for i := range 400 {
				check(t, tx.Put(name(i), nil))
			}
			return nil
		}))
		check(t, db.Close())
		db = openAt(t, "/db", opts)
		check(t, db.View(func(tx *cairn.Tx) error {
			n := 0
			for k := range tx.Keys(cairn.Range{}) {
				if !bytes.Equal(k, name(n)) {
					t.Fatalf("key %d is %.10q...%q", n, k, k[len(k)-5:])
				}
				n++
			}
			if n != 400 {
				t.Errorf("%d keys", n)
			}
			return nil
		}))
		_, err := db.Verify(t.Context())
		check(t, err)
	}
}

// TestLargeTransactionInOrder writes in the order of keys, with range deletes among
// and behind the writes, over what the store holds, and compares everything with a
// model: inside the transaction, after its commit, and after reopening.
func TestLargeTransactionInOrder(t *testing.T) {
	const n = 4000
	for name, order := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n - 1 - i },
		"outwards":   func(i int) int { return n/2 + (i/100%2*2-1)*i/2 },
		"repeatedly": func(i int) int { return i % 500 },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(testSeed(t), 11))
			opts := inMemory(&cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
			db := openAt(t, "/db", opts)
			key := func(i int) string { return fmt.Sprintf("key%06d", i) }
			m := newModel()
			for i := 0; i < n; i += 3 {
				put(t, db, key(i)+"x", "old")
				m.put(key(i)+"x", "old")
			}
			check(t, db.Update(func(tx *cairn.Tx) error {
				for i := range n {
					at := order(i)
					if r.IntN(50) == 0 {
						low, high := key(max(at-r.IntN(20), 0)), key(at+r.IntN(20)) // reaches into the spill before, or the next
						check(t, tx.DeleteRange(cairn.Range{Low: b(low), High: b(high)}))
						m.deleteRange(low, high)
					}
					v := fmt.Sprintf("%d%0*d", i, 500+r.IntN(500), 0)
					check(t, tx.Put(b(key(at)), b(v)))
					m.put(key(at), v)
					if i%1000 == 999 {
						m.check(t, tx)
					}
				}
				return nil
			}))
			for range 2 {
				check(t, db.View(func(tx *cairn.Tx) error { m.check(t, tx); return nil }))
				check(t, db.Close())
				db = openAt(t, "/db", opts)
			}
			_, err := db.Verify(t.Context())
			check(t, err)
		})
	}
}
