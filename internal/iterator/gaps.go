package iterator

import (
	"bytes"
	"math"
)

// Gaps remembers where a walk has found no row, though sources have keys there: each was deleted, or is not seen yet.
type Gaps interface {
	// Gap returns keys, from low to before high (nil: no limit), that have no row and of
	// which key is one, and how many the sources have there. They stay as they are. To find out it looks at so many
	// records, at most, that were written lately.
	Gap(key []byte, records int) (low, high []byte, keys int, ok bool)
	// NoteGap is told of so many keys without a row, from low to before high (nil: no limit).
	// The bounds are the caller's.
	NoteGap(low, high []byte, keys int)
}

// How many keys without a row a walk passes one by one before it asks whether they are known, and
// before it has them remembered: the one is to cost less than they did, the other to be worth it.
const (
	askAfter  = 8
	noteAfter = 64
	// mostAtFirst is at how many records it may look who asks at the first key.
	mostAtFirst = 16
)

// gapWalk is what Visible knows of the keys without a row that it passes.
type gapWalk struct {
	gaps   Gaps // nil: none
	begins bool // no key without a row was passed since it was positioned
	edge   []byte
	known  int // of the keys behind the edge, how many were in gaps
	since  int // how many keys it had passed when it came out of the last of them
	passed int // keys, by all walks; see TakePassed
}

// UseGaps makes v ask gaps, and tell them, until Init is called again.
func (v *Visible) UseGaps(gaps Gaps) { v.gaps = gaps }

// TakePassed returns how many keys without a row were passed one by one since it was called last, but for
// the few of each short walk.
func (v *Visible) TakePassed() int {
	n := v.passed
	v.passed = 0
	return n
}

// ask reports whether it is time to ask for a gap, when n keys without a row were passed since the last row: at the first
// one, too, of a walk, where the gap of who takes the first row again and again begins.
func (g *gapWalk) ask(n int) bool {
	if n == 1 {
		asks := g.begins && g.gaps != nil
		g.begins, g.known = false, 0
		return asks
	}
	return n >= askAfter && n&(n-1) == 0 && g.gaps != nil
}

// mostRecords returns how many records are looked at for the n-th key without a row.
func mostRecords(n int) int {
	if n == 1 {
		return mostAtFirst
	}
	return math.MaxInt
}

// forwardOver is told that key, on which the sources stand, is the n-th without a row, and when to ask. If that
// is known of all keys up to another, it goes there. ok is false where the walk ends.
func (v *Visible) forwardOver(key []byte, n int) (moved, ok bool) {
	if n == 1 || n == askAfter && v.known == 0 {
		v.edge, v.since = append(v.edge[:0], key...), 0
	}
	low, high, keys, found := v.gaps.Gap(key, mostRecords(n))
	if !found {
		return false, true
	}
	if bytes.Compare(low, v.edge) < 0 {
		v.edge = append(v.edge[:0], low...)
	}
	v.known, v.since = v.known+keys, n
	if high == nil || v.high != nil && bytes.Compare(high, v.high) >= 0 {
		return true, false
	}
	return true, v.merged.SeekGE(high)
}

// backwardOver is forwardOver for the other direction. The edge is the bound above.
func (v *Visible) backwardOver(key []byte, n int) (moved, ok bool) {
	if n == 1 || n == askAfter && v.known == 0 {
		v.edge, v.since = append(append(v.edge[:0], key...), 0), 0
	}
	low, high, keys, found := v.gaps.Gap(key, mostRecords(n))
	if !found {
		return false, true
	}
	if high != nil && bytes.Compare(high, v.edge) > 0 {
		v.edge = append(v.edge[:0], high...)
	}
	v.known, v.since = v.known+keys, n
	if bytes.Compare(low, v.low) <= 0 {
		return true, false
	}
	return true, v.merged.SeekLT(low)
}

// worth reports whether a gap of n keys, those that were known aside, is to be remembered.
func (g *gapWalk) worth(n int) bool {
	if n < askAfter || g.gaps == nil {
		return false
	}
	g.passed += n
	return g.known > 0 && n-g.since >= askAfter || g.known == 0 && n >= noteAfter
}

// forwardOut is told that a walk forward has passed n keys without a row up to high, nil at the end of all. The edge is
// there, too, where it has passed versions of the row's key only.
func (v *Visible) forwardOut(n int, high []byte) {
	if v.worth(n) && (high == nil || bytes.Compare(v.edge, high) < 0) {
		v.gaps.NoteGap(v.edge, high, v.known+n)
	}
}

// backwardOut is told that a walk backward has passed n keys without a row down to low.
func (v *Visible) backwardOut(n int, low []byte) {
	if v.worth(n) {
		v.gaps.NoteGap(low, v.edge, v.known+n)
	}
}
