package iterator_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
)

// TestCommonBeginnings: keys of a merge are compared behind what they have in common, which
// shrinks and grows on the way. Keys end within it, or shortly behind, and are followed by
// the same with zeros.
func TestCommonBeginnings(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 200)
	var entries []iterator.Entry
	seq := uint64(1)
	for _, begin := range [][]byte{nil, []byte("a"), []byte("key00000000"), []byte("key1"), long[:63], long[:64], long[:65], long} {
		for i := range 100 {
			key := fmt.Appendf(bytes.Clone(begin), "%0*d", i%12, i/3)
			for range 1 + i%3 {
				entries = append(entries, iterator.Entry{Key: key, Seq: seq, Kind: base.KindPut, Value: key})
				seq++
			}
			if i%4 == 0 {
				entries = append(entries, iterator.Entry{Key: append(bytes.Clone(key), make([]byte, 1+i%20)...), Seq: seq, Kind: base.KindPut})
				seq++
			}
		}
	}
	iterator.Sort(entries)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		itertest.RunOn(t, r, entries, func(e []iterator.Entry) base.Iterator {
			var sources []base.Iterator
			for _, part := range scatter(r, e, 2+r.IntN(6)) {
				sources = append(sources, itertest.Invalidating(iterator.NewSliceIter(part)))
			}
			return itertest.Invalidating(iterator.NewMerging(sources...))
		})
	}
}
