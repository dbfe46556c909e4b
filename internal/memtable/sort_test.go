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

// Whoever looks at the order after every few inserts finds few chunks, whose records are
// all that there are, in order.
func TestFewChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	keys := [][]byte{}
	for i := range 30_000 {
		keys = append(keys, keysOf["shuffled"](r, i, 30_000))
	}
	table := filled(keys)
	for n := 0; n < len(keys); n = min(n+1+r.IntN(20), len(keys)) {
		table.Truncate(n)
		chunks := table.ordered().sorted
		sum := 0
		for i, c := range chunks {
			if sum += len(c.recs); i > 0 && (len(chunks[i-1].recs) <= fewRecords || chunkGrowth*len(c.recs) >= len(chunks[i-1].recs)) {
				t.Fatalf("%d records: chunk %d has %d, the one before %d", n, i, len(c.recs), len(chunks[i-1].recs))
			}
		}
		if sum != n || len(chunks) > 6 {
			t.Fatalf("%d records in %d chunks, want %d", sum, len(chunks), n)
		}
	}
	for _, c := range table.ordered().sorted {
		if !slices.IsSortedFunc(c.recs, table.compare) {
			t.Error("a chunk is not sorted")
		}
	}
}

// Fences never change what a search finds, and shorten it unless all keys look alike to
// them.
func TestFences(t *testing.T) {
	const n = 3 * fewRecords
	for shape, make := range keysOf {
		r := rand.New(rand.NewPCG(3, 3))
		keys := [][]byte{}
		for i := range n {
			keys = append(keys, make(r, i, n))
		}
		table := filled(keys)
		table.Sort()
		fenced := table.order.now.Load().sorted[0]
		if fenced.fences == nil {
			t.Fatalf("%s: no fences for %d records", shape, n)
		}
		bare := chunk{recs: fenced.recs}
		looked, most := 0, 0
		check := func(key []byte) {
			t.Helper()
			low, high := fenced.between(key)
			looked, most = looked+high-low, most+n
			if got, want := (&Iter{t: table, c: &fenced}).lowerBound(key), (&Iter{t: table, c: &bare}).lowerBound(key); got != want {
				t.Fatalf("%s: %x is before record %d, want %d, between %d and %d", shape, key, got, want, low, high)
			}
		}
		for range 3000 {
			key := slices.Clone(keys[r.IntN(n)])
			check(key)
			check(append(key, 0))
			check(key[:r.IntN(len(key)+1)])
			if len(key) > 0 {
				key[r.IntN(len(key))] += byte(1 + r.IntN(255))
				check(key)
			}
		}
		for _, key := range []string{"", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
			check([]byte(key))
		}
		t.Logf("%s: searches among %.1f %% of the records", shape, 100*float64(looked)/float64(most))
		if shape == "shuffled" && looked > most/50 {
			t.Errorf("%s: searches among %d of %d records", shape, looked, most)
		}
	}
}

// What a table with copies of keys, none, or room for some answers is the same.
func TestCopiesOfKeys(t *testing.T) {
	long := bytes.Repeat([]byte{'v'}, nearValue)
	entries := []frame.Entry{
		{Kind: base.KindPut, Key: []byte("b"), Value: long},
		{Kind: base.KindPut, Key: []byte("a"), Value: long[1:]}, // near enough
		{Kind: base.KindDelete, Key: []byte("c")},
		{Kind: base.KindPut, Key: bytes.Repeat([]byte{'d'}, maxCopied+1), Value: long}, // too long
		{Kind: base.KindRangeDelete, Key: []byte("a"), Value: long},
		{Kind: base.KindPut, Key: bytes.Repeat([]byte{'e'}, maxCopied), Value: long},
		{Kind: base.KindPut, Key: []byte("f"), Value: long}, // no room left
	}
	var buf []byte
	for _, e := range entries {
		buf = frame.AppendEntry(buf, e.Kind, e.Key, e.Value)
	}
	n := len(entries)
	table := New(buf, make([]byte, Layout(n)+2+1+2+1+2+maxCopied), n)
	for at := 0; at < len(buf); {
		e, length := frame.DecodeEntry(buf[at:])
		table.Insert(at, e, base.Hash(e.Key))
		at += length
	}
	var copied []int
	for i, e := range entries {
		if table.copy[i] != 0 {
			copied = append(copied, i)
		}
		if kind, key := table.key(uint32(i)); kind != e.Kind || !bytes.Equal(key, e.Key) {
			t.Errorf("record %d: %v %.10q, want %v %.10q", i, kind, key, e.Kind, e.Key)
		}
	}
	if !slices.Equal(copied, []int{0, 2, 5}) {
		t.Errorf("copied are %v", copied)
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
