package tombstone

import (
	"bytes"
	"iter"
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// Tombstone hides the versions with a sequence below Seq of the keys in [Low, High).
type Tombstone struct {
	Low, High []byte
	Seq       uint64
}

// Empty reports whether t covers no key at all.
func (t Tombstone) Empty() bool { return bytes.Compare(t.Low, t.High) >= 0 }

// Contains reports whether key is in the range of t.
func (t Tombstone) Contains(key []byte) bool {
	return bytes.Compare(t.Low, key) <= 0 && bytes.Compare(key, t.High) < 0
}

// Fragment is a range whose keys are all covered by the same tombstones.
type Fragment struct {
	Low, High []byte
	Seqs      []uint64 // descending, at least one
}

// List is an immutable set of range tombstones. A nil *List is the empty one.
type List struct {
	frags []Fragment // flat form
	nest  *nest      // nested form; frags is empty then
	total int        // sequences in all fragments together
	spans int        // maximal tombstones in this list, without older ones

	older *List // see Append
}

// Build makes a list of any tombstones in any order. Empty ranges are ignored.
// It takes O(n log n) time, and as much memory.
func Build(ts []Tombstone) *List {
	spans := normalise(ts)
	if len(spans) == 0 {
		return nil
	}
	edges := edgesOf(spans)
	frags, total := measure(edges)
	l := &List{total: total, spans: len(spans)}
	if total > flatFactor*len(spans)+flatFree {
		l.nest = newNest(spans, edges)
	} else {
		l.frags = flatten(edges, frags, total)
	}
	return l
}

// Cover returns the greatest sequence that vis sees among the tombstones
// covering key, 0 if there is none. It allocates nothing.
func (l *List) Cover(key []byte, vis base.Visibility) uint64 {
	var seq uint64
	for ; l != nil; l = l.older {
		if l.nest != nil {
			seq = max(seq, l.nest.cover(key, vis))
		} else if i := l.find(key); i >= 0 && bytes.Compare(key, l.frags[i].High) < 0 {
			seq = max(seq, newestSeen(l.frags[i].Seqs, vis))
		}
	}
	return seq
}

// find returns the last fragment with a low bound <= key, -1 if there is none.
func (l *List) find(key []byte) int {
	lo, hi := 0, len(l.frags)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if bytes.Compare(l.frags[mid].Low, key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// newestSeen returns the first of the descending seqs that vis sees, 0 if none.
func newestSeen(seqs []uint64, vis base.Visibility) uint64 {
	const linear = 8
	if len(seqs) <= linear {
		for _, s := range seqs {
			if vis.Sees(s) {
				return s
			}
		}
		return 0
	}
	// What is seen are two stretches of sequences: private ones, then committed ones.
	if i := firstAtMost(seqs, vis.PrivateLimit-1); vis.PrivateLimit > 0 && i < len(seqs) && vis.Sees(seqs[i]) {
		return seqs[i]
	}
	if i := firstAtMost(seqs, vis.Snapshot); i < len(seqs) {
		return seqs[i]
	}
	return 0
}

// firstAtMost returns the index of the first of the descending seqs that is <= limit.
func firstAtMost(seqs []uint64, limit uint64) int {
	return sort.Search(len(seqs), func(i int) bool { return seqs[i] <= limit })
}

// Len returns the number of tombstones that All yields.
func (l *List) Len() int {
	if l = l.Settle(); l != nil {
		return l.total
	}
	return 0
}

// Empty reports whether the list covers no key.
func (l *List) Empty() bool { return l == nil }

// Fragments yields the fragments in ascending order. Seqs is valid until the
// next step; the bounds as long as those given to Build.
func (l *List) Fragments() iter.Seq[Fragment] {
	return func(yield func(Fragment) bool) {
		l := l.Settle()
		if l == nil {
			return
		}
		if l.nest != nil {
			l.nest.fragments(yield)
			return
		}
		for _, f := range l.frags {
			if !yield(f) {
				return
			}
		}
	}
}

// All yields each fragment once for each of its sequences: ascending bounds,
// descending sequences.
func (l *List) All() iter.Seq[Tombstone] {
	return func(yield func(Tombstone) bool) {
		for f := range l.Fragments() {
			for _, s := range f.Seqs {
				if !yield(Tombstone{f.Low, f.High, s}) {
					return
				}
			}
		}
	}
}

// Spans returns the fewest tombstones that Build would make this list of: each
// with its whole range, in no particular order.
func (l *List) Spans() []Tombstone {
	var out []Tombstone
	for ; l != nil; l = l.older {
		if l.nest != nil {
			out = append(out, l.nest.spans...)
			continue
		}
		for _, f := range l.frags {
			for _, s := range f.Seqs {
				out = append(out, Tombstone{f.Low, f.High, s})
			}
		}
	}
	return normalise(out)
}

// FirstLow returns the least key covered, nil if the list is empty.
func (l *List) FirstLow() []byte {
	var first []byte
	for ; l != nil; l = l.older {
		low := l.bound(0)
		if first == nil || bytes.Compare(low, first) < 0 {
			first = low
		}
	}
	return first
}

// LastHigh returns the least key above all covered ones, nil if the list is empty.
func (l *List) LastHigh() []byte {
	var last []byte
	for ; l != nil; l = l.older {
		if high := l.bound(1); bytes.Compare(high, last) > 0 {
			last = high
		}
	}
	return last
}

// bound returns the first low (0) or the last high bound (1) of this part.
func (l *List) bound(side int) []byte {
	switch {
	case l.nest != nil:
		return l.nest.bounds[side*(len(l.nest.bounds)-1)]
	case side == 0:
		return l.frags[0].Low
	}
	return l.frags[len(l.frags)-1].High
}

// Overlaps reports whether a key of [low, high) is covered; high nil means
// without an upper bound.
func (l *List) Overlaps(low, high []byte) bool {
	if high != nil && bytes.Compare(low, high) >= 0 {
		return false
	}
	for ; l != nil; l = l.older {
		if l.nest != nil && l.nest.overlaps(low, high) || l.nest == nil && l.overlapsFlat(low, high) {
			return true
		}
	}
	return false
}

func (l *List) overlapsFlat(low, high []byte) bool {
	i := l.find(low)
	if i >= 0 && bytes.Compare(low, l.frags[i].High) < 0 {
		return true
	}
	return i+1 < len(l.frags) && (high == nil || bytes.Compare(l.frags[i+1].Low, high) < 0)
}
