package table

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// stored returns the blocks of a table as they are stored.
func stored(t *testing.T, n, valueBytes, blockBytes int) (out []*block.Stored) {
	c := counters(n, valueBytes)
	for i := range c.rows {
		c.rows[i].seq = 0
	}
	f, meta := c.write(t, WriterOptions{Codec: block.Zstd, BlockBytes: blockBytes})
	m := newRoom(t, 1<<20)
	m.cache.SetScarce(true)
	it := m.open(t, f, meta).NewIter(m.slot, IterOptions{NoCache: true})
	t.Cleanup(func() { it.Close() })
	for ok := it.First(); ok; ok = it.SkipBlock() {
		if _, _, ok := it.Whole(nil); !ok {
			t.Fatal("a block is not whole")
		}
		s := new(block.Stored)
		if err := it.Carry(s); err != nil {
			t.Fatal(err)
		}
		form := make([]byte, s.FormBytes) // the iterator's own memory is used for the next one
		if err := it.r.readKeys(it.r.src, it.b, form); err != nil {
			t.Fatal(err)
		}
		s.Keys = block.View(form)
		out = append(out, s)
	}
	return out
}

// TestTakesBlock: there are few small blocks, and none that is larger than it should be, or compressed otherwise.
func TestTakesBlock(t *testing.T) {
	const size = 8 << 10
	w := NewWriter(&memFile{}, WriterOptions{Codec: block.Zstd, BlockBytes: size})
	defer w.Abandon()
	for _, c := range []struct {
		raw   int
		codec block.Codec
		want  bool
	}{
		{size, block.Zstd, true}, {size, block.None, true}, {size, block.S2, false}, {size/2 - 1, block.Zstd, false},
		{size / 2, block.Zstd, true}, {2 * size, block.Zstd, true}, {2*size + 1, block.Zstd, false},
	} {
		if got := w.TakesBlock(c.raw, c.codec); got != c.want {
			t.Errorf("%d bytes, %v: %v", c.raw, c.codec, got)
		}
	}
	small := 0
	for i, b := range stored(t, 4000, 60, size) {
		if b.Keys.ValueBytes() < size/2 { // the last one
			break
		}
		if i%2 == 1 { // every other one comes with a row before it
			if err := w.Add(append(bytes.Clone(w.last), 0), 1, base.KindPut, nil); err != nil {
				t.Fatal(err)
			}
		}
		rows := w.keys.Rows()
		if !w.TakesBlock(size, block.Zstd) {
			w.keys.Reset() // as if the rows had been others
			continue
		}
		if rows > 0 {
			small++
		}
		if ok, err := w.AddBlock(b); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := w.pipeline.blocks; n < 12 || small == 0 || small > 1+n/smallEvery {
		t.Errorf("%d of %d blocks are small", small, n)
	}
}

// TestAddBlockOutOfOrder: a block whose keys do not come behind all others is refused, and the writer fails.
func TestAddBlockOutOfOrder(t *testing.T) {
	blocks := stored(t, 1000, 60, 8<<10)
	for _, again := range []int{0, 1} {
		w := NewWriter(&memFile{}, WriterOptions{Codec: block.Zstd, BlockBytes: 8 << 10})
		for _, b := range blocks[:2] {
			if ok, err := w.AddBlock(b); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if ok, err := w.AddBlock(blocks[again]); ok || !errors.Is(err, ErrOrder) {
			t.Errorf("block %d again: %v, %v", again, ok, err)
		}
		if _, err := w.Finish(); err == nil {
			t.Error("the writer goes on")
		}
		w.Abandon()
	}
	for codec, also := range map[block.Codec]block.Codec{block.None: block.None, block.S2: block.None} {
		w := NewWriter(&memFile{}, WriterOptions{Codec: codec, Also: also})
		if ok, err := w.AddBlock(blocks[0]); ok || err != nil {
			t.Errorf("zstd, into a table of %v: %v, %v", codec, ok, err)
		}
		w.Abandon()
	}
	w := NewWriter(&memFile{}, WriterOptions{Codec: block.S2, Also: block.Zstd})
	if ok, err := w.AddBlock(blocks[0]); !ok || err != nil {
		t.Errorf("zstd, which is taken too: %v, %v", ok, err)
	}
	w.Abandon()
	w = NewWriter(&memFile{}, WriterOptions{})
	if err := w.Add(fmt.Append(nil, "a"), 1, base.KindPut, nil); err != nil {
		t.Error(err)
	}
	w.Abandon()
}
