package lifetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// Loads worth a look with -cpuprofile: what they measure for publication is in
// the benchmark laboratory.

func openRelaxed(b *testing.B) *cairn.DB {
	db, err := cairn.Open(b.TempDir(), &cairn.Options{Durability: cairn.Relaxed})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// BenchmarkWholeSetBatch commits 100,000 pairs of 1.5 KB as one batch.
func BenchmarkWholeSetBatch(b *testing.B) {
	const n = 100_000
	value := make([]byte, 0, 1600)
	batch := cairn.NewBatch()
	var key []byte
	for id := range uint32(n) {
		for value = value[:0]; len(value) < 1500; {
			value = appendValue(value, id, uint32(len(value)))
		}
		key = appendKey(key[:0], id)
		batch.Put(key, value[:1500])
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		db := openRelaxed(b)
		b.StartTimer()
		if err := db.Write(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
}

// BenchmarkSinglePuts is one relaxed commit a put, random keys, 256 B.
func BenchmarkSinglePuts(b *testing.B) {
	db := openRelaxed(b)
	r := rand.New(rand.NewPCG(1, 1))
	var key, value []byte
	b.ReportAllocs()
	for range b.N {
		id := r.Uint32()
		key, value = appendKey(key[:0], id), append(appendValue(value[:0], id, 1), make([]byte, 256-valueBytes)...)
		if err := db.Put(key, value); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetsInView reads a million pairs of 100 B in random order in one View.
func BenchmarkGetsInView(b *testing.B) {
	const n = 1_000_000
	db := openRelaxed(b)
	batch := cairn.NewBatch()
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	var key, value []byte
	for i, id := range order {
		key, value = appendKey(key[:0], uint32(id)), appendValue(value[:0], uint32(id), 1)
		if batch.Put(key, value); batch.Len() == 1000 || i == n-1 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	for db.Stats().CompactionDebt > 0 {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	s := db.Stats()
	b.Logf("%d runs, %d tables, indexes %d, pages %d", s.Runs, s.Tables, s.PointIndexes, s.Pages)
	b.ResetTimer()
	b.ReportAllocs()
	err := db.View(func(tx *cairn.Tx) error {
		for i := range b.N {
			key = appendKey(key[:0], uint32(order[i%n]))
			if _, err := tx.Get(key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("heap copies %d", db.Stats().HeapCopies)
}
