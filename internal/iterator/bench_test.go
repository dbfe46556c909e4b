package iterator_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
)

const benchRows = 100_000

func benchParts(k int, random bool) [][]iterator.Entry {
	r := rand.New(rand.NewPCG(1, 1))
	parts := make([][]iterator.Entry, k)
	for i := range benchRows {
		at := 0
		if random {
			at = r.IntN(k)
		} else if r.IntN(100) == 0 {
			at = r.IntN(k)
		}
		parts[at] = append(parts[at], put(fmt.Sprintf("\x00key%09d", i), uint64(i+1)))
	}
	return parts
}

// stepped is a slice whose keys are known to be distinct, as most tables' are.
type stepped struct{ *iterator.SliceIter }

func (s stepped) NextKey() bool { return s.Next() }

func BenchmarkSource(b *testing.B) {
	it := base.Iterator(iterator.NewSliceIter(benchParts(1, true)[0]))
	for b.Loop() {
		for ok := it.First(); ok; ok = it.Next() {
			_ = it.Key()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func benchVisible(b *testing.B, sources []iterator.Source, walk func(v *iterator.Visible)) {
	v := iterator.New(sources, base.Visibility{Snapshot: base.MaxSeq}, []byte{0}, []byte{1})
	b.ReportAllocs()
	for b.Loop() {
		walk(v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkPlain(b *testing.B) {
	sources := []iterator.Source{{It: iterator.NewSliceIter(benchParts(1, true)[0]), Plain: true}}
	b.Run("forward", func(b *testing.B) { benchVisible(b, sources, forward) })
	b.Run("backward", func(b *testing.B) { benchVisible(b, sources, backward) })
	b.Run("backward-values", func(b *testing.B) { benchVisible(b, sources, backwardValues) })
}

func forward(v *iterator.Visible) {
	for ok := v.First(); ok; ok = v.Next() {
		_ = v.Key()
	}
}

func backward(v *iterator.Visible) {
	for ok := v.Last(); ok; ok = v.Prev() {
		_ = v.Key()
	}
}

func backwardValues(v *iterator.Visible) {
	for ok := v.Last(); ok; ok = v.Prev() {
		_, _ = v.Value()
	}
}

func BenchmarkVisible(b *testing.B) {
	for _, k := range []int{1, 4, 8} {
		for _, random := range []bool{false, true} {
			var sources []iterator.Source
			for _, p := range benchParts(k, random) {
				sources = append(sources, iterator.Source{It: iterator.NewSliceIter(p)})
			}
			if k == 1 && random {
				sources[0].It = stepped{sources[0].It.(*iterator.SliceIter)}
			}
			name := fmt.Sprintf("k=%d/random=%v/", k, random)
			b.Run(name+"forward", func(b *testing.B) { benchVisible(b, sources, forward) })
			b.Run(name+"backward", func(b *testing.B) { benchVisible(b, sources, backward) })
			b.Run(name+"backward-values", func(b *testing.B) { benchVisible(b, sources, backwardValues) })
		}
	}
}
