package table

import (
	"bytes"
	"sync"
	"testing"

	"github.com/cairndb/cairn/internal/block"
)

// Writers that take each other's memory, at once and after failures, write what one alone does.
func TestWritersShareMemory(t *testing.T) {
	c := manyBlocks()
	opts := WriterOptions{Codec: block.S2, Helpers: 2}
	want, _ := c.write(t, opts)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for failAt := range 4 {
				f := &memFile{failAt: failAt + 1}
				w := NewWriter(f, opts)
				for _, r := range c.rows[i:] {
					if w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)) != nil {
						break
					}
				}
				w.Abandon()
				if got, _ := c.write(t, opts); !bytes.Equal(got.b, want.b) {
					t.Error("another table")
				}
			}
		})
	}
	all.Wait()
}
