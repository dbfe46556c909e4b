package tombstone

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// Cursor answers Cover of some lists together, for keys that mostly stand close to each other, as in
// a scan: one or two comparisons instead of a search in each list. It may go in any direction.
type Cursor struct {
	places []place
	// Where it stands: keys from low to before high (nil: no limit), which every list covers alike.
	low, high []byte
	placed    bool
}

// place is where a cursor stands in a list.
type place struct {
	list *List
	at   int  // fragment or cell
	in   bool // it stands in that, not in the gap behind it
}

// NewCursor returns a cursor over the tombstones of all lists.
func NewCursor(lists ...*List) *Cursor {
	c := new(Cursor)
	for _, l := range lists {
		if l != nil {
			c.places = append(c.places, place{list: l, at: -1})
		}
	}
	return c
}

// Cover is the greatest List.Cover of all lists.
func (c *Cursor) Cover(key []byte, vis base.Visibility) (seq uint64) {
	if !c.placed || bytes.Compare(key, c.low) < 0 || c.high != nil && bytes.Compare(key, c.high) >= 0 {
		c.move(key)
	}
	for i := range c.places {
		if p := &c.places[i]; p.in && p.list.nest != nil {
			seq = max(seq, p.list.nest.cellCover(p.at, vis))
		} else if p.in {
			seq = max(seq, newestSeen(p.list.frags[p.at].Seqs, vis))
		}
	}
	return seq
}

// Alike returns the bounds of keys, from low to before high (nil: no limit), around the one that Cover was last asked for,
// for which it returns the same.
func (c *Cursor) Alike() (low, high []byte) { return c.low, c.high }

// move goes where key is.
func (c *Cursor) move(key []byte) {
	c.low, c.high, c.placed = nil, nil, true
	for i := range c.places {
		low, high := c.places[i].move(key)
		if bytes.Compare(low, c.low) > 0 {
			c.low = low
		}
		if high != nil && (c.high == nil || bytes.Compare(high, c.high) < 0) {
			c.high = high
		}
	}
}

// move goes where key is, and returns how far the list covers keys alike there.
func (p *place) move(key []byte) (low, high []byte) {
	if n := p.list.nest; n != nil {
		p.at = n.cell(key)
		p.in = p.at >= 0 && p.at < n.cells()
		if p.at >= 0 {
			low = n.bounds[p.at]
		}
		if p.at < n.cells() {
			high = n.bounds[p.at+1]
		}
		return low, high
	}
	frags := p.list.frags
	if !p.holds(key) {
		if p.at++; !p.holds(key) {
			p.at = p.list.find(key)
		}
	}
	if p.in = p.at >= 0 && bytes.Compare(key, frags[p.at].High) < 0; p.in {
		return frags[p.at].Low, frags[p.at].High
	}
	if p.at >= 0 {
		low = frags[p.at].High
	}
	if p.at+1 < len(frags) {
		high = frags[p.at+1].Low
	}
	return low, high
}

// holds reports whether fragment at is the last one with a low bound <= key.
func (p *place) holds(key []byte) bool {
	f := p.list.frags
	return p.at < len(f) &&
		(p.at < 0 || bytes.Compare(f[p.at].Low, key) <= 0) &&
		(p.at+1 >= len(f) || bytes.Compare(key, f[p.at+1].Low) < 0)
}
