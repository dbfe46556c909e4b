package cairn_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn"
)

// text fills b with bytes that compress about as well as records do.
func text(b []byte, seed uint64) []byte {
	const words = "the quick brown fox jumps over a lazy dog while 0123456789 records were being written to storage "
	r := rand.New(rand.NewPCG(seed, 7))
	for i := 0; i < len(b); {
		at := r.IntN(len(words) - 8)
		i += copy(b[i:], words[at:at+3+r.IntN(5)])
	}
	return b
}

func openBench(b *testing.B, opts *cairn.Options) *cairn.DB {
	db, err := cairn.Open(b.TempDir(), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// BenchmarkPut is one commit per put, keys in random order.
func BenchmarkPut(b *testing.B) {
	for _, d := range []struct {
		name string
		d    cairn.Durability
	}{{"relaxed", cairn.Relaxed}, {"durable", cairn.Durable}} {
		for _, size := range []int{64, 256, 4096} {
			b.Run(fmt.Sprintf("%s/%d", d.name, size), func(b *testing.B) {
				db := openBench(b, &cairn.Options{Durability: d.d})
				value := text(make([]byte, size), 1)
				var number [8]byte
				key := make([]byte, 16)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for i := range b.N {
					binary.BigEndian.PutUint64(number[:], uint64(i)*0x9E3779B97F4A7C15)
					hex.Encode(key, number[:])
					if err := db.Put(key, value); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func loaded(b *testing.B, n, size int) *cairn.DB {
	db := openBench(b, &cairn.Options{Durability: cairn.Relaxed})
	batch := cairn.NewBatch()
	value := make([]byte, size)
	for i := range n {
		batch.Put(fmt.Appendf(nil, "key%013d", i), text(value, uint64(i)))
		if batch.Len() == 1000 || i == n-1 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	return db
}

// BenchmarkGet reads random keys of a store that fits in memory.
func BenchmarkGet(b *testing.B) {
	const n = 200_000
	db := loaded(b, n, 100)
	keys := make([][]byte, 1<<16)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key%013d", rand.IntN(n))
	}
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		db.View(func(tx *cairn.Tx) error {
			for i := range b.N {
				if _, err := tx.Get(keys[i&(1<<16-1)]); err != nil {
					b.Fatal(err)
				}
			}
			return nil
		})
	})
	b.Run("one-shot", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for i := range b.N {
			var err error
			if dst, err = db.GetTo(keys[i&(1<<16-1)], dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkScan walks everything; the time is per key.
func BenchmarkScan(b *testing.B) {
	db := loaded(b, 200_000, 100)
	for _, what := range []string{"keys", "pairs"} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for done := 0; done < b.N; {
				db.View(func(tx *cairn.Tx) error {
					if what == "keys" {
						for range tx.Keys(cairn.Range{}) {
							done++
						}
						return nil
					}
					for range tx.Scan(cairn.Range{}) {
						done++
					}
					return nil
				})
			}
		})
	}
}

// BenchmarkView is the beginning and end of a read transaction.
func BenchmarkView(b *testing.B) {
	db := openBench(b, nil)
	b.ReportAllocs()
	for range b.N {
		db.View(func(*cairn.Tx) error { return nil })
	}
}
