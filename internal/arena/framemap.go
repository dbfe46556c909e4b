package arena

import "math/bits"

// maxFrames is the most frames a chunk can have.
const maxFrames = HugeBytes / minFrameBytes

// frameMap is a set of frames of one chunk. The zero value is empty.
type frameMap [maxFrames / 64]uint64

// add puts the n frames from i on into the set.
func (m *frameMap) add(i, n int) {
	for ; n > 0 && i%64 != 0; i, n = i+1, n-1 {
		m[i/64] |= 1 << (i % 64)
	}
	for ; n >= 64; i, n = i+64, n-64 {
		m[i/64] = ^uint64(0)
	}
	if n > 0 {
		m[i/64] |= 1<<n - 1
	}
}

// remove takes the n frames from i on out of the set.
func (m *frameMap) remove(i, n int) {
	var gone frameMap
	gone.add(i, n)
	*m = m.without(gone)
}

// without returns the frames of m that are not in other.
func (m *frameMap) without(other frameMap) frameMap {
	for w := range other {
		other[w] = m[w] &^ other[w]
	}
	return other
}

// count returns how many of the n frames from i on are in the set.
func (m *frameMap) count(i, n int) int {
	var span frameMap
	span.add(i, n)
	sum := 0
	for w := range span {
		sum += bits.OnesCount64(m[w] & span[w])
	}
	return sum
}

// next returns the first run of the set at or after frame i, as [start, end);
// start is maxFrames if there is none.
func (m *frameMap) next(i int) (start, end int) {
	start = m.seek(i, 0)
	if start == maxFrames {
		return maxFrames, maxFrames
	}
	return start, m.seek(start, ^uint64(0))
}

// seek returns the first frame at or after i whose bit differs from those of
// flip: with 0 the first member, with all ones the first frame that is not.
func (m *frameMap) seek(i int, flip uint64) int {
	for w := i / 64; w < len(m); w++ {
		word := m[w] ^ flip
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return maxFrames
}

// fit returns the start of the first run of at least n frames, -1 without one.
func (m *frameMap) fit(n int) int {
	for start, end := m.next(0); start < maxFrames; start, end = m.next(end) {
		if end-start >= n {
			return start
		}
	}
	return -1
}

// longest returns the length of the longest run.
func (m *frameMap) longest() int {
	most := 0
	for start, end := m.next(0); start < maxFrames; start, end = m.next(end) {
		most = max(most, end-start)
	}
	return most
}
