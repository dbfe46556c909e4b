//go:build cgo && (native || native_lmdb)

package engine

import (
	"fmt"
	"sync"
	"testing"
)

// smallLMDB makes new stores begin with 1 MiB of map.
func smallLMDB(t *testing.T) {
	before := lmdbMapBytes
	lmdbMapBytes = 1 << 20
	t.Cleanup(func() { lmdbMapBytes = before })
}

func TestLMDBGrowsAFullMap(t *testing.T) {
	smallLMDB(t)
	dir := t.TempDir()
	s, err := openLMDB(dir, Options{})
	check(t, err)
	_, err = s.(Batcher).PutBatch(func(yield func(k, v []byte) bool) {
		for i := range 4000 {
			if !yield(testKey(i), testValue(i)) {
				return
			}
		}
	})
	check(t, err)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				if err := s.Put(testKey(10_000+g*1000+i), testValue(10_000+g*1000+i)); err != nil {
					t.Error(err)
					return
				}
				if err := s.Get(testKey(i), func(v []byte) error { return same(testKey(i), v) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if size := s.(*lmdbStore).size; size < 8<<20 {
		t.Errorf("the map has %d bytes, so nothing grew", size)
	}
	check(t, s.Close())
	s, err = openLMDB(dir, Options{})
	check(t, err)
	n := 0
	check(t, s.(PairWalker).Pairs(func(k, v []byte) error { n++; return same(k, v) }))
	if n != 8000 {
		t.Errorf("%d pairs, want 8000", n)
	}
	check(t, s.Close())
}

// A reader in another process follows when the writer grows the map.
func TestLMDBReaderFollowsAGrownMap(t *testing.T) {
	smallLMDB(t)
	dir := t.TempDir()
	d, err := Find("lmdb")
	check(t, err)
	w := startOther(t, d, dir, "off") // grows with the default's address space
	if got := w.do("put 0"); got != "put 0 <nil>" {
		t.Fatal(got)
	}
	r, err := openLMDB(dir, Options{ReadOnly: true})
	check(t, err)
	defer r.Close()
	for i := range 3000 {
		w.do(fmt.Sprint("put ", i))
		check(t, r.Get(testKey(i), func(v []byte) error { return same(testKey(i), v) }))
	}
}
