package table

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestMetaBytes: what a Reader counts as metadata is what it takes of the heap, with
// range tombstones of all shapes and with bounds as long as they may be, also once
// the table has got its sequence.
func TestMetaBytes(t *testing.T) {
	const n = 5_000
	long := func(i int) string {
		return fmt.Sprintf("%08d", i) + string(bytes.Repeat([]byte{'x'}, base.MaxKeyBytes-100))
	}
	deep, apart, wide := content{}, content{}, content{}
	for i := range n {
		deep.tombs = append(deep.tombs, tomb{fmt.Sprintf("%08d", i), fmt.Sprintf("%08d", 3*n-i), uint64(i + 1)})
		apart.tombs = append(apart.tombs, tomb{fmt.Sprintf("%08d", 2*i), fmt.Sprintf("%08d", 2*i+1), uint64(i + 1)})
	}
	for i := range 40 {
		wide.tombs = append(wide.tombs, tomb{long(2 * i), long(2*i + 1), uint64(i + 1)})
	}
	for name, c := range map[string]*content{"deep": &deep, "apart": &apart, "wide": &wide} {
		t.Run(name, func(t *testing.T) {
			f, meta := c.write(t, WriterOptions{})
			c.tombs = nil
			m := newRoom(t, 1<<30)
			before := heapInUse()
			meta.Smallest, meta.Largest = bytes.Clone(meta.Smallest), bytes.Clone(meta.Largest)
			rd := m.open(t, f, meta)
			compareMeta(t, rd, heapInUse()-before)
			rd.Resequence(77)
			if name != "deep" { // of which one range is left
				compareMeta(t, rd, heapInUse()-before)
			}
			if m.budget.Used() != rd.MetaBytes() {
				t.Errorf("%d bytes are counted, %d said", m.budget.Used(), rd.MetaBytes())
			}
			runtime.KeepAlive(meta)
		})
	}
}

func compareMeta(t *testing.T, rd *Reader, took int64) {
	t.Helper()
	t.Logf("%d bytes, it says %d", took, rd.MetaBytes())
	if says := rd.MetaBytes(); says < took*8/10-8192 || says > took*12/10 {
		t.Errorf("it takes %d bytes and says %d", took, says)
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
