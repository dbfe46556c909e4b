package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
)

const (
	// maxFenceBytes bounds the fences of a table together, and so the memory of a reader.
	maxFenceBytes = 16 << 20
	// indexPageBytes is the raw size from which an index page is ended.
	indexPageBytes = 16 << 10

	flagContinues = 1 // the block's first key is the last of the block before
)

// indexEntry describes one block to the index.
type indexEntry struct {
	fence      []byte
	continues  bool
	rows       int
	keyPage    int // bytes on disk
	keyForm    int // bytes in memory
	valueHeap  int
	valuePages []int // bytes on disk of each
}

// valuePageCount returns how many pages a value heap is cut into.
func valuePageCount(heap int) int { return (heap + block.MaxPageBytes - 1) / block.MaxPageBytes }

// indexWriter gathers the raw index pages; they are sealed when it is known
// where in the file they stand.
type indexWriter struct {
	pages      [][]byte
	prev       []byte // the fence before
	bytes      int    // of all pages
	fenceBytes int
	blocks     int
}

func (w *indexWriter) add(e *indexEntry) {
	if n := len(w.pages); n == 0 || len(w.pages[n-1]) >= indexPageBytes {
		w.pages, w.prev = append(w.pages, nil), w.prev[:0]
	}
	at := len(w.pages) - 1
	before := len(w.pages[at])
	w.pages[at] = appendIndexEntry(w.pages[at], e, block.CommonPrefix(w.prev, e.fence))
	w.prev = append(w.prev[:0], e.fence...)
	w.bytes += len(w.pages[at]) - before
	w.fenceBytes += len(e.fence)
	w.blocks++
}

