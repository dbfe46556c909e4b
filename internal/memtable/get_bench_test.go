package memtable

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// BenchmarkGet is a get of keys that are there, and of keys that are not, and a put of keys that are there, in one
// memtable that no cache holds.
func BenchmarkGet(b *testing.B) {
	for _, value := range []int{100, 1000} {
		n := (64 << 20) / (value + 20)
		r := rand.New(rand.NewPCG(3, 3))
		var buf []byte
		keys := make([][]byte, n)
		order := r.Perm(n)
		v := make([]byte, value)
		for i := range n {
			keys[i] = fmt.Appendf(nil, "%016x", uint64(i)*0x9E3779B97F4A7C15)
			buf = frame.AppendEntry(buf, base.KindPut, keys[i], v)
		}
		t := New(buf, make([]byte, Layout(n)+CopyBytes(n, len(buf))), n)
		t.SetBase(1)
		t.InsertAll(0, len(buf))
		vis := base.Visibility{Snapshot: math.MaxUint64 >> 8}
		b.Run(fmt.Sprintf("v=%d/present", value), func(b *testing.B) {
			sum, i := byte(0), 0
			var e frame.Entry
			for b.Loop() {
				key := keys[order[i%n]]
				i++
				if _, ok := t.Get(&e, key, base.Hash(key), vis); !ok {
					b.Fatal("a key is missing")
				}
				for j := 0; j < len(e.Value); j += 64 {
					sum += e.Value[j]
				}
			}
			_ = sum
		})
		b.Run(fmt.Sprintf("v=%d/absent", value), func(b *testing.B) {
			i := uint64(0)
			var e frame.Entry
			for b.Loop() {
				i++
				if _, ok := t.Get(&e, keys[0], i*0x9E3779B97F4A7C15, vis); ok {
					b.Fatal("a key is there")
				}
			}
		})
	}
}
