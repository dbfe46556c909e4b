package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// benchTable is a table of 200,000 rows of 16-byte keys and 100-byte values, all resident.
func benchTable(b *testing.B) (*room, *Reader, [][]byte) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, Codec: block.S2})
	r, val := rand.New(rand.NewPCG(1, 1)), make([]byte, 100)
	keys := make([][]byte, 200000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key%013d", i*7)
		for j := range val {
			val[j] = byte('a' + r.IntN(8))
		}
		if err := w.Add(keys[i], uint64(i), base.KindPut, val); err != nil {
			b.Fatal(err)
		}
	}
	meta, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	m := newRoom(b, 1<<30)
	rd := m.open(b, &memFile{b: f.b}, meta)
	it := rd.NewIter(m.slot, IterOptions{})
	for ok := it.First(); ok; ok = it.Next() {
		it.Value()
	}
	it.Close()
	return m, rd, keys
}

func BenchmarkGet(b *testing.B) {
	m, rd, keys := benchTable(b)
	run := func(b *testing.B) {
		i := 0
		for b.Loop() {
			key := keys[i%len(keys)]
			i += 7919
			m.slot.Enter()
			var row Row
			if ok, err := rd.Get(&row, key, base.Hash(key), everything); !ok || err != nil || row.Value[0] == 0 {
				b.Fatal("not found")
			}
			m.slot.Exit()
		}
	}
	b.Run("search", run)
	x, err := rd.BuildIndex(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	rd.AttachIndex(x)
	b.Run("index", run)
}

func BenchmarkScan(b *testing.B) {
	m, rd, keys := benchTable(b)
	for _, values := range []bool{false, true} {
		b.Run(fmt.Sprint("values=", values), func(b *testing.B) {
			sum := 0
			for b.Loop() {
				it := rd.NewIter(m.slot, IterOptions{})
				for ok := it.First(); ok; ok = it.Next() {
					sum += len(it.Key())
					if values {
						v, _ := it.Value()
						sum += len(v)
					}
				}
				it.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/row")
		})
	}
}

func BenchmarkSeek(b *testing.B) {
	m, rd, keys := benchTable(b)
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	i := 0
	for b.Loop() {
		if !it.SeekGE(keys[i%len(keys)]) {
			b.Fatal("not found")
		}
		i += 7919
	}
}

func BenchmarkWrite(b *testing.B) {
	c := counters(50000, 100)
	keys, vals := make([][]byte, len(c.rows)), make([][]byte, len(c.rows))
	for i, r := range c.rows {
		keys[i], vals[i] = []byte(r.key), []byte(r.val)
	}
	for _, codec := range codecs {
		b.Run(codec.String(), func(b *testing.B) {
			for b.Loop() {
				w := NewWriter(&memFile{}, WriterOptions{Codec: codec})
				for i := range keys {
					w.Add(keys[i], 1, base.KindPut, vals[i])
				}
				if _, err := w.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/row")
		})
	}
}

func BenchmarkColdScan(b *testing.B) {
	c := counters(50000, 100)
	for _, codec := range codecs {
		f, meta := c.write(b, WriterOptions{Codec: codec})
		m := newRoom(b, 1<<30)
		rd := m.open(b, f, meta)
		b.Run(codec.String(), func(b *testing.B) {
			for b.Loop() {
				it := rd.NewIter(m.slot, IterOptions{NoCache: true})
				for ok := it.First(); ok; ok = it.Next() {
					it.Value()
				}
				it.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(c.rows)), "ns/row")
		})
	}
}
