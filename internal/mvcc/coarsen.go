package mvcc

import (
	"bytes"
	"iter"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// When the memory a set may hold does not suffice, it reads more than it has been
// told (C3): keys and ranges that are neighbours become one range, gap included.
// Neighbours whose bounds share the longest prefix are joined first, as the gap
// between them is likely to hold the fewest keys; among equals every few. Each
// time the set shrinks to a quarter of its limit or less, so that the work, of the
// order of n log n for n keys, is done only once in as many reads.

// mayTake reports whether n bytes fit as well, or are granted.
func (r *ReadSet) mayTake(n int) bool {
	wanted := r.Memory() + n
	if wanted <= r.maxBytes() {
		return true
	}
	if r.Grants == nil || wanted > mostGranted || !r.Grants.MayHold(wanted) {
		return false
	}
	r.limit = wanted
	return true
}

// makeRoom makes the set so small that the bytes need returns fit as well.
func (r *ReadSet) makeRoom(need func() int) {
	if r.mayTake(need()) {
		return
	}
	limit := r.maxBytes()
	if r.ranges == nil {
		r.ranges = new(ranges)
	}
	r.ranges.merge()
	r.ranges.replace(r.ranges.list) // without the bounds of joined ranges
	if r.Memory()+need() > limit*3/4 {
		r.coarsen(limit / 4)
		r.limit = r.own
	}
}

// coarsen replaces everything by ranges that take at most so many bytes.
func (r *ReadSet) coarsen(most int) {
	order := r.ordered()
	shared, size := r.survey(order)
	n := int(int64(len(shared)+1) * int64(most) / int64(max(size, 1)))
	for {
		if list := r.widened(order, shared, n); n <= 1 || sizeOf(list) <= most {
			r.ranges.replace(list)
			break
		}
		n /= 2 // what is left is longer than the average
	}
	r.points, r.coarse = points{}, true
}

// longBound is the length in bytes from which bounds are cut off when the set is
// coarsened, so that any limit holds some.
func (r *ReadSet) longBound() int { return r.maxBytes() / 32 }

// shorten returns a range that covers g and has bounds of at most n bytes, unless
// the first n bytes of the upper one are all 0xFF.
func shorten(g Range, n int) Range {
	if len(g.Low) > n {
		g.Low = g.Low[:n]
	}
	if len(g.High) <= n {
		return g
	}
	if high := bytes.TrimRight(g.High[:n], "\xff"); len(high) > 0 {
		g.High = bytes.Clone(high)
		g.High[len(high)-1]++
	}
	return g
}

// spans yields all keys, whose order is given, and all ranges, which are merged, as
// ranges in the order of their low bounds.
func (r *ReadSet) spans(order []uint32) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		rest := r.ranges.list
		for _, i := range order {
			g := r.span(int(i))
			for ; len(rest) > 0 && bytes.Compare(rest[0].Low, g.Low) < 0; rest = rest[1:] {
				if !yield(rest[0]) {
					return
				}
			}
			if !yield(g) {
				return
			}
		}
		for _, g := range rest {
			if !yield(g) {
				return
			}
		}
	}
}

// survey returns how many bytes neighbours share, for each two of them, and what
// all of them would take as ranges.
func (r *ReadSet) survey(order []uint32) (shared []uint16, size int) {
	var high []byte
	for g := range join(r.spans(order)) {
		if high != nil {
			shared = append(shared, uint16(min(base.CommonPrefix(high, g.Low), 1<<16-1)))
		}
		high = g.High
		g = shorten(g, r.longBound())
		size += rangeBytes + len(g.Low) + len(g.High)
	}
	return shared, size
}

func sizeOf(list []Range) int {
	n := rangeBytes * len(list)
	for _, g := range list {
		n += len(g.Low) + len(g.High)
	}
	return n
}

// widened returns at most n ranges, at least one, that cover everything; shared is
// what survey returned. The bounds may alias the set's.
func (r *ReadSet) widened(order []uint32, shared []uint16, n int) []Range {
	keep := keepGaps(shared, max(n, 1)-1)
	list := make([]Range, 0, max(n, 1))
	i := 0
	for g := range join(r.spans(order)) {
		g = shorten(g, r.longBound())
		switch {
		case len(list) == 0 || keep(shared[i-1]):
			list = append(list, g)
		case bytes.Compare(g.High, list[len(list)-1].High) > 0: // else a shortened bound
			list[len(list)-1].High = g.High
		}
		i++
	}
	return list
}

// keepGaps returns a function that is asked about each gap in turn, whose sides
// share so many bytes, and reports true for n of them, those that share least:
// these must stay gaps.
func keepGaps(shared []uint16, n int) func(shared uint16) bool {
	if n >= len(shared) {
		return func(uint16) bool { return true }
	}
	sorted := slices.Clone(shared)
	slices.Sort(sorted)
	last := sorted[n]
	below, _ := slices.BinarySearch(sorted, last)
	above, _ := slices.BinarySearch(sorted, last+1)
	if last == 1<<16-1 {
		above = len(sorted)
	}
	take, of, sum := n-below, above-below, 0
	return func(shared uint16) bool {
		if shared != last {
			return shared < last
		}
		if sum += take; sum < of {
			return false
		}
		sum -= of
		return true
	}
}
