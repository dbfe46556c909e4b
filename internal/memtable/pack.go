package memtable

import (
	"math/bits"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
)

// packing leads from heads to numbers that are sorted faster: the bits in which they differ, side by
// side, and behind them a place. A head is eight bytes, of decimal digits say, and most of its bits are the same in
// all. The bits are moved by powers of two, each as far as its number of gaps says (Warren,
// Hacker's Delight, 7-4 and 7-5).
type packing struct {
	mask     uint64 // the bits that are packed
	constant uint64 // the others, which are the same in all heads; if whole
	whole    bool   // those are all in which heads differ
	width    uint   // of the place
	n        int    // places
	moves    [6]move
	used     int // moves
}

// move is bits that are moved so far.
type move struct {
	bits uint64
	by   uint
}

// pack is for n heads like the given one that differ in some bits: the first of these, where there is no
// room for all.
func (p *packing) pack(head, differ uint64, n int) {
	*p = packing{mask: differ, width: uint(bits.Len(uint(n - 1))), n: n}
	for bits.OnesCount64(p.mask) > 64-int(p.width) {
		p.mask &= p.mask - 1
	}
	p.whole, p.constant = p.mask == differ, head&^differ
	rest, gaps := p.mask, ^p.mask<<1
	for by := uint(1); by < 64; by *= 2 {
		odd := gaps // the bits before which there is an odd number of gaps
		for k := 1; k < 64; k *= 2 {
			odd ^= odd << k
		}
		if bits := odd & rest; bits != 0 {
			p.moves[p.used] = move{bits, by}
			p.used++
			rest = rest ^ bits | bits>>by
		}
		gaps &^= odd
	}
}

// keysOf makes heads keys: the bits of them that are packed, side by side, and behind them the place, so
// that of the same bits the newer one, whose place is higher, is less.
func (p *packing) keysOf(heads []uint64) {
	for i := range heads {
		heads[i] &= p.mask
	}
	for _, m := range p.moves[:p.used] {
		for i, x := range heads {
			t := x & m.bits
			heads[i] = x ^ t | t>>(m.by&63)
		}
	}
	for i := range heads {
		heads[i] = heads[i]<<(p.width&63) | uint64(len(heads)-1-i)
	}
}

// expand is the reverse: it returns a head, but for the bits that are not packed.
func (p *packing) expand(x uint64) uint64 {
	for i := p.used - 1; i >= 0; i-- {
		m := &p.moves[i%len(p.moves)]
		x = x&^m.bits | x<<(m.by&63)&m.bits
	}
	return x & p.mask
}

// place returns which head a key is of.
func (p *packing) place(key uint64) int { return p.n - 1 - int(key&(1<<p.width-1)) }

// fewHeads are sorted by comparisons.
const fewHeads = 128

// sort makes keys of the heads, which differ in some bits and are lost where keys hold all of these, and sorts them.
func (m *sorter) sort(differ uint64) {
	n := len(m.heads)
	m.pack(m.heads[0], differ, n)
	m.keys = m.heads
	if !m.whole {
		m.keys = m.room(1, n)
		copy(m.keys, m.heads)
	}
	m.keysOf(m.keys)
	if n <= fewHeads {
		slices.Sort(m.keys)
		return
	}
	if m.mask == 0 {
		slices.Reverse(m.keys)
		return
	}
	if digits := bits.OnesCount64(m.mask); digits+int(m.width) <= 32 {
		m.sortNarrow(digits)
	} else {
		m.keys = radix(m.keys, m.room(0, n), m.width, digits)
	}
}

// sortNarrow sorts keys of 32 bits at most where they are: each half of their memory has room for all of them, and no
// other is touched.
func (m *sorter) sortNarrow(digits int) {
	n, halves := len(m.keys), arena.Halves(m.keys)
	for i, k := range m.keys {
		halves[i] = uint32(k)
	}
	sorted := radix(halves[:n], halves[n:], m.width, digits)
	if &sorted[0] == &halves[0] {
		for i := n - 1; i >= 0; i-- {
			m.keys[i] = uint64(halves[i])
		}
		return
	}
	for i := range m.keys {
		m.keys[i] = uint64(halves[n+i])
	}
}

// room returns memory for n keys.
func (m *sorter) room(i, n int) []uint64 {
	m.more[i] = slices.Grow(m.more[i][:0], n)[:n]
	return m.more[i]
}

// mostDigit is how many bits n keys are sorted by at a time: their counters take less than a core's nearest cache.
func mostDigit(n int) int {
	if n < 4096 {
		return 8
	}
	return 11
}

// radix sorts keys, given the oldest first, by so many bits behind others, the newest first where these are the same (LSD
// radix sort). It returns from or to: where they are sorted.
func radix[K uint32 | uint64](from, to []K, behind uint, digits int) []K {
	for shift := behind; digits > 0; {
		most := mostDigit(len(from))
		passes := (digits + most - 1) / most
		digit := (digits + passes - 1) / passes
		pass(from, to, shift, digit, shift == behind)
		from, to = to, from
		shift, digits = shift+uint(digit), digits-digit
	}
	return from
}

// pass copies keys in the order of a digit. Of the same digit they stay as they are, or are reversed.
func pass[K uint32 | uint64](from, to []K, shift uint, digit int, reverse bool) {
	var next [1 << 11]uint32
	mask := K(1<<digit-1) & (1<<11 - 1)
	for _, k := range from {
		next[k>>(shift&63)&mask]++
	}
	sum := uint32(0)
	for d, n := range next[:1<<digit] {
		next[d] = sum
		sum += n
	}
	if reverse {
		for i := len(from) - 1; i >= 0; i-- {
			k := from[i]
			d := &next[k>>(shift&63)&mask]
			to[*d] = k
			*d++
		}
		return
	}
	for _, k := range from {
		d := &next[k>>(shift&63)&mask]
		to[*d] = k
		*d++
	}
}
