package memfs

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

const (
	chunkBytes = 4096
	// maxFileBytes bounds the table of chunks of a file written at a wild offset.
	maxFileBytes = 1 << 36
)

// owner is an identity: a chunk may be written in place only by the content that
// made it and has not been copied since. It has a size, so that no two are equal.
type owner struct{ _ byte }

// chunk is a piece of a file. Every field but sum is immutable once a content
// other than its owner can see it.
type chunk struct {
	owner *owner
	sum   atomic.Uint64 // hash of data, 0 if not known
	data  [chunkBytes]byte
}

// zeroChunk stands for preallocated space: zeros like a hole, but paid for.
var zeroChunk = new(chunk)

// content is the bytes of a file, shared copy-on-write.
//
//   - chunks covers size; a nil chunk is a hole, which reads as zeros.
//   - Bytes of the last chunk beyond size are zero.
//   - own is nil while the slice or any chunk in it may be shared.
type content struct {
	size   int64
	held   int64 // chunks that are not holes
	chunks []*chunk
	own    *owner
}

// snapshot returns a copy; afterwards both sides copy what they write.
func (c *content) snapshot() content {
	if c.own != nil {
		c.own = nil
	}
	return *c
}

func (c *content) thaw() {
	if c.own == nil {
		c.own = new(owner)
		c.chunks = slices.Clone(c.chunks)
	}
}

// grow makes the file at least size bytes long; what is new is a hole.
func (c *content) grow(size int64) {
	if size <= c.size {
		return
	}
	c.thaw()
	c.size = size
	for need := chunksFor(size); int64(len(c.chunks)) < need; {
		c.chunks = append(c.chunks, nil)
	}
}

func chunksFor(size int64) int64 { return (size + chunkBytes - 1) / chunkBytes }

// truncate sets the size, shorter or longer.
func (c *content) truncate(size int64) {
	if size >= c.size {
		c.grow(size)
		return
	}
	c.thaw()
	for _, dropped := range c.chunks[chunksFor(size):] {
		if dropped != nil {
			c.held--
		}
	}
	c.chunks = c.chunks[:chunksFor(size)]
	c.size = size
	if rest := int(size % chunkBytes); rest != 0 && c.chunks[size/chunkBytes] != nil {
		clear(c.writable(size / chunkBytes)[rest:])
	}
}

// writable returns chunk i for writing in place.
func (c *content) writable(i int64) []byte {
	old := c.chunks[i]
	if old != nil && old.owner == c.own {
		old.sum.Store(0)
		return old.data[:]
	}
	mine := &chunk{owner: c.own}
	if old == nil {
		c.held++
	} else {
		mine.data = old.data
	}
	c.chunks[i] = mine
	return mine.data[:]
}

func (c *content) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	c.thaw()
	c.grow(off + int64(len(p)))
	for len(p) > 0 {
		n := copy(c.writable(off / chunkBytes)[off%chunkBytes:], p)
		p, off = p[n:], off+int64(n)
	}
}

// reserve makes [off, off+n) space that is paid for, zeros where it is new.
func (c *content) reserve(off, n int64) {
	if n <= 0 {
		return
	}
	c.thaw()
	c.grow(off + n)
	for i := off / chunkBytes; i < chunksFor(off+n); i++ {
		if c.chunks[i] == nil {
			c.chunks[i] = zeroChunk
			c.held++
		}
	}
}

// fits returns how many bytes of a write of n at off need at most free new chunks,
// and how many new chunks these take.
func (c *content) fits(off, n, free int64) (bytes, taken int64) {
	end := off + n
	for i := off / chunkBytes; i < chunksFor(end); i++ {
		if i < int64(len(c.chunks)) && c.chunks[i] != nil {
			continue
		}
		if taken == free {
			return max(i*chunkBytes-off, 0), taken
		}
		taken++
	}
	return n, taken
}

// readAt returns how many bytes it read; fewer than len(p) only at the end.
func (c *content) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunkBytes-int(off%chunkBytes))
		if from := c.chunks[off/chunkBytes]; from == nil {
			clear(rest[:n])
		} else {
			copy(rest[:n], from.data[off%chunkBytes:])
		}
		rest, off = rest[n:], off+int64(n)
	}
	return len(p)
}

func (c *content) bytes() []byte {
	b := make([]byte, c.size)
	c.readAt(b, 0)
	return b
}

// hash depends on the bytes only, not on which of the zeros are holes. Shared
// chunks remember their part, so hashing an image costs what changed in it.
func (c *content) hash() uint64 {
	h := uint64(c.size) + 1
	for _, piece := range c.chunks {
		if piece == nil {
			piece = zeroChunk
		}
		h = mix(h, piece.hash())
	}
	return h
}

func (k *chunk) hash() uint64 {
	sum := k.sum.Load()
	if sum == 0 {
		sum = xxhash.Sum64(k.data[:])
		k.sum.Store(sum)
	}
	return sum
}

func mix(h, v uint64) uint64 {
	return (bits.RotateLeft64(h, 27) ^ v) * 0x9e3779b97f4a7c15
}
