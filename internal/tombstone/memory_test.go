package tombstone

import (
	"fmt"
	"runtime"
	"testing"
)

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemory: a list says what it takes, whatever its form, to within a tenth.
func TestMemory(t *testing.T) {
	const n = 20_000
	var apart, chained, stacked []Tombstone
	for i := range n {
		low, mid, high := fmt.Appendf(nil, "%08d", 4*i), fmt.Appendf(nil, "%08d", 4*i+2), fmt.Appendf(nil, "%08d", 4*i+6)
		apart = append(apart, Tombstone{low, mid, uint64(i + 1)})
		chained = append(chained, Tombstone{low, high, uint64(i + 1)})
		stacked = append(stacked, Tombstone{[]byte("a"), []byte("b"), uint64(i + 1)})
	}
	deep := nested(n)
	for name, build := range map[string]func() *List{
		"apart":   func() *List { return Build(apart) },
		"chained": func() *List { return Build(chained) },
		"stacked": func() *List { return Build(stacked) },
		"nested":  func() *List { return Build(deep) },
	} {
		before := heapInUse()
		l := build()
		took, says := heapInUse()-before, l.Memory()
		t.Logf("%s: %d bytes, %d for each; it says %d", name, took, took/n, says)
		if says < took*9/10 || says > took*11/10 {
			t.Errorf("%s takes %d bytes and says %d", name, took, says)
		}
		runtime.KeepAlive(l)
	}
	runtime.KeepAlive([][]Tombstone{apart, chained, stacked, deep})
	if (*List)(nil).Memory() != 0 {
		t.Error("the empty list takes memory")
	}
}
