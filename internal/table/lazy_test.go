package table

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// Opened lazily, a table of many blocks is opened by reading its ends, whatever its index
// says; who needs the index gets its error each time, until it can be read.
func TestLazyIndex(t *testing.T) {
	c := counters(30_000, 20)
	f, meta := c.write(t, WriterOptions{Codec: block.S2, BlockBytes: 1024})
	m := newRoom(t, 1<<30)
	whole := m.open(t, &memFile{b: f.b}, meta)
	at := whole.footer.IndexOff() + whole.footer.IndexBytes/2
	broken := bytes.Clone(f.b)
	broken[at] ^= 0x10
	file := &memFile{b: broken}
	rd, err := OpenLazily(file, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		t.Fatalf("the index was read: %v", err)
	}
	defer rd.Close()
	if file.reads > 2 || file.maxRead > tailBytes {
		t.Errorf("%d reads of up to %d bytes", file.reads, file.maxRead)
	}
	if rd.Blocks() != whole.Blocks() || rd.MetaBytes() >= whole.MetaBytes()/10 {
		t.Errorf("%d blocks, want %d; %d bytes of memory without the index, %d with it", rd.Blocks(), whole.Blocks(), rd.MetaBytes(), whole.MetaBytes())
	}
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	first := c.rows[0].key
	for range 2 {
		_, _, err := m.get(rd, first, everything)
		mustBeCorruption(t, "get", err)
		if _, err := rd.Codec(); err != nil {
			t.Errorf("the codec needs the index: %v", err)
		}
		_, err = rd.BuildIndex(context.Background())
		mustBeCorruption(t, "index", err)
		mustBeCorruption(t, "verify", second(rd.Verify(context.Background(), nil)))
	}
	for what, move := range map[string]func(*Iter) bool{
		"First": (*Iter).First, "Last": (*Iter).Last,
		"SeekGE": func(it *Iter) bool { return it.SeekGE([]byte(first)) }, "SeekLT": func(it *Iter) bool { return it.SeekLT([]byte("z")) },
	} {
		it := rd.NewIter(m.slot, IterOptions{})
		if move(it) || it.Valid() {
			t.Errorf("%s stands somewhere", what)
		}
		mustBeCorruption(t, what, it.Err())
		it.Close()
	}
	file.mu.Lock()
	file.b[at] ^= 0x10
	file.mu.Unlock()
	if got, ok, err := m.get(rd, first, everything); err != nil || !ok || got.key != first {
		t.Errorf("%v, %v, %v when the index can be read", got, ok, err)
	}
	if rd.MetaBytes() != whole.MetaBytes() {
		t.Errorf("%d bytes of memory with the index, want %d", rd.MetaBytes(), whole.MetaBytes())
	}
}

// The index is read once, however many need it at the same time.
func TestLazyIndexOfManyReaders(t *testing.T) {
	c := counters(3000, 20)
	f, meta := c.write(t, WriterOptions{Codec: block.S2, BlockBytes: 1024})
	m := newRoom(t, 1<<30)
	file := &memFile{b: f.b}
	rd, err := OpenLazily(file, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			slot := m.dom.Register()
			defer slot.Release()
			want := c.rows[g*300]
			slot.Enter()
			defer slot.Exit()
			var got Row
			ok, err := rd.Get(&got, []byte(want.key), base.Hash([]byte(want.key)), everything)
			if err != nil || !ok || string(got.Value) != want.val {
				t.Errorf("%q: %v, %v, %v", want.key, got, ok, err)
			}
		})
	}
	all.Wait()
	if n := rd.index.Bytes(); rd.MetaBytes() < n || rd.MetaBytes() >= 2*n {
		t.Errorf("%d bytes counted for an index of %d", rd.MetaBytes(), n)
	}
}

// TestCodec: how a table is compressed can be asked without its index.
func TestCodec(t *testing.T) {
	for _, codec := range []block.Codec{block.None, block.S2, block.Zstd} {
		f, meta := manyBlocks().write(t, WriterOptions{Codec: codec})
		m := newRoom(t, 1<<30)
		rd, err := OpenLazily(&memFile{b: f.b}, meta, storeID, "7.sst", m.cache, m.budget)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rd.Codec(); got != codec || err != nil || rd.index != nil {
			t.Errorf("%v, %v, index read %v, want %v", got, err, rd.index != nil, codec)
		}
		rd.Close()
	}
}

// An empty table, one of range deletes only, needs no index to say so.
func TestLazyWithoutBlocks(t *testing.T) {
	c := &content{tombs: []tomb{{"a", "m", 7}}}
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	file := &memFile{b: f.b}
	rd, err := OpenLazily(file, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	file.fail, file.failAt = errors.New("read"), 1
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	if _, ok, err := m.get(rd, "b", everything); ok || err != nil || it.First() || it.Last() || it.SeekGE([]byte("b")) || it.Err() != nil {
		t.Errorf("%v, %v, %v", ok, err, it.Err())
	}
	if rd.Tombstones().Cover([]byte("b"), everything) != 7 {
		t.Error("the range delete is not there")
	}
}
