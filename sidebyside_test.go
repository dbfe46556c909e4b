package cairn_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// TestMergedSideBySide: a store of several memtables is merged by all processors, each from one key to
// another, when it rests and when it is closed. Nothing is lost, or seen by a snapshot that should
// not, where they meet: versions, deletes and range deletes that begin in one part and end in another.
func TestMergedSideBySide(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			db := openAt(t, dir, &cairn.Options{Durability: cairn.Relaxed})
			model := map[string]byte{}
			key := func() string { return fmt.Sprintf("%04d", r.IntN(6000)) }
			size := 3000 + r.IntN(4000)
			change := func(n int) {
				for range n {
					switch k := key(); r.IntN(300) {
					case 0:
						high := key()
						check(t, deleteRange(db, k, high))
						maps.DeleteFunc(model, func(m string, _ byte) bool { return k <= m && m < high })
					case 1, 2, 3, 4, 5:
						check(t, db.Delete([]byte(k)))
						delete(model, k)
					default:
						model[k] = byte(r.Uint32())
						check(t, db.Put([]byte(k), bytes.Repeat([]byte{model[k], 7}, size/2)))
					}
				}
			}
			change(5000)
			tx, err := db.Begin(false)
			check(t, err)
			t.Cleanup(func() { tx.Rollback() })
			then := maps.Clone(model)
			change(2000)
			if seed%2 == 0 {
				for until := time.Now().Add(20 * time.Second); db.Stats().CompactionDebt > 0; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(until) {
						t.Fatal("the store does not rest")
					}
				}
				sameValues(t, db.View, model)
			}
			sameValues(t, func(do func(tx *cairn.Tx) error) error { return do(tx) }, then)
			tx.Rollback()
			check(t, db.Close())
			db = openAt(t, dir, nil)
			sameValues(t, db.View, model)
			_, err = db.Verify(t.Context())
			check(t, err)
		})
	}
}

func deleteRange(db *cairn.DB, low, high string) error {
	batch := cairn.NewBatch()
	batch.DeleteRange(cairn.Range{Low: []byte(low), High: []byte(high)})
	return db.Write(batch)
}

// sameValues compares a scan, both ways of reading, with a model.
func sameValues(t *testing.T, view func(func(tx *cairn.Tx) error) error, model map[string]byte) {
	t.Helper()
	check(t, view(func(tx *cairn.Tx) error {
		var keys []string
		for k, v := range tx.Scan(cairn.Range{}) {
			keys = append(keys, string(k))
			if want, ok := model[string(k)]; !ok || v[0] != want {
				t.Errorf("key %s is there with %d, want %d, %v", k, v[0], want, ok)
			}
			if got, err := tx.Get(k); err != nil || got[0] != v[0] {
				t.Errorf("key %s: %v", k, err)
			}
		}
		if !slices.Equal(keys, slices.Sorted(maps.Keys(model))) {
			t.Errorf("%d keys, want %d", len(keys), len(model))
		}
		return nil
	}))
}
