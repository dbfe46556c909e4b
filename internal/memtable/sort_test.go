package memtable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// filled makes a table of puts of the given keys, in their order.
func filled(keys [][]byte) *Table {
	t := NewGrowing(1)
	var buf []byte
	for _, k := range keys {
		buf = frame.AppendEntry(buf, base.KindPut, k, nil)
	}
	t.SetBuffer(buf)
	for at := 0; at < len(buf); {
		e, n := frame.DecodeEntry(buf[at:])
		t.Insert(at, e, base.Hash(e.Key))
		at += n
	}
	return t
}

// keysOf makes n keys of one shape.
var keysOf = map[string]func(r *rand.Rand, i, n int) []byte{
	"in order":        func(_ *rand.Rand, i, _ int) []byte { return fmt.Appendf(nil, "key%09d", i) },
	"backwards":       func(_ *rand.Rand, i, n int) []byte { return fmt.Appendf(nil, "key%09d", n-i) },
	"shuffled":        func(r *rand.Rand, _, n int) []byte { return fmt.Appendf(nil, "key%09d", r.IntN(4*n)) },
	"random bytes":    func(r *rand.Rand, _, _ int) []byte { return fmt.Appendf(nil, "%08x", r.Uint64()) },
	"few, often":      func(r *rand.Rand, _, _ int) []byte { return fmt.Appendf(nil, "hot%d", r.IntN(3)) },
	"one":             func(*rand.Rand, int, int) []byte { return []byte("the same") },
	"long, same head": func(r *rand.Rand, _, n int) []byte { return fmt.Appendf(nil, "a%013d%d", r.IntN(9), r.IntN(n)) },
	"short":           func(r *rand.Rand, _, _ int) []byte { return bytes.Repeat([]byte{byte(r.IntN(3))}, 1+r.IntN(12)) },
	"prefixes":        func(r *rand.Rand, _, _ int) []byte { return []byte("aaaaaaaaaaaaaaaaaaaa")[:1+r.IntN(20)] },
}

// Whatever the keys look like, the order is that of sorting by comparisons.
func TestSortChunk(t *testing.T) {
	for shape, make := range keysOf {
		for _, n := range []int{0, 1, 2, fewKeys - 1, fewKeys, fewKeys + 1, 5000} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			keys := [][]byte{}
			for i := range n {
				keys = append(keys, make(r, i, n))
			}
			table := filled(keys)
			for from := range min(n+1, 3) {
				want := []uint32{}
				for rec := from; rec < n; rec++ {
					want = append(want, uint32(rec))
				}
				slices.SortFunc(want, table.compare)
				if got := table.sortChunk(from, n); !slices.Equal(got, want) {
					t.Fatalf("%s, records %d to %d: %v, want %v", shape, from, n, got[:min(len(got), 50)], want[:min(len(want), 50)])
				}
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	for _, shape := range []string{"in order", "shuffled", "random bytes"} {
		for _, n := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/n=%d", shape, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				keys := [][]byte{}
				for i := range n {
					keys = append(keys, keysOf[shape](r, i, n))
				}
				table := filled(keys)
				for b.Loop() {
					table.sortChunk(0, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
			})
		}
	}
}
