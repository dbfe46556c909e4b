//go:build !race

package table

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// A table takes the memory that the one before has left. Not with the race detector, whose
// pools forget some of what they get.
func TestWriterRecyclesMemory(t *testing.T) {
	const rows = 20000
	var keys [rows][]byte
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%06d", i)
	}
	value := make([]byte, 50)
	f := &memFile{b: make([]byte, 0, 4<<20)}
	fill := func() {
		f.b, f.closed = f.b[:0], false
		w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, Codec: block.S2})
		for _, key := range keys {
			if err := w.Add(key, 1, base.KindPut, value); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n > 20 {
		t.Errorf("%v allocations for a table", n)
	}
}
