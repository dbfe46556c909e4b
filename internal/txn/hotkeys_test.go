package txn

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestHotKeys: of keys with thousands of versions in memtables each snapshot sees its own, in walks in both directions
// that turn and jump.
func TestHotKeys(t *testing.T) {
	const keys, views = 7, 9
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		e := openEngine(t, newWatchedFS(), 64<<20)
		now := map[string]string{}
		type view struct {
			tx   *Tx
			want map[string]string
		}
		var open []view
		for step := range 6000 {
			if step%600 == 0 && len(open) < views {
				tx, err := Begin(e, len(open)%3 == 2)
				check(t, err)
				want := map[string]string{}
				for k, v := range now {
					want[k] = v
				}
				if tx.writable { // has versions of its own
					for range 100 {
						k, v := r.IntN(keys), fmt.Sprintf("own %d", r.IntN(1000))
						check(t, tx.Put(bytes.Clone(tx.Key(bucket, userKey(k))), []byte(v)))
						want[string(key(k))] = v
					}
				}
				open = append(open, view{tx, want})
			}
			k := r.IntN(keys)
			if r.IntN(3) > 0 {
				k = 3 // the hottest
			}
			if r.IntN(50) == 0 {
				check(t, Delete(e, bucket, userKey(k)))
				delete(now, string(key(k)))
			} else {
				v := fmt.Sprintf("%d of %d", step, k)
				check(t, Put(e, bucket, userKey(k), []byte(v)))
				now[string(key(k))] = v
			}
			if step%997 == 0 || step == 5999 {
				for _, v := range open {
					walkHot(t, r, v.tx, v.want)
				}
			}
		}
		for _, v := range open {
			v.tx.Rollback()
		}
		check(t, e.Close())
	}
}

// walkHot walks what a transaction sees, at random.
func walkHot(t *testing.T, r *rand.Rand, tx *Tx, want map[string]string) {
	t.Helper()
	var sorted []string
	for k := range want {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	it := tx.NewIter(bucket, base.PrefixEnd(bucket))
	defer it.Close()
	at := -1
	for range 60 {
		if at < 0 || at >= len(sorted) || r.IntN(6) == 0 {
			k := string(key(r.IntN(8)))
			n, _ := slices.BinarySearch(sorted, k)
			switch r.IntN(4) {
			case 0:
				at = 0
				it.First()
			case 1:
				at = len(sorted) - 1
				it.Last()
			case 2:
				at = n
				it.Seek([]byte(k))
			case 3:
				at = n - 1
				it.SeekLT([]byte(k))
			}
		} else if r.IntN(2) == 0 {
			at--
			it.Prev()
		} else {
			at++
			it.Next()
		}
		check(t, it.Err())
		if at < 0 || at >= len(sorted) {
			if it.valid {
				t.Fatalf("at %q behind the end", it.rows.Key())
			}
			continue
		}
		if !it.valid || string(it.rows.Key()) != sorted[at] {
			t.Fatalf("at %v, want %q", it.valid, sorted[at])
		}
		if r.IntN(3) == 0 {
			continue
		}
		v, err := it.Value()
		if check(t, err); string(v) != want[sorted[at]] {
			t.Fatalf("%q is %q, want %q", sorted[at], v, want[sorted[at]])
		}
	}
	for k, v := range want {
		if got, err := tx.Get([]byte(k)); err != nil || string(got) != v {
			t.Fatalf("%q is %q, %v, want %q", k, got, err, v)
		}
	}
}
