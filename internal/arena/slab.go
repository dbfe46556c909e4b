package arena

import "math/bits"

// slabClasses is how many sizes of pieces there are: a sixteenth of a frame, an eighth, a
// quarter and a half.
const slabClasses = 4

// slab is a frame in use that is cut into equal pieces, for pages much smaller than a
// frame: the keys of a small block of large values take a few hundred bytes.
type slab struct {
	mem   []byte // the frame
	class int
	free  uint16 // pieces, by bit
	at    int    // its place among those of its class that have a free piece
}

// pieceBytes is the size of the pieces of a class.
func pieceBytes(class int) int { return frameBytes >> (slabClasses - class) }

// slabClass returns the class of the smallest pieces that n bytes fit into; ok is false if
// they take more than half a frame.
func slabClass(n int) (class int, ok bool) {
	for class < slabClasses && pieceBytes(class) < n {
		class++
	}
	return class, class < slabClasses
}

// all is the value of free when no piece is in use.
func (s *slab) all() uint16 { return uint16(1<<(1<<(slabClasses-s.class)) - 1) }

// slabs are those of a heap. The zero value is ready.
type slabs struct {
	byFrame map[uintptr]*slab
	roomy   [slabClasses][]*slab // with a free piece
}

// add makes a slab of the frame mem, all of it free.
func (x *slabs) add(mem []byte, class int) {
	s := &slab{mem: mem, class: class}
	s.free = s.all()
	if x.byFrame == nil {
		x.byFrame = make(map[uintptr]*slab)
	}
	x.byFrame[address(mem)] = s
	x.enlist(s)
}

func (x *slabs) enlist(s *slab) {
	s.at = len(x.roomy[s.class])
	x.roomy[s.class] = append(x.roomy[s.class], s)
}

func (x *slabs) delist(s *slab) {
	list := x.roomy[s.class]
	last := len(list) - 1
	list[s.at] = list[last]
	list[s.at].at = s.at
	list[last] = nil
	x.roomy[s.class] = list[:last]
}

// take returns a free piece of a class, nil if there is none.
func (x *slabs) take(class int) []byte {
	list := x.roomy[class]
	if len(list) == 0 {
		return nil
	}
	s := list[len(list)-1]
	i := bits.TrailingZeros16(s.free)
	if s.free &^= 1 << i; s.free == 0 {
		x.delist(s)
	}
	n := pieceBytes(class)
	return s.mem[i*n : (i+1)*n : (i+1)*n]
}

// give takes back the piece offset bytes behind a frame's address, and returns it. known is
// false if the frame is no slab, piece nil if it is not a piece in use; empty says that the
// frame is free now and the slab is no more.
func (x *slabs) give(frame uintptr, offset int) (piece []byte, empty, known bool) {
	s := x.byFrame[frame]
	if s == nil {
		return nil, false, false
	}
	n := pieceBytes(s.class)
	i := offset / n
	if offset%n != 0 || s.free&(1<<i) != 0 {
		return nil, false, true
	}
	if s.free == 0 {
		x.enlist(s)
	}
	if s.free |= 1 << i; s.free == s.all() {
		x.delist(s)
		delete(x.byFrame, frame)
		empty = true
	}
	return s.mem[offset : offset+n], empty, true
}
