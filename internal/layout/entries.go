package layout

import (
	"encoding/binary"
	"errors"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

const (
	// MaxFenceBytes bounds the fences of a table together, and so the memory of a reader.
	MaxFenceBytes = 16 << 20
	// PageBytes is the raw size from which a page of the index, or of range tombstones, is ended.
	PageBytes = 16 << 10

	flagContinues = 1 // the block's first key is the last of the block before
)

// Entry describes one block to the index.
type Entry struct {
	Fence      []byte
	Continues  bool
	Rows       int
	KeyPage    int // bytes on disk
	KeyForm    int // bytes in memory
	ValueHeap  int
	ValuePages []int // bytes on disk of each
}

// valuePages returns how many pages a value heap is cut into.
func valuePages(heap int) int { return (heap + block.MaxPageBytes - 1) / block.MaxPageBytes }

// IndexWriter gathers the raw index pages; they are sealed when it is known
// where in the file they stand.
type IndexWriter struct {
	Pages  [][]byte
	prev   []byte // the fence before
	Bytes  int    // of all pages
	Blocks int    // how many were added
}

// Add adds the entry of the next block.
func (w *IndexWriter) Add(e *Entry) {
	if n := len(w.Pages); n == 0 || len(w.Pages[n-1]) >= PageBytes {
		w.Pages, w.prev = append(w.Pages, nil), w.prev[:0]
	}
	at := len(w.Pages) - 1
	before := len(w.Pages[at])
	w.Pages[at] = appendEntry(w.Pages[at], e, block.CommonPrefix(w.prev, e.Fence))
	w.prev = append(w.prev[:0], e.Fence...)
	w.Bytes += len(w.Pages[at]) - before
	w.Blocks++
}

func appendEntry(dst []byte, e *Entry, shared int) []byte {
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(e.Fence)-shared))
	dst = append(dst, e.Fence[shared:]...)
	flags := byte(0)
	if e.Continues {
		flags |= flagContinues
	}
	dst = append(dst, flags)
	for _, n := range []int{e.Rows, e.KeyPage, e.KeyForm, e.ValueHeap} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, n := range e.ValuePages {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// decodeEntry reads one entry. Sizes are within their limits; the fence is
// prev's first bytes and a suffix, assembled in buf, which may not be prev.
func decodeEntry(d *decoder, e *Entry, prev, buf []byte) {
	shared := d.size(0, len(prev))
	e.Fence = append(append(buf[:0], prev[:shared]...), d.bytes(uint64(d.size(0, base.MaxKeyBytes-shared)))...)
	flags := d.byte()
	e.Continues = flags&flagContinues != 0
	e.Rows = d.size(1, block.MaxRows)
	e.KeyPage = d.size(block.OverheadBytes+1, block.MaxStoredBytes)
	e.KeyForm = d.size(1, block.MaxPageBytes)
	e.ValueHeap = d.size(0, base.MaxValueBytes)
	if flags&^flagContinues != 0 || e.Rows > 1 && e.ValueHeap > block.MaxPageBytes {
		d.fail()
	}
	e.ValuePages = e.ValuePages[:0]
	for i := 0; i < valuePages(e.ValueHeap) && !d.bad; i++ {
		e.ValuePages = append(e.ValuePages, d.size(block.OverheadBytes+1, block.MaxStoredBytes))
	}
}

// DecodeEntries calls fn for each entry of a raw index page, which holds until fn returns
// and is not to be changed.
func DecodeEntries(raw []byte, fn func(*Entry) error) error {
	var e Entry
	var prev, buf []byte
	for d := (decoder{b: raw}); len(d.b) > 0; {
		decodeEntry(&d, &e, prev, buf)
		if d.bad {
			return errIndex
		}
		if err := fn(&e); err != nil {
			return err
		}
		prev, buf = e.Fence, prev
	}
	return nil
}

var errIndex = errors.New("index does not parse or contradicts itself")
