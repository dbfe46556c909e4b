package layout

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// Block is what a reader keeps of a block beside its fence.
type Block struct {
	Off       int64  // of the key page; value pages follow it
	KeyPage   uint32 // bytes on disk
	KeyForm   uint32 // bytes in memory
	ValuePage uint32 // bytes on disk; of a jumbo block, where in jumbo its sizes begin
	ValueHeap uint32
	Rows      uint16
	Continues bool
}

// Jumbo reports whether the block is one row whose value takes several pages.
func (e *Block) Jumbo() bool { return e.ValueHeap > block.MaxPageBytes }

// ValueOff is where the first value page stands.
func (e *Block) ValueOff() int64 { return e.Off + int64(e.KeyPage) }

// Index finds blocks. Its arrays hold no pointers.
type Index struct {
	Blocks []Block  // in their order; not to be changed
	jumbo  []uint32 // sizes on disk of the value pages of jumbo blocks
	prefix []byte   // what all fences but the first begin with
	norms  []uint64 // of each fence, the prefix cut off; the first is 0
	ends   []uint32 // ends of the fences in heap
	heap   []byte   // the fences, the prefix cut off
	rows   uint64
	end    int64 // offset behind the last block
	most   int   // how many there are to be
}

// Bytes returns what x takes of memory.
func (x *Index) Bytes() int64 {
	const blockBytes = 32
	return int64(len(x.Blocks))*(blockBytes+8+4) + int64(4*len(x.jumbo)+len(x.heap)+len(x.prefix))
}

// End returns the offset behind block i.
func (x *Index) End(i int) int64 {
	if i+1 < len(x.Blocks) {
		return x.Blocks[i+1].Off
	}
	return x.end
}

// JumboPages returns the sizes on disk of the value pages of a jumbo block.
func (x *Index) JumboPages(b *Block) []uint32 {
	return x.jumbo[b.ValuePage:][:valuePages(int(b.ValueHeap))]
}

// NewIndex makes an index for so many blocks. Memory for many is taken when they are
// there: the footer's word is not enough.
func NewIndex(blocks int) *Index {
	few := min(blocks, 64<<10)
	return &Index{
		most:   blocks,
		Blocks: make([]Block, 0, few),
		ends:   make([]uint32, 0, few),
		end:    base.FileHeaderBytes,
	}
}

// AddPage adds the blocks of a raw index page; limit is where blocks end.
// Before Finish the fences are whole.
func (x *Index) AddPage(raw []byte, limit int64) error {
	x.heap = slices.Grow(x.heap, len(raw))
	return DecodeEntries(raw, func(e *Entry) error { return x.add(e, limit) })
}

func (x *Index) add(e *Entry, limit int64) error {
	n := len(x.Blocks)
	if n == x.most {
		return fmt.Errorf("%w: more blocks than the footer counts", errIndex)
	}
	if n == 0 && (len(e.Fence) > 0 || e.Continues) || n > 0 && !fenceFollows(x.suffix(n-1), e) {
		return fmt.Errorf("%w: fences of blocks %d and %d are not in order", errIndex, n-1, n)
	}
	if len(x.heap)+len(e.Fence) > MaxFenceBytes {
		return fmt.Errorf("%w: fences take more than %d bytes", errIndex, MaxFenceBytes)
	}
	b := Block{Off: x.end, KeyPage: uint32(e.KeyPage), KeyForm: uint32(e.KeyForm),
		ValueHeap: uint32(e.ValueHeap), Rows: uint16(e.Rows), Continues: e.Continues}
	x.end += int64(e.KeyPage)
	for _, size := range e.ValuePages {
		b.ValuePage = uint32(size)
		x.end += int64(size)
	}
	if b.Jumbo() {
		b.ValuePage = uint32(len(x.jumbo))
		for _, size := range e.ValuePages {
			x.jumbo = append(x.jumbo, uint32(size))
		}
	}
	if x.end > limit {
		return fmt.Errorf("%w: block %d ends behind the blocks", errIndex, n)
	}
	x.rows += uint64(e.Rows)
	x.Blocks = append(x.Blocks, b)
	x.heap = append(x.heap, e.Fence...)
	x.ends = append(x.ends, uint32(len(x.heap)))
	return nil
}

// fenceFollows reports whether e's fence may stand behind prev.
func fenceFollows(prev []byte, e *Entry) bool {
	c := bytes.Compare(prev, e.Fence)
	return c < 0 || c == 0 && e.Continues
}

// Finish checks the sums against the footer and makes the index searchable.
func (x *Index) Finish(f *Footer) error {
	if uint64(len(x.Blocks)) != f.Blocks || x.rows != f.Rows || x.end != f.TombOff() {
		return fmt.Errorf("%w: %d blocks, %d rows, up to %d; the footer says %d, %d, %d",
			errIndex, len(x.Blocks), x.rows, x.end, f.Blocks, f.Rows, f.TombOff())
	}
	x.cutPrefix()
	x.norms = make([]uint64, len(x.Blocks))
	for i := range x.norms {
		x.norms[i] = block.Norm(x.suffix(i))
	}
	x.heap, x.jumbo = slices.Clip(x.heap), slices.Clip(x.jumbo)
	return nil
}

// cutPrefix takes what the fences have in common off the front of each.
func (x *Index) cutPrefix() {
	n := len(x.Blocks)
	if n < 2 {
		return
	}
	x.prefix = bytes.Clone(x.suffix(1)[:block.CommonPrefix(x.suffix(1), x.suffix(n-1))])
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

// Fence returns the fence of block i, in memory of its own.
func (x *Index) Fence(i int) []byte {
	if i == 0 {
		return nil
	}
	return slices.Concat(x.prefix, x.suffix(i))
}

// suffix returns the fence of block i, the prefix cut off.
func (x *Index) suffix(i int) []byte {
	if i == 0 {
		return x.heap[:x.ends[0]]
	}
	return x.heap[x.ends[i-1]:x.ends[i]]
}

// compare compares key with the fence of block i, which is not the first.
func (x *Index) compare(key []byte, i int) int {
	n := min(len(key), len(x.prefix))
	if c := bytes.Compare(key[:n], x.prefix); c != 0 {
		return c
	}
	return bytes.Compare(key[n:], x.suffix(i))
}

// Holds reports whether the keys of block i, which has these as first and last, lie where its fence and the next one say.
// Blocks of which that is so are in order, but for the sequences of a key that goes on in the next one.
func (x *Index) Holds(i int, first, last []byte) bool {
	if i > 0 {
		if c := x.compare(first, i); c < 0 || c > 0 && x.Blocks[i].Continues {
			return false
		}
	}
	next := i + 1
	if next == len(x.Blocks) {
		return true
	}
	c := x.compare(last, next)
	return c <= 0 && (c == 0) == x.Blocks[next].Continues
}

// Find returns the block that holds the newest row of key, if there is one; of
// another key the block in which it would stand. There must be a block.
func (x *Index) Find(key []byte) int {
	n := len(x.Blocks)
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
		if m := x.norms[mid]; m < norm || m == norm && bytes.Compare(x.suffix(mid), rest) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	b := low - 1
	for b > 0 && x.Blocks[b].Continues && bytes.Equal(x.suffix(b), rest) {
		b--
	}
	return b
}
