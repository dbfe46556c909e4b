//go:build cgo && (native || (native_leveldb && native_tokyocabinet))

package engine

import (
	"math/rand/v2"
	"testing"
)

// The hash database had its default of 131,071 buckets whatever the number of keys.
func TestTokyoHashHasBucketsForItsKeys(t *testing.T) {
	d, err := Find("tokyo-hash")
	check(t, err)
	for keys, want := range map[int]int64{0: tokyoLeast, 1000: tokyoLeast, 200_000: 400_000} {
		s := openTest(t, d, Options{Keys: keys})
		if got := s.(*tokyoHash).hash.Buckets(); got < want || got > want+want/10 { // it takes the next prime number
			t.Errorf("%d keys: %d buckets, want %d", keys, got, want)
		}
	}
}

func TestLevelDBAtRest(t *testing.T) {
	const below = "--- level 0 ---\n 9:4000000['a' @ 1 : 1 .. 'b\\x0a' @ 2 : 1]\n 8:4000000['a' .. 'b']\n 7:4000000['a' .. 'b']\n" +
		"--- level 1 ---\n 1:9000000['a' .. 'b']\n--- level 2 ---\n 2:104857599['a' .. 'b']\n--- level 3 ---\n--- level 4 ---\n--- level 5 ---\n--- level 6 ---\n"
	for list, want := range map[string]bool{
		below: true,
		"--- level 0 ---\n--- level 1 ---\n 1:10485760['a' .. 'b']\n":                                     false,
		"--- level 0 ---\n--- level 1 ---\n--- level 2 ---\n 2:104857599['a' .. 'b']\n 3:1['a' .. 'b']\n": false,
		"--- level 0 ---\n 1:1['a' .. 'b']\n 2:1['a' .. 'b']\n 3:1['a' .. 'b']\n 4:1['a' .. 'b']\n":       false,
		"--- level 0 ---\n--- level 5 ---\n--- level 6 ---\n 3:9999999999999['a' .. 'b']\n":               true,
	} {
		if got, err := leveldbAtRest(list); got != want || err != nil {
			t.Errorf("%v, %v, want %v:\n%s", got, err, want, list)
		}
	}
	for _, list := range []string{"", "no such property", " 1:2['a' .. 'b']\n", "--- level 0 ---\n1 2\n"} {
		if _, err := leveldbAtRest(list); err == nil {
			t.Errorf("%q is read", list)
		}
	}
}

// Reads used to be measured while LevelDB still compacted what had been loaded.
func TestLevelDBSettles(t *testing.T) {
	d, err := Find("leveldb")
	check(t, err)
	s := openTest(t, d, Options{}).(*leveldbStore)
	value, random := make([]byte, 500), rand.NewChaCha8([32]byte{1}) // nothing that could be compressed
	for range 60 {
		_, err := s.PutBatch(func(yield func(key, value []byte) bool) {
			for range 2000 {
				random.Read(value)
				if !yield(value[:16], value) {
					return
				}
			}
		})
		check(t, err)
	}
	_, err = s.Settle()
	check(t, err)
	if rest, err := leveldbAtRest(s.db.PropertyValue("leveldb.sstables")); !rest || err != nil {
		t.Errorf("%v, %v: %s", rest, err, s.db.PropertyValue("leveldb.stats"))
	}
}
