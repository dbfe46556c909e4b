package block

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// column is one stored column of integers, read from front to back by take.
// Planes (all low bytes, then all second bytes ...) rather than whole integers,
// because the codec behind finds much more in bytes of one significance.
type column struct {
	planes []byte
	stride int // integers a plane holds
	width  int // planes
	at     int // integers read
	delta  bool
	base   uint64
	last   uint64 // delta: the first integer, then the one read before
}

// constant reports whether all integers of the column equal base.
func (c *column) constant() bool { return c.width == 0 && !c.delta }

// columnWriter encodes columns; it keeps memory between them.
type columnWriter struct{ deltas []uint64 }

// append appends the column of v, which has at least one integer, to dst.
// spread is the greatest of v minus the least.
func (w *columnWriter) append(dst []byte, v []uint64) (out []byte, spread uint64) {
	low, spread := extent(v)
	width := byteWidth(spread)
	if width == 0 || len(v) < 2 {
		return appendPlanes(binary.AppendUvarint(append(dst, byte(width)), low), v, width, low), spread
	}
	d := w.deltas[:0]
	for i := 1; i < len(v); i++ {
		d = append(d, zigzag(v[i]-v[i-1]))
	}
	w.deltas = d
	dlow, dspread := extent(d)
	if dwidth := byteWidth(dspread); dwidth < width {
		dst = binary.AppendUvarint(append(dst, byte(1<<4|dwidth)), dlow)
		return appendPlanes(binary.AppendUvarint(dst, v[0]), d, dwidth, dlow), spread
	}
	return appendPlanes(binary.AppendUvarint(append(dst, byte(width)), low), v, width, low), spread
}

// extent returns the least integer of v and the greatest minus the least.
func extent(v []uint64) (low, spread uint64) {
	low, high := v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return low, high - low
}

func byteWidth(x uint64) int { return (bits.Len64(x) + 7) / 8 }

func appendPlanes(dst []byte, v []uint64, width int, low uint64) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, len(v)*width)...)
	for k := range width {
		plane := dst[start+k*len(v):][:len(v)]
		for i, x := range v {
			plane[i] = byte((x - low) >> (8 * k))
		}
	}
	return dst
}

// cutColumn reads a column of n integers, n >= 1, from the front of b.
func cutColumn(b []byte, n int) (c column, rest []byte, ok bool) {
	if len(b) == 0 {
		return c, nil, false
	}
	tag := b[0]
	c = column{width: int(tag & 15), stride: n, delta: tag>>4 == 1}
	if tag>>4 > 1 || c.width > 8 || c.delta && n < 2 {
		return c, nil, false
	}
	if c.base, b, ok = cutUvarint(b[1:]); !ok {
		return c, nil, false
	}
	if c.delta {
		c.stride--
		if c.last, b, ok = cutUvarint(b); !ok {
			return c, nil, false
		}
	}
	if len(b) < c.stride*c.width {
		return c, nil, false
	}
	c.planes, rest = b[:c.stride*c.width], b[c.stride*c.width:]
	return c, rest, true
}

// chunk is how many integers are taken from a column at a time, into memory on the stack.
const chunk = 64

// take reads the next len(dst) integers, which the column has.
func (c *column) take(dst []uint64) {
	at := c.at
	c.at += len(dst)
	if !c.delta {
		c.sums(dst, at)
		return
	}
	if at == 0 && len(dst) > 0 {
		dst[0], dst, at = c.last, dst[1:], 1
	}
	c.sums(dst, at-1)
	for i, z := range dst {
		c.last += unzigzag(z)
		dst[i] = c.last
	}
}

// sums sets dst to base plus what the planes hold from index at on.
func (c *column) sums(dst []uint64, at int) {
	if c.width == 0 {
		for i := range dst {
			dst[i] = c.base
		}
		return
	}
	for i, x := range c.planes[at:][:len(dst)] {
		dst[i] = c.base + uint64(x)
	}
	for k := 1; k < c.width; k++ {
		for i, x := range c.planes[k*c.stride+at:][:len(dst)] {
			dst[i] += uint64(x) << (8 * k & 63)
		}
	}
}

// next takes the integers from index from on, of n in all, as many as part holds. A loop
// over all of them keeps part on its stack, where handing it to a function value would not.
func (c *column) next(part []uint64, from, n int) []uint64 {
	part = part[:min(len(part), n-from)]
	c.take(part)
	return part
}

// survey returns the extremes of all n integers, n >= 1, and their sum.
func (c column) survey(n int) (low, high, sum uint64) {
	if c.constant() {
		return c.base, c.base, c.base * uint64(n)
	}
	low = math.MaxUint64
	var room [chunk]uint64
	for from := 0; from < n; from += chunk {
		for _, x := range c.next(room[:], from, n) {
			low, high = min(low, x), max(high, x)
			sum += x
		}
	}
	return low, high, sum
}

func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

func cutUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
