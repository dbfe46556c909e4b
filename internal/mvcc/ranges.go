package mvcc

import (
	"bytes"
	"iter"
	"slices"
)

// Range is a half-open range of internal keys.
type Range struct{ Low, High []byte }

// rangeBytes is what a Range takes besides the bytes of its bounds.
const rangeBytes = 48

// ranges is a set of ranges. The zero value is empty.
type ranges struct {
	list   []Range
	sorted int    // the first ones, as many, are sorted and disjoint
	chunk  []byte // where bounds are copied to
	bounds int    // bytes of this chunk and all before it
}

// maxChunk is the most bytes of bounds that memory is taken for at once, unless
// one range needs more.
const maxChunk = 4 << 10

// memory returns the bytes that s holds.
func (s *ranges) memory() int { return rangeBytes*cap(s.list) + s.bounds }

// growth returns the ranges that s has to have capacity for to take another one,
// and the bytes of the chunk for bounds of n bytes; 0 for what it has already.
func (s *ranges) growth(n int) (list, chunk int) {
	if len(s.list) == cap(s.list) {
		list = max(1, 2*cap(s.list))
	}
	if n > cap(s.chunk)-len(s.chunk) {
		chunk = max(n, min(2*cap(s.chunk), maxChunk))
	}
	return list, chunk
}

// need returns the bytes that growing for bounds of n bytes takes, besides those
// that s holds until it has grown.
func (s *ranges) need(n int) int {
	list, chunk := s.growth(n)
	return rangeBytes*list + chunk
}

// add adds a range that is not empty.
func (s *ranges) add(g Range) {
	list, chunk := s.growth(len(g.Low) + len(g.High))
	if list > 0 {
		s.list = append(make([]Range, 0, list), s.list...)
	}
	if chunk > 0 {
		s.chunk, s.bounds = make([]byte, 0, chunk), s.bounds+chunk
	}
	s.list = append(s.list, Range{s.copy(g.Low), s.copy(g.High)})
	// Doubling before the next merge keeps the work of n calls O(n log n).
	if n := len(s.list); n >= 1024 && n >= 2*s.sorted {
		s.merge()
	}
}

func (s *ranges) copy(bound []byte) []byte {
	at := len(s.chunk)
	s.chunk = append(s.chunk, bound...)
	return s.chunk[at:len(s.chunk):len(s.chunk)]
}

// merge sorts the ranges and joins those that overlap or touch.
func (s *ranges) merge() {
	if s.sorted == len(s.list) {
		return
	}
	slices.SortFunc(s.list, func(a, b Range) int { return bytes.Compare(a.Low, b.Low) })
	out := s.list[:0]
	for g := range join(slices.Values(s.list)) {
		out = append(out, g)
	}
	clear(s.list[len(out):])
	s.list, s.sorted = out, len(out)
}

// join joins those of sorted ranges that overlap or touch.
func join(sorted iter.Seq[Range]) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		var last Range
		for g := range sorted {
			switch {
			case last.High == nil:
				last = g
			case bytes.Compare(g.Low, last.High) > 0:
				if !yield(last) {
					return
				}
				last = g
			case bytes.Compare(g.High, last.High) > 0:
				last.High = g.High
			}
		}
		if last.High != nil {
			yield(last)
		}
	}
}

// covers reports whether all of g is in a range that was there at the last merge.
func (s *ranges) covers(g Range) bool {
	i := s.at(g.Low)
	return i >= 0 && bytes.Compare(g.High, s.list[i].High) <= 0
}

// holds reports whether key is in a range. The ranges are merged.
func (s *ranges) holds(key []byte) bool {
	i := s.at(key)
	return i >= 0 && bytes.Compare(key, s.list[i].High) < 0
}

// at returns the last of the sorted ranges that begins at or before key, or -1.
func (s *ranges) at(key []byte) int {
	i, found := slices.BinarySearchFunc(s.list[:s.sorted], key, func(g Range, key []byte) int { return bytes.Compare(g.Low, key) })
	if !found {
		i--
	}
	return i
}

// overlap reports whether a range has a key of [low, high). The ranges are merged.
func (s *ranges) overlap(low, high []byte) bool {
	i := s.at(low)
	return i >= 0 && bytes.Compare(low, s.list[i].High) < 0 ||
		i+1 < len(s.list) && bytes.Compare(s.list[i+1].Low, high) < 0
}

// replace makes s hold copies of what list holds, which is sorted, and no more
// memory than that takes.
func (s *ranges) replace(list []Range) {
	n := 0
	for _, g := range list {
		n += len(g.Low) + len(g.High)
	}
	*s = ranges{chunk: make([]byte, 0, n), bounds: n}
	s.list = make([]Range, 0, len(list))
	for _, g := range list {
		s.list = append(s.list, Range{s.copy(g.Low), s.copy(g.High)})
	}
	s.merge()
}

func (s *ranges) reset() {
	clear(s.list)
	*s = ranges{list: s.list[:0]}
}
