package tombstone

import (
	"bytes"
	"iter"
	"slices"
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
	l := &List{total: total}
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
	if l == nil {
		return 0
	}
	if l.nest != nil {
		return l.nest.cover(key, vis)
	}
	if i := l.find(key); i >= 0 && bytes.Compare(key, l.frags[i].High) < 0 {
		return newestSeen(l.frags[i].Seqs, vis)
	}
	return 0
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

// Len returns the number of sequences in all fragments together.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return l.total
}

// Empty reports whether the list covers no key.
func (l *List) Empty() bool { return l == nil }

// Fragments yields the fragments in ascending order. Seqs is valid until the
// next step; the bounds as long as those given to Build.
func (l *List) Fragments() iter.Seq[Fragment] {
	return func(yield func(Fragment) bool) {
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

// All yields tombstones that Build would make this list of, as they stand, in no
// particular order: each with its whole range, or once for each fragment.
func (l *List) All() iter.Seq[Tombstone] {
	return func(yield func(Tombstone) bool) {
		if l != nil && l.nest != nil {
			slices.Values(l.nest.spans)(yield)
			return
		}
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
	if l == nil {
		return nil
	}
	if l.nest != nil {
		return slices.Clone(l.nest.spans)
	}
	out := make([]Tombstone, 0, l.total)
	for _, f := range l.frags {
		for _, s := range f.Seqs {
			out = append(out, Tombstone{f.Low, f.High, s})
		}
	}
	return normalise(out)
}

// FirstLow returns the least key covered, nil if the list is empty.
func (l *List) FirstLow() []byte {
	switch {
	case l == nil:
		return nil
	case l.nest != nil:
		return l.nest.bounds[0]
	}
	return l.frags[0].Low
}

// LastHigh returns the least key above all covered ones, nil if the list is empty.
func (l *List) LastHigh() []byte {
	switch {
	case l == nil:
		return nil
	case l.nest != nil:
		return l.nest.bounds[len(l.nest.bounds)-1]
	}
	return l.frags[len(l.frags)-1].High
}
