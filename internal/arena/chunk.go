package arena

import "slices"

// minFrameBytes is the smallest unit of allocation.
const minFrameBytes = 4 << 10

// frameBytes is the unit of allocation: a page of the operating system, so that
// free frames can be given back one by one, at least minFrameBytes.
var frameBytes = max(minFrameBytes, pageBytes)

// chunk is one mapping of HugeBytes, cut into frames. A frame is in use, or
// free; a free one is clean if no memory stands behind it (never touched, or
// released), and only frames that are not clean count toward the budget.
type chunk struct {
	mem   []byte
	base  uintptr
	free  frameMap
	clean frameMap          // subset of free
	spans [maxFrames]uint16 // by first frame: frames of the allocation that starts there, 0 if none
	used  int               // frames in use
	dirty int               // frames free and not clean
	huge  bool              // huge pages were asked for
	idle  bool              // the heap has counted it as wholly free
}

// runs is the lengths, in frames, of a chunk's longest runs. The heap keeps them
// apart from the chunks (runTree), so that a search reads a few bytes for a few chunks.
type runs struct {
	free  uint16 // of free frames
	dirty uint16 // of free frames with memory behind them
}

// newChunk describes mem, a fresh mapping. If huge, the system may back it as a
// whole at the first touch, so all of it counts at once.
func newChunk(mem []byte, huge bool) *chunk {
	c := &chunk{mem: mem, base: address(mem), huge: huge}
	c.free.add(0, len(mem)/frameBytes)
	if huge {
		c.dirty = len(mem) / frameBytes
	} else {
		c.clean = c.free
	}
	adviseHuge(mem, huge)
	return c
}

// runs measures the longest runs.
func (c *chunk) runs() runs {
	r := runs{free: uint16(c.free.longest())}
	r.dirty = r.free
	if c.clean != (frameMap{}) {
		dirty := c.free.without(c.clean)
		r.dirty = uint16(dirty.longest())
	}
	return r
}

// counted returns the bytes that count toward the budget.
func (c *chunk) counted() int64 { return int64(c.used+c.dirty) * int64(frameBytes) }

// fit returns the first place for n frames, -1 without one: among frames that
// have memory behind them, or among all free ones.
func (c *chunk) fit(n int, dirtyOnly bool) int {
	if dirtyOnly {
		dirty := c.free.without(c.clean)
		return dirty.fit(n)
	}
	return c.free.fit(n)
}

// reserve marks n free frames from i on as in use and returns how many of them
// were clean; the caller counts those toward the budget, or calls cancel.
func (c *chunk) reserve(i, n int) (clean int) {
	clean = c.clean.count(i, n)
	c.free.remove(i, n)
	c.used += n
	c.dirty -= n - clean
	return clean
}

// cancel undoes reserve: the clean ones are still marked in c.clean.
func (c *chunk) cancel(i, n, clean int) {
	c.free.add(i, n)
	c.used -= n
	c.dirty += n - clean
}

// occupy completes reserve and returns the memory.
func (c *chunk) occupy(i, n int) []byte {
	c.clean.remove(i, n)
	c.spans[i] = uint16(n)
	return c.mem[i*frameBytes : (i+n)*frameBytes : (i+n)*frameBytes]
}

// vacate frees the allocation that starts at frame i and returns its frames.
func (c *chunk) vacate(i int) int {
	n := int(c.spans[i])
	c.spans[i] = 0
	c.free.add(i, n)
	c.used -= n
	c.dirty += n
	return n
}

// release gives back the memory behind free frames until at least want bytes are
// gone, and returns how many are. Reserved frames are not free, so they stay.
func (c *chunk) release(want int64) int64 {
	if c.huge {
		c.huge = false
		adviseHuge(c.mem, false) // else the system would fill the holes again
	}
	gone := int64(0)
	dirty := c.free.without(c.clean)
	for i, end := dirty.next(0); i < maxFrames && gone < want; i, end = dirty.next(end) {
		need := int((want - gone + int64(frameBytes) - 1) / int64(frameBytes))
		n := min(end-i, need)
		if !Release(c.mem[i*frameBytes : (i+n)*frameBytes]) {
			break
		}
		c.clean.add(i, n)
		c.dirty -= n
		gone += int64(n) * int64(frameBytes)
	}
	return gone
}

// find returns the index of the chunk that contains address a.
func find(chunks []*chunk, a uintptr) (int, bool) {
	i, exact := slices.BinarySearchFunc(chunks, a, func(c *chunk, a uintptr) int {
		switch {
		case c.base < a:
			return -1
		case c.base > a:
			return 1
		}
		return 0
	})
	if exact {
		return i, true
	}
	if i > 0 && a-chunks[i-1].base < uintptr(len(chunks[i-1].mem)) {
		return i - 1, true
	}
	return i, false
}
