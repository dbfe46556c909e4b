package cairn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn"
)

// BenchmarkQueue is a transaction that puts at the end of a queue of 1,000, reads its first key and deletes it.
func BenchmarkQueue(b *testing.B) {
	db := openBench(b, &cairn.Options{Durability: cairn.Relaxed})
	key := func(n int) []byte { return fmt.Appendf(nil, "queue/%012d", n) }
	value := make([]byte, 200)
	tail := 0
	for ; tail < 1000; tail++ {
		if err := db.Put(key(tail), value); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for head := 0; b.Loop(); head, tail = head+1, tail+1 {
		err := db.Update(func(tx *cairn.Tx) error {
			if err := tx.Put(key(tail), value); err != nil {
				return err
			}
			it := tx.Iter(cairn.Range{Low: []byte("queue/"), High: []byte("queue0")})
			defer it.Close()
			if !it.First() || !bytes.Equal(it.Key(), key(head)) {
				return fmt.Errorf("number %d comes first, not %q: %w", head, it.Key(), it.Err())
			}
			if _, err := it.Value(); err != nil {
				return err
			}
			return tx.Delete(bytes.Clone(it.Key()))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeries reads the last ten points of one of 100 series; each has 2,000, and gets one more for 1,000 reads.
func BenchmarkSeries(b *testing.B) {
	db := openBench(b, &cairn.Options{Durability: cairn.Relaxed})
	point := func(series, at int) []byte { return fmt.Appendf(nil, "s%04d/%012d", series, at) }
	value, at := make([]byte, 16), 0
	write := func() {
		batch := cairn.NewBatch()
		for series := range 100 {
			batch.Put(point(series, at), value)
		}
		if err := db.Write(batch); err != nil {
			b.Fatal(err)
		}
		at++
	}
	for range 2000 {
		write()
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%1000 == 999 {
			write()
		}
		series := n * 7 % 100
		if err := walk(db, point(series, 0), point(series+1, 0), true, 10); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWalk walks 10 or 1,000 rows from anywhere, forward and back: of memtables, until scans have had them merged, or of
// tables of which a tenth was written again since.
func BenchmarkWalk(b *testing.B) {
	for _, rows := range []int{10, 1000} {
		for _, tables := range []bool{false, true} {
			for _, back := range []bool{false, true} {
				b.Run(fmt.Sprintf("rows=%d/tables=%v/back=%v", rows, tables, back), func(b *testing.B) { benchWalk(b, rows, tables, back) })
			}
		}
	}
}

func benchWalk(b *testing.B, rows int, tables, back bool) {
	const n = 100_000
	db := openBench(b, &cairn.Options{Durability: cairn.Relaxed})
	r := rand.New(rand.NewPCG(1, 2))
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%012d", i) }
	batch, value := cairn.NewBatch(), make([]byte, 100)
	write := func(i int) {
		if batch.Put(key(i), value); batch.Len() == 100 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	for _, i := range r.Perm(n) {
		write(i)
	}
	if tables {
		if err := db.Compact(context.Background(), cairn.Range{}); err != nil {
			b.Fatal(err)
		}
		for range n / 10 {
			write(r.IntN(n))
		}
	}
	for b.Loop() {
		from := r.IntN(n - rows)
		if err := walk(db, key(from), key(from+rows), back, rows); err != nil {
			b.Fatal(err)
		}
	}
}

// walk reads so many rows of [low, high) with their values, the first ones or, backward, the last.
func walk(db *cairn.DB, low, high []byte, back bool, rows int) error {
	return db.View(func(tx *cairn.Tx) error {
		it := tx.Iter(cairn.Range{Low: low, High: high})
		defer it.Close()
		begin, move := it.First, it.Next
		if back {
			begin, move = it.Last, it.Prev
		}
		n := 0
		for ok := begin(); ok && n < rows; ok = move() {
			if _, err := it.Value(); err != nil {
				return err
			}
			n++
		}
		if n != rows {
			return errors.Join(fmt.Errorf("%d rows, want %d", n, rows), it.Err())
		}
		return nil
	})
}
