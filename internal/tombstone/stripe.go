package tombstone

import (
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// Stripes are the snapshot sequences that readers may read at, ascending. They
// cut the sequences into stripes: a and b, a < b, are in different stripes if a
// snapshot s tells them apart, a <= s < b. Two versions of one stripe are seen
// by the same snapshots, so that only the newer one can ever be read.
//
// Readers at a sequence not less than every entry concerned need not be listed:
// they are the last stripe's. All others must be, that of the readers that
// begin now included if entries above it are concerned.
type Stripes []uint64

// Of returns the stripe of seq: 0 is the oldest, len(s) that of the sequences no
// snapshot sees.
func (s Stripes) Of(seq uint64) int {
	if len(s) == 0 {
		return 0
	}
	return sort.Search(len(s), func(i int) bool { return s[i] >= seq })
}

// Same reports whether a and b are in one stripe.
func (s Stripes) Same(a, b uint64) bool { return s.Of(a) == s.Of(b) }

// Ceiling returns the greatest sequence in the stripe of seq.
func (s Stripes) Ceiling(seq uint64) uint64 {
	if i := s.Of(seq); i < len(s) {
		return s[i]
	}
	return ^uint64(0)
}

// Newest appends to dst those of the descending seqs that must be kept: the
// newest of each stripe. At the bottom, where nothing older lies below that a
// tombstone could hide, those of the oldest stripe are not needed either.
func (s Stripes) Newest(dst, seqs []uint64, bottom bool) []uint64 {
	last := -1
	for _, q := range seqs {
		stripe := s.Of(q)
		if stripe == 0 && bottom {
			break
		}
		if stripe != last {
			dst = append(dst, q)
		}
		last = stripe
	}
	return dst
}

// Pruner decides which versions of points a compaction keeps, deletes being as
// good as puts. Feed it the versions key by key, newest first.
type Pruner struct {
	Stripes Stripes

	last int // stripe of the previous version of this key, plus one; 0: none
}

// NextKey begins another key.
func (p *Pruner) NextKey() { p.last = 0 }

// Ceiling returns what range tombstones the version seq is to be judged by:
// the newest one that is visible here covers it, or none of its stripe does.
func (p *Pruner) Ceiling(seq uint64) base.Visibility {
	return base.Visibility{Snapshot: p.Stripes.Ceiling(seq)}
}

// Keep reports whether the version must be kept. cover is the sequence of the
// newest range tombstone over its key within Ceiling(seq), 0 if there is none.
func (p *Pruner) Keep(seq, cover uint64) bool {
	stripe := p.Stripes.Of(seq)
	shadowed := p.last == stripe+1 || cover > seq
	p.last = stripe + 1
	return !shadowed
}
