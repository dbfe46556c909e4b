package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/vfs"
)

// source reads a file's bytes and says where it failed.
type source struct {
	f    vfs.File
	name string
}

// readAt fills b from offset off. That the file ends before is corruption, any
// other failure an error of the file.
func (s source) readAt(b []byte, off int64) error {
	for len(b) > 0 {
		n, err := s.f.ReadAt(b, off)
		if n == len(b) {
			return nil
		}
		if n <= 0 && err == nil {
			err = io.ErrNoProgress
		}
		if errors.Is(err, io.EOF) {
			return base.Corruptf(s.name, off+int64(n), "file ends %d bytes early", len(b)-n)
		}
		if err != nil {
			return fmt.Errorf("cairn: read %s at offset %d: %w", s.name, off, err)
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// apart is the table's file, opened once more for gets while memory is scarce: the next one
// is of another block, so the system need not read what lies beside.
type apart struct {
	once sync.Once
	source
	own bool // the file is another one than the table's
}

// file returns the file to read a block's keys from, and what is read together with them.
func (r *Reader) file(why purpose) source {
	if why == walked || !r.cache.Scarce() {
		return r.src
	}
	r.apart.once.Do(func() {
		r.apart.source = r.src
		if f, ok := r.src.f.(vfs.Scatterer); ok {
			if again, err := f.Scattered(); err == nil { // without it, it is only slower
				r.apart.f, r.apart.own = again, true
			}
		}
	})
	return r.apart.source
}

// close closes the file, if it is another one than the table's.
func (a *apart) close() error {
	if !a.own {
		return nil
	}
	return a.f.Close()
}

// scratch is memory for reading one page: as stored, and decompressed.
type scratch struct{ stored, raw []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// done gives s back for others to use; nil is nothing.
func (s *scratch) done() {
	if s != nil {
		scratches.Put(s)
	}
}

func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// read reads size bytes at off into s.stored.
func (s *scratch) read(src source, off int64, size int) error {
	s.stored = resize(s.stored, size)
	return src.readAt(s.stored, off)
}

// readKeys reads the key page of block b and expands it into form.
func (r *Reader) readKeys(src source, b int, form []byte) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	e := &r.index.Blocks[b]
	if err := s.read(src, e.Off, int(e.KeyPage)); err != nil {
		return err
	}
	return r.expandKeys(s, b, form)
}

// expandKeys verifies the key page of block b, with which s.stored begins, and expands it
// into form. Whoever reads keys has them from here: that they are in order, from block to block, is taken for granted then.
func (r *Reader) expandKeys(s *scratch, b int, form []byte) error {
	e := &r.index.Blocks[b]
	p, err := r.id.ParsePage(s.stored[:e.KeyPage], block.PageKeys, e.Off)
	if err != nil {
		return err
	}
	raw, err := p.Raw(s.raw)
	if err != nil {
		return err
	}
	if p.Codec != block.None {
		s.raw = raw
	}
	if err := block.Expand(form, raw); err != nil {
		return base.Corruptf(r.name, e.Off, "%v", err)
	}
	k := block.View(form)
	if k.Rows() != int(e.Rows) || k.ValueBytes() != int(e.ValueHeap) {
		return base.Corruptf(r.name, e.Off, "key page has %d rows and %d bytes of values, the index says %d and %d",
			k.Rows(), k.ValueBytes(), e.Rows, e.ValueHeap)
	}
	first, last := k.Key(0), k.Key(k.Rows()-1)
	if !r.index.Holds(b, first, last) || bytes.Compare(first, r.meta.Smallest) < 0 || r.meta.EndsBefore(last) {
		return base.Corruptf(r.name, e.Off, "keys from %q to %q are not between the block's fences, or the table's bounds", first, last)
	}
	return nil
}

// readValues reads the value page of block b, which is not jumbo, into heap.
func (r *Reader) readValues(b int, heap []byte) error {
	e := &r.index.Blocks[b]
	return r.readValuePage(e.ValueOff(), int(e.ValuePage), heap)
}

func (r *Reader) readValuePage(off int64, size int, dst []byte) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if err := s.read(r.src, off, size); err != nil {
		return err
	}
	return r.decompress(s.stored, off, dst)
}

// decompress verifies a value page that stands at off and decompresses it into dst.
func (r *Reader) decompress(stored []byte, off int64, dst []byte) error {
	p, err := r.id.ParsePage(stored, block.PageValues, off)
	if err != nil {
		return err
	}
	if p.RawBytes != len(dst) {
		return base.Corruptf(r.name, off, "value page holds %d bytes, the index says %d", p.RawBytes, len(dst))
	}
	return p.Decompress(dst)
}

// eachJumboPage calls fn for the value pages of jumbo block b, in order: where a
// page stands, its size on disk and what part of the value it holds.
func (r *Reader) eachJumboPage(b int, fn func(off int64, size, from, to int) error) error {
	e := &r.index.Blocks[b]
	heap, off := int(e.ValueHeap), e.ValueOff()
	for i, size := range r.index.JumboPages(e) {
		from := i * block.MaxPageBytes
		if err := fn(off, int(size), from, min(heap, from+block.MaxPageBytes)); err != nil {
			return err
		}
		off += int64(size)
	}
	return nil
}

// believable returns how much of a value of heap bytes so many stored ones make believable.
func believable(heap int, stored int64) int { return int(min(int64(heap), 32*stored)) }

// readJumbo assembles the value of jumbo block b on the Go heap. Unless the bytes on disk make its size believable
// all pages are seen to hold what they say before memory is taken for it; it is taken once.
func (r *Reader) readJumbo(b int) ([]byte, error) {
	e := &r.index.Blocks[b]
	heap := int(e.ValueHeap)
	if believable(heap, r.index.End(b)-e.ValueOff()) < heap {
		page := make([]byte, block.MaxPageBytes)
		err := r.eachJumboPage(b, func(off int64, size, from, to int) error {
			return r.readValuePage(off, size, page[:to-from])
		})
		if err != nil {
			return nil, err
		}
	}
	value := make([]byte, heap)
	err := r.eachJumboPage(b, func(off int64, size, from, to int) error {
		return r.readValuePage(off, size, value[from:to])
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}
