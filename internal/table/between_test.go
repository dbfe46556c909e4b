package table

import (
	"context"
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/layout"
)

// TestKeysLieBetweenFences: a block whose keys are not where the index, or the table's bounds, have them is damage to
// whoever reads it, in whatever way: walks and merges take it for granted that blocks are in order.
func TestKeysLieBetweenFences(t *testing.T) {
	c := counters(400, 10)
	for what, lie := range map[string]struct {
		block int // that does not fit
		tell  func(w *Writer, firsts []int)
	}{
		"fence behind the first key":                {3, func(w *Writer, firsts []int) { changeFence(t, w, 3, c.rows[firsts[3]+1].key) }},
		"fence at the last key of the block before": {2, func(w *Writer, firsts []int) { changeFence(t, w, 3, c.rows[firsts[3]-1].key) }},
		"continues, falsely":                        {2, func(w *Writer, firsts []int) { changeEntry(t, w, 3, func(e *layout.Entry) { e.Continues = true }) }},
		"smallest behind the first key":             {0, func(w *Writer, firsts []int) { w.meta.Smallest = []byte(c.rows[1].key) }},
		"largest before the last key":               {-1, func(w *Writer, firsts []int) { w.last = []byte(c.rows[len(c.rows)-2].key) }},
	} {
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, BlockBytes: 1024})
		c.addTo(t, w)
		if err := errors.Join(w.seal(), w.emit(0)); err != nil {
			t.Fatal(err)
		}
		lie.tell(w, firstRows(t, w))
		meta, err := w.Finish()
		if err != nil {
			t.Fatal(what, err)
		}
		rd := newRoom(t, 1<<30)
		read := func(how string, read func(r *Reader) error) {
			t.Helper()
			r := rd.open(t, &memFile{b: f.b}, meta)
			err := read(r)
			mustBeCorruption(t, what+", "+how, err)
			var found *base.CorruptionError
			errors.As(err, &found)
			if b := (lie.block + r.Blocks()) % r.Blocks(); found.Offset != r.index.Blocks[b].Off {
				t.Errorf("%s, %s: %v, want it to be at %d", what, how, err, r.index.Blocks[b].Off)
			}
		}
		for how, opts := range map[string]IterOptions{"": {}, ", past the cache": {NoCache: true}} {
			read("forward"+how, func(r *Reader) error {
				it := r.NewIter(rd.slot, opts)
				defer it.Close()
				for ok := it.First(); ok; ok = it.Next() {
				}
				return it.Err()
			})
			read("backward"+how, func(r *Reader) error {
				it := r.NewIter(rd.slot, opts)
				defer it.Close()
				for ok := it.Last(); ok; ok = it.Prev() {
				}
				return it.Err()
			})
		}
		read("gets", func(r *Reader) (err error) {
			for _, row := range c.rows {
				_, _, getErr := rd.get(r, row.key, everything)
				if err == nil {
					err = getErr
				}
			}
			return err
		})
		read("point index", func(r *Reader) error { return second(r.BuildIndex(context.Background())) })
		read("Verify", func(r *Reader) error { return second(r.Verify(context.Background(), nil)) })
	}
}

// firstRows returns which row each block begins with.
func firstRows(t *testing.T, w *Writer) (firsts []int) {
	t.Helper()
	rows := 0
	for _, raw := range w.index.Pages {
		err := layout.DecodeEntries(raw, func(e *layout.Entry) error {
			firsts = append(firsts, rows)
			rows += e.Rows
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return firsts
}

func changeFence(t *testing.T, w *Writer, n int, fence string) {
	changeEntry(t, w, n, func(e *layout.Entry) { e.Fence = []byte(fence) })
}