func appendIndexEntry(dst []byte, e *indexEntry, shared int) []byte {
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(e.fence)-shared))
	dst = append(dst, e.fence[shared:]...)
	flags := byte(0)
	if e.continues {
		flags |= flagContinues
	}
	dst = append(dst, flags)
	for _, n := range []int{e.rows, e.keyPage, e.keyForm, e.valueHeap} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, n := range e.valuePages {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// decodeIndexEntry reads one entry. Sizes are within their limits; the fence is
// prev's first bytes and a suffix, assembled in buf, which may not be prev.
func decodeIndexEntry(d *decoder, e *indexEntry, prev, buf []byte) {
	shared := d.size(0, len(prev))
	e.fence = append(append(buf[:0], prev[:shared]...), d.bytes(uint64(d.size(0, base.MaxKeyBytes-shared)))...)
	flags := d.byte()
	e.continues = flags&flagContinues != 0
	e.rows = d.size(1, block.MaxRows)
	e.keyPage = d.size(block.OverheadBytes+1, block.MaxStoredBytes)
	e.keyForm = d.size(1, block.MaxPageBytes)
	e.valueHeap = d.size(0, base.MaxValueBytes)
	if flags&^flagContinues != 0 || e.rows > 1 && e.valueHeap > block.MaxPageBytes {
		d.fail()
	}
	e.valuePages = e.valuePages[:0]
	for i := 0; i < valuePageCount(e.valueHeap) && !d.bad; i++ {
		e.valuePages = append(e.valuePages, d.size(block.OverheadBytes+1, block.MaxStoredBytes))
	}
}

// blockEntry is what a reader keeps of a block beside its fence.
type blockEntry struct {
	off       int64  // of the key page; value pages follow it
	keyPage   uint32 // bytes on disk
	keyForm   uint32 // bytes in memory
	valuePage uint32 // bytes on disk; of a jumbo block, where in jumbo its sizes begin
	valueHeap uint32
	rows      uint16
	continues bool
}

// jumbo reports whether the block is one row whose value takes several pages.
func (e *blockEntry) jumbo() bool { return e.valueHeap > block.MaxPageBytes }

func (e *blockEntry) valueOff() int64 { return e.off + int64(e.keyPage) }

// blockIndex finds blocks. Its arrays hold no pointers.
type blockIndex struct {
	entries []blockEntry
	jumbo   []uint32 // sizes on disk of the value pages of jumbo blocks
	prefix  []byte   // what all fences but the first begin with
	norms   []uint64 // of each fence, the prefix cut off; the first is 0
	ends    []uint32 // ends of the fences in heap
	heap    []byte   // the fences, the prefix cut off
	rows    uint64
	end     int64 // offset behind the last block
	blocks  int   // how many there are to be
}

// memory returns the bytes the index and the slots of its blocks take.
func (x *blockIndex) memory() int64 {
	const entryBytes, slotBytes = 32, 16
	return int64(len(x.entries))*(entryBytes+2*slotBytes+8+4) + int64(4*len(x.jumbo)+len(x.heap)+len(x.prefix))
}

// newSlots returns the cache slots of all blocks: of block i the key page has
// slot 2i and the value page slot 2i+1.
func (x *blockIndex) newSlots() []cache.Slot { return make([]cache.Slot, 2*len(x.entries)) }

// newBlockIndex makes an index for so many blocks. Memory for many is taken when they are
// there: the footer's word is not enough.
func newBlockIndex(blocks int) *blockIndex {
	few := min(blocks, 64<<10)
	return &blockIndex{
		blocks:  blocks,
		entries: make([]blockEntry, 0, few),
		ends:    make([]uint32, 0, few),
		end:     base.FileHeaderBytes,
	}
}

var errIndex = errors.New("index does not parse or contradicts itself")

// addPage adds the blocks of a raw index page; limit is where blocks end.
// Until finish the fences are whole.
func (x *blockIndex) addPage(raw []byte, limit int64) error {
	var e indexEntry
	var prev, buf []byte
	x.heap = slices.Grow(x.heap, len(raw))
	for d := (decoder{b: raw}); len(d.b) > 0; {
		decodeIndexEntry(&d, &e, prev, buf)
		if d.bad {
			return errIndex
		}
		if err := x.add(&e, limit); err != nil {
			return err
		}
		prev, buf = e.fence, prev
	}
	return nil
}

func (x *blockIndex) add(e *indexEntry, limit int64) error {
	n := len(x.entries)
	if n == x.blocks {
		return fmt.Errorf("%w: more blocks than the footer counts", errIndex)
	}
	if n == 0 && (len(e.fence) > 0 || e.continues) || n > 0 && !fenceFollows(x.fence(n-1), e) {
		return fmt.Errorf("%w: fences of blocks %d and %d are not in order", errIndex, n-1, n)
	}
	if len(x.heap)+len(e.fence) > maxFenceBytes {
		return fmt.Errorf("%w: fences take more than %d bytes", errIndex, maxFenceBytes)
	}
	b := blockEntry{off: x.end, keyPage: uint32(e.keyPage), keyForm: uint32(e.keyForm),
		valueHeap: uint32(e.valueHeap), rows: uint16(e.rows), continues: e.continues}
	x.end += int64(e.keyPage)
	for _, size := range e.valuePages {
		b.valuePage = uint32(size)
		x.end += int64(size)
	}
	if b.jumbo() {
		b.valuePage = uint32(len(x.jumbo))
		for _, size := range e.valuePages {
			x.jumbo = append(x.jumbo, uint32(size))
		}
	}
	if x.end > limit {
		return fmt.Errorf("%w: block %d ends behind the blocks", errIndex, n)
	}
	x.rows += uint64(e.rows)
	x.entries = append(x.entries, b)
	x.heap = append(x.heap, e.fence...)
	x.ends = append(x.ends, uint32(len(x.heap)))
	return nil
}

// fenceFollows reports whether e's fence may stand behind prev.
func fenceFollows(prev []byte, e *indexEntry) bool {
	c := bytes.Compare(prev, e.fence)
	return c < 0 || c == 0 && e.continues
}

// finish checks the sums against the footer and makes the index searchable.
func (x *blockIndex) finish(f *footer) error {
	if uint64(len(x.entries)) != f.blocks || x.rows != f.rows || x.end != f.tombOff() {
		return fmt.Errorf("%w: %d blocks, %d rows, up to %d; the footer says %d, %d, %d",
			errIndex, len(x.entries), x.rows, x.end, f.blocks, f.rows, f.tombOff())
	}
	x.cutPrefix()
	x.norms = make([]uint64, len(x.entries))
	for i := range x.norms {
		x.norms[i] = block.Norm(x.fence(i))
	}
	x.heap, x.jumbo = slices.Clip(x.heap), slices.Clip(x.jumbo)
	return nil
}

// cutPrefix takes what the fences have in common off the front of each.
func (x *blockIndex) cutPrefix() {
	n := len(x.entries)
	if n < 2 {
		return
	}
	x.prefix = bytes.Clone(x.fence(1)[:block.CommonPrefix(x.fence(1), x.fence(n-1))])
	heap := x.heap
	if len(x.prefix) > 0 {
		heap = make([]byte, 0, len(x.heap)-(n-1)*len(x.prefix))
	} else {
		heap = heap[:0]
	}
	start := x.ends[0]
	for i := 1; i < n; i++ {
		fence := x.heap[int(start)+len(x.prefix) : x.ends[i]]
		start = x.ends[i]
		heap = append(heap, fence...)
		x.ends[i] = uint32(len(heap))
	}
	x.heap = heap
}

// fence returns the fence of block i, the prefix cut off.
func (x *blockIndex) fence(i int) []byte {
	if i == 0 {
		return x.heap[:x.ends[0]]
	}
	return x.heap[x.ends[i-1]:x.ends[i]]
}

// find returns the block that holds the newest row of key, if there is one; of
// another key the block in which it would stand. There must be a block.
func (x *blockIndex) find(key []byte) int {
	n := len(x.entries)
	if c := bytes.Compare(key[:min(len(key), len(x.prefix))], x.prefix); c < 0 {
		return 0
	} else if c > 0 {
		return n - 1
	}
	rest := key[len(x.prefix):]
	norm := block.Norm(rest)
	low, high := 1, n // the first fence greater than key is in [low, high]
	for low < high {
		mid := int(uint(low+high) / 2)
		if m := x.norms[mid]; m < norm || m == norm && bytes.Compare(x.fence(mid), rest) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	b := low - 1
	for b > 0 && x.entries[b].continues && bytes.Equal(x.fence(b), rest) {
		b--
	}
	return b
}
