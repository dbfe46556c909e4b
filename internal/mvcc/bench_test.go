package mvcc

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// BenchmarkAddKey reads that many keys in a transaction of its own.
func BenchmarkAddKey(b *testing.B) {
	for _, n := range []int{1, 4, 16, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys, hashes := make([][]byte, n), make([]uint64, n)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "\x00key%013d", i*7919)
				hashes[i] = base.Hash(keys[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				var set ReadSet
				for i, k := range keys {
					set.AddKey(k, hashes[i])
				}
			}
		})
	}
}

// BenchmarkAddRange makes that many scans in a transaction of its own.
func BenchmarkAddRange(b *testing.B) {
	for _, n := range []int{1, 4, 16, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lows, highs := make([][]byte, n), make([][]byte, n)
			for i := range lows {
				lows[i] = fmt.Appendf(nil, "\x00key%013d", i*7919)
				highs[i] = append(fmt.Appendf(nil, "\x00key%013d", i*7919+9), 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				var set ReadSet
				for i := range lows {
					set.AddRange(lows[i], highs[i])
				}
			}
		})
	}
}
