package iterator

import (
	"bytes"
	"math"
)

// Dated may be implemented by a base.Iterator that knows how new its rows are: those of each of its parts, of which one or
// more lie one behind the other.
type Dated interface {
	// NewestSeq returns a sequence that no row of the part in which it stands exceeds.
	NewestSeq() uint64
	// SkipGE moves forward to the first entry with a key >= key, or to one before it that is not in that part: no entry that it
	// passes has a sequence of below or more, which is greater than NewestSeq.
	SkipGE(key []byte, below uint64) bool
	// SkipLT moves back to the last entry with a key < key, or to one behind it likewise.
	SkipLT(key []byte, below uint64) bool
}

// skipEvery is how many keys without a row a walk passes before it looks whether range deletes hide what follows, each time:
// a seek is to cost less than they did.
const skipEvery = 8

// mostAlike is how many stretches that are covered alike are looked at for one seek.
const mostAlike = 64

// skipForward moves the source that the walk stands in over all that range deletes hide there, if they are newer than all
// its rows. Other sources stay: they may have newer rows there. ok is false where the walk ends.
func (v *Visible) skipForward() (skipped, ok bool) {
	d, is := v.merged.src[v.merged.current()].(Dated)
	if !is {
		return false, true
	}
	var high []byte
	newest, below, key := d.NewestSeq(), uint64(math.MaxUint64), v.merged.Key()
	for range mostAlike {
		cover, seq := v.covering(key, newest)
		if cover < 0 {
			break
		}
		below = min(below, seq)
		_, high = v.alike[cover]()
		if key = high; v.high != nil && bytes.Compare(high, v.high) >= 0 {
			break
		}
	}
	if high == nil {
		return false, true
	}
	v.skipped = true
	return true, v.merged.moved(d.SkipGE(high, below))
}

// skipBackward is skipForward for the other direction.
func (v *Visible) skipBackward() (ok bool) {
	d, is := v.merged.src[v.merged.current()].(Dated)
	if !is {
		return true
	}
	cover, below := v.covering(v.merged.Key(), d.NewestSeq())
	if cover < 0 {
		return true
	}
	low, _ := v.alike[cover]()
	v.skipped = true
	return v.merged.moved(d.SkipLT(low, below))
}

// covering returns which of the covers has a visible range tombstone over key that is newer than seq, and its sequence; its
// alike tells how far that goes. -1: none.
func (v *Visible) covering(key []byte, seq uint64) (i int, newer uint64) {
	for i, cover := range v.covers {
		if v.alike[i] == nil {
			continue
		}
		if newer := cover(key, v.vis); newer > seq {
			return i, newer
		}
	}
	return -1, 0
}

// moved takes up that the current source has moved on in the direction of the walk, ok telling whether it stands on an entry.
func (m *Merging) moved(ok bool) bool {
	if m.one != nil {
		return ok
	}
	return m.advance(ok)
}

// NewestSeq implements Dated: the parts are those of the list.
func (c *Concat) NewestSeq() uint64 {
	if d, ok := c.it.(Dated); ok {
		return d.NewestSeq()
	}
	return math.MaxUint64
}

// SkipGE implements Dated.
func (c *Concat) SkipGE(key []byte, below uint64) bool {
	return c.it.(Dated).SkipGE(key, below) || c.onward()
}

// SkipLT implements Dated.
func (c *Concat) SkipLT(key []byte, below uint64) bool {
	return c.it.(Dated).SkipLT(key, below) || c.back()
}
