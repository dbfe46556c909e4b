package view

import (
	"bytes"
	"iter"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/tree"
)

// Gaps is where scans have found keys without a row lately: so many deleted ones in a row that the next scan
// is better told of them than made to pass them. Whoever takes the first of a queue out of it, again and again,
// has all that were in front of it there. The zero value is empty; all methods may be called at once.
type Gaps struct {
	all  [mostGaps]atomic.Pointer[gap]
	hand atomic.Uint32 // where to look for one that may go
}

const (
	mostGaps    = 16
	longestGap  = 1 << 10 // bytes of its bounds
	fewestKeys  = 8       // of a gap
	recordsEach = 2       // records are looked at for each key of a gap, at most, rather than the keys walked
)

// gap says: of the keys from low to before high (nil: no limit) none has a row at any sequence from seq on, unless
// it was put after seq (E17).
type gap struct {
	low, high []byte
	keys      int // of deleted rows in it, about
	seq       atomic.Uint64
	used      atomic.Bool // lately
}

// newGap copies the bounds.
func newGap(low, high []byte, keys int, seq uint64) *gap {
	bounds := append(append(make([]byte, 0, len(low)+len(high)), low...), high...)
	n := len(low)
	g := &gap{low: bounds[:n:n], keys: keys}
	if high != nil {
		g.high = bounds[n:]
	}
	g.seq.Store(seq)
	return g
}

func (g *gap) holds(key []byte) bool {
	return bytes.Compare(g.low, key) <= 0 && (g.high == nil || bytes.Compare(key, g.high) < 0)
}

// within reports whether all of g is in [low, high).
func (g *gap) within(low, high []byte) bool {
	return bytes.Compare(low, g.low) <= 0 && (high == nil || g.high != nil && bytes.Compare(g.high, high) <= 0)
}

// Find returns a gap that holds key, as a snapshot sees the State, and about how many deleted keys it has.
func (a *Gaps) Find(rs *tree.State, snapshot uint64, key []byte) (low, high []byte, keys int, ok bool) {
	for i := range a.all {
		g := a.all[i].Load()
		if g == nil || !g.holds(key) {
			continue
		}
		seq := g.seq.Load()
		if seq > snapshot {
			continue // what was deleted meanwhile may be a row to who sees less
		}
		since := snapshot - seq
		if since > uint64(g.keys*recordsEach) || since > 0 && !rs.MemoryHolds(seq+1) {
			a.all[i].CompareAndSwap(g, nil)
			continue
		}
		cut := Cut{At: key, Low: g.low, High: g.high}
		if since > 0 {
			cut.Take(rs.Puts(seq, snapshot))
		}
		keys = g.keys
		if cut.first != nil {
			keys = a.cut(i, g, &cut, snapshot)
		} else if since > 0 {
			g.seq.Store(snapshot) // another walk may have stored another one by now: both are true
		}
		if cut.Holds() {
			if !g.used.Load() {
				g.used.Store(true)
			}
			return cut.Low, cut.High, keys, true
		}
	}
	return nil, nil, 0, false
}

// cut puts what is left of gap number i in its place: around the key that was asked for, before all that was put and
// behind it. Each gets the same share of the keys, which it returns.
func (a *Gaps) cut(i int, g *gap, c *Cut, seq uint64) (keys int) {
	left := make([]*gap, 0, 3)
	part := func(low, high []byte) {
		if high == nil || bytes.Compare(low, high) < 0 {
			left = append(left, newGap(low, high, 0, seq))
		}
	}
	if c.Holds() {
		part(c.Low, c.High)
	}
	if bytes.Compare(c.first, c.At) < 0 {
		part(g.low, c.first)
	}
	if bytes.Compare(c.last, c.At) >= 0 {
		part(after(c.last), g.high)
	}
	if keys = g.keys / max(len(left), 1); !a.all[i].CompareAndSwap(g, nil) || keys < fewestKeys {
		return keys
	}
	for _, part := range left {
		part.keys = keys
		a.add(part)
	}
	return keys
}

// Note remembers that so many keys from low to before high (nil: no limit) have no row that snapshot sees. The
// bounds are the caller's.
func (a *Gaps) Note(low, high []byte, keys int, snapshot uint64) {
	a.add(newGap(low, high, keys, snapshot))
}

// add makes room for a gap: where one is that it holds, which it is as new as, or one that nobody has used.
func (a *Gaps) add(g *gap) {
	if len(g.low)+len(g.high) > longestGap {
		return
	}
	place := -1
	for i := range a.all {
		switch old := a.all[i].Load(); {
		case old == nil:
			if place < 0 {
				place = i
			}
		case old.within(g.low, g.high):
			if a.all[i].CompareAndSwap(old, nil) {
				place = i
			}
		}
	}
	for range 2 * mostGaps {
		if place >= 0 {
			break
		}
		i := int(a.hand.Add(1) % mostGaps)
		if old := a.all[i].Load(); old == nil || !old.used.Swap(false) {
			place = i
		}
	}
	if place >= 0 {
		a.all[place].Store(g)
	}
}

// after returns the next key.
func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

// Cut is what is left around At of the keys from Low to before High (nil: no limit), of which it is one, where some
// of them were put.
type Cut struct {
	At, Low, High []byte

	first, last []byte // of those that were put; nil: none
}

// Take takes keys out that were put. The cut has them as bounds from then on.
func (c *Cut) Take(keys iter.Seq[[]byte]) {
	whole := *c
	for key := range keys {
		if bytes.Compare(key, whole.Low) < 0 || whole.High != nil && bytes.Compare(key, whole.High) >= 0 {
			continue
		}
		if c.first == nil || bytes.Compare(key, c.first) < 0 {
			c.first = key
		}
		if c.last == nil || bytes.Compare(key, c.last) > 0 {
			c.last = key
		}
		if bytes.Compare(key, c.At) >= 0 {
			if c.High == nil || bytes.Compare(key, c.High) < 0 {
				c.High = key
			}
		} else if bytes.Compare(key, c.Low) >= 0 {
			c.Low = after(key)
		}
	}
}

// Holds reports whether At is left.
func (c *Cut) Holds() bool { return c.High == nil || bytes.Compare(c.At, c.High) < 0 }
