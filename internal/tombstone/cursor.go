package tombstone

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// Cursor answers Cover for keys that mostly stand close to each other, as in a
// scan: one or two comparisons instead of a search. It may go in any direction.
type Cursor struct {
	list *List // settled
	at   int   // the gap before fragment at+1, or fragment at, was last asked for; -1 before all
}

// Cursor returns a cursor over l.
func (l *List) Cursor() Cursor { return Cursor{list: l.Settle(), at: -1} }

// Cover is List.Cover.
func (c *Cursor) Cover(key []byte, vis base.Visibility) uint64 {
	l := c.list
	if l == nil {
		return 0
	}
	if l.nest != nil {
		return l.nest.cover(key, vis)
	}
	if !c.holds(key) {
		if c.at++; !c.holds(key) {
			c.at = l.find(key)
		}
	}
	if c.at < 0 || bytes.Compare(key, l.frags[c.at].High) >= 0 {
		return 0
	}
	return newestSeen(l.frags[c.at].Seqs, vis)
}

// holds reports whether fragment at is the last one with a low bound <= key.
func (c *Cursor) holds(key []byte) bool {
	f := c.list.frags
	return c.at < len(f) &&
		(c.at < 0 || bytes.Compare(f[c.at].Low, key) <= 0) &&
		(c.at+1 >= len(f) || bytes.Compare(key, f[c.at+1].Low) < 0)
}
