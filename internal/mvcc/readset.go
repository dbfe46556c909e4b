package mvcc

import "bytes"

// A set holds at most maxLimit bytes, and may always hold minLimit: a key and what
// finds it. Both are what SetLimit allows. More than mostGranted are never held.
const (
	minLimit    = 64 << 10
	maxLimit    = 64 << 20
	mostGranted = 1 << 30
)

// Grants are asked by a set that has reached its limit.
type Grants interface {
	// MayHold grants the set, or not, to hold so many bytes in all, until it is coarsened or emptied. If not, it is
	// coarsened: it remembers ranges wider than what was read.
	MayHold(bytes int) bool
}

// ReadSet is what a transaction has read. The zero value is empty and holds at
// most maxLimit bytes.
type ReadSet struct {
	Grants Grants // nil: its limit is all it may hold

	points
	ranges *ranges // nil: none yet, as in most transactions
	limit  int     // bytes, what was granted included; 0: maxLimit
	own    int     // bytes that were not granted
	coarse bool    // some range is wider than what was read
}

// SetLimit bounds the memory of the set to that many bytes, at least 64 KiB and at
// most 64 MiB.
func (r *ReadSet) SetLimit(bytes int64) {
	r.own = int(min(max(bytes, minLimit), maxLimit))
	r.limit = r.own
}

// maxBytes returns the limit in bytes.
func (r *ReadSet) maxBytes() int {
	if r.limit == 0 {
		return maxLimit
	}
	return r.limit
}

// Memory returns the bytes that the set holds: capacities, not lengths. What it
// grows from is within the limit together with what it grows to; coarsening takes
// up to as much again for a moment.
func (r *ReadSet) Memory() int {
	n := r.points.memory()
	if r.ranges != nil {
		n += r.ranges.memory()
	}
	return n
}

// Empty reports whether nothing has been read.
func (r *ReadSet) Empty() bool {
	return len(r.list) == 0 && (r.ranges == nil || len(r.ranges.list) == 0)
}

// Reset empties r and keeps small buffers for reuse.
func (r *ReadSet) Reset() {
	if len(r.slots) > 4096 {
		*r = ReadSet{limit: r.own, own: r.own, Grants: r.Grants}
		return
	}
	r.points.reset()
	if r.ranges != nil {
		r.ranges.reset()
	}
	r.coarse, r.limit = false, r.own
}

// InOrder reports whether the ranges are in order, so that Ranges need not put them so.
func (r *ReadSet) InOrder() bool { return r.ranges == nil || r.ranges.sorted == len(r.ranges.list) }

// Ranges returns the ranges read, sorted and disjoint.
func (r *ReadSet) Ranges() []Range {
	if r.ranges == nil {
		return nil
	}
	r.ranges.merge()
	return r.ranges.list
}

// AddKey notes that key, whose base.Hash is hash, was read.
func (r *ReadSet) AddKey(key []byte, hash uint64) {
	tag := uint32(hash >> 32)
	if r.find(tag, key) >= 0 || r.coarse && r.ranges.holds(key) {
		return
	}
	if !r.fits(len(key)) {
		if len(key) > r.maxBytes()/2 && !r.mayTake(r.points.need(len(key))) {
			r.addRange(Range{key, append(bytes.Clone(key), 0)})
			return
		}
		r.makeRoom(func() int { return r.points.need(len(key)) })
		r.points.grow(len(key))
	}
	r.points.add(key, tag)
}

// AddRange notes that every key in [low, high) was looked at.
func (r *ReadSet) AddRange(low, high []byte) {
	if bytes.Compare(low, high) < 0 {
		r.addRange(Range{low, high})
	}
}

func (r *ReadSet) addRange(g Range) {
	if r.ranges == nil {
		r.ranges = new(ranges)
	}
	s := r.ranges
	if n := len(s.list); n > 0 && bytes.Equal(s.list[n-1].Low, g.Low) && bytes.Equal(s.list[n-1].High, g.High) {
		return
	}
	if r.coarse && s.covers(g) {
		return
	}
	if n := len(g.Low) + len(g.High); n > r.maxBytes()/4 && !r.mayTake(s.need(n)) {
		g, r.coarse = shorten(g, r.longBound()), true
	}
	r.makeRoom(func() int { return s.need(len(g.Low) + len(g.High)) })
	s.add(g)
}
