package engine

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Walks of Badger lend the values, as its gets do, and say so.
func TestBadgerWalksCopyNoValues(t *testing.T) {
	d, err := Find("badger")
	check(t, err)
	if !slices.ContainsFunc(d.Settings(Options{}), func(s Setting) bool { return strings.Contains(s.Option, "PrefetchValues = false") }) {
		t.Error("it is not said that values are not prefetched")
	}
	s, _ := fill(t, d, Options{}, 0)
	const n, size = 100, 64 << 10
	for i := range n {
		check(t, s.Put(testKey(i), bytes.Repeat([]byte{byte(i)}, size)))
	}
	for name, walk := range map[string]func(see func(key, value []byte) error) error{
		"pairs": s.(PairWalker).Pairs,
		"scan":  func(see func(key, value []byte) error) error { return s.(Scanner).Scan(testKey(0), n, see) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		seen := 0
		check(t, walk(func(key, value []byte) error {
			if !bytes.Equal(key, testKey(seen)) || len(value) != size || value[0] != byte(seen) || value[size-1] != byte(seen) {
				t.Errorf("%s: pair %d is another: %s", name, seen, key)
			}
			seen++
			return nil
		}))
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; seen != n || bytes > n*size/2 {
			t.Errorf("%s: %d pairs with %d bytes allocated, want %d and no copies of the values", name, seen, bytes, n)
		}
	}
}
