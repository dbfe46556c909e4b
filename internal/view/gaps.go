package view

import (
	"bytes"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/memtable"
)

// Gaps is where scans have found keys without a row lately: so many in a row, deleted or newer than they see, that the next scan
// is better told of them than made to pass them. Whoever takes the first of a queue out of it, again and again,
// has all that were in front of it there. All methods may be called at once.
type Gaps struct {
	Longest int // bytes that the bounds of one may have

	all  [mostGaps]atomic.Pointer[gap]
	hand atomic.Uint32 // where to look for one that may go
}

const (
	mostGaps    = 16
	longestGap  = 4 << 10 // bytes that the bounds of a gap may have at least, where there is memory those of two longest keys
	boundsShare = 512     // between: one part in so many of what slices may pin
	fewestKeys  = 8       // of a gap
	fewRecords  = 64      // may be looked at again each time
	recordsEach = 2       // records are looked at for each key of a gap, at most, rather than the keys walked
)

// LongestGap returns what the bounds of a gap may take, where slices may pin so many bytes.
func LongestGap(mayPin int64) int {
	return int(min(max(mayPin/boundsShare, longestGap), 2*base.MaxKeyBytes))
}

// Records are what was put and deleted, in the order of sequences, some of them.
type Records interface {
	// Holds reports whether all records of sequences after one, up to another, are there.
	Holds(after, upTo uint64) bool
	// Changes tells what each of them puts or deletes.
	Changes(after, upTo uint64, told memtable.Changed)
}

// gap says: of the keys from low to before high (nil: no limit) none has a row at any sequence from one up to
// another (E17).
type gap struct {
	low, high []byte
	keys      int // of deleted rows in it, about
	from      uint64
	upTo      atomic.Uint64
	vain      atomic.Int64 // records that older readers have looked at, and were not in what was left of it
	used      atomic.Bool  // lately
}

// newGap copies the bounds.
func newGap(low, high []byte, keys int, from, upTo uint64) *gap {
	bounds := append(append(make([]byte, 0, len(low)+len(high)), low...), high...)
	n := len(low)
	g := &gap{low: bounds[:n:n], keys: keys, from: from}
	if high != nil {
		g.high = bounds[n:]
	}
	g.upTo.Store(upTo)
	return g
}

func (g *gap) holds(key []byte) bool {
	return bytes.Compare(g.low, key) <= 0 && (g.high == nil || bytes.Compare(key, g.high) < 0)
}

// within reports whether all keys of g are in another gap, which holds at a sequence at which g does.
func (g *gap) within(other *gap) bool {
	return g.from <= other.upTo.Load() && other.from <= g.upTo.Load() &&
		bytes.Compare(other.low, g.low) <= 0 && (other.high == nil || g.high != nil && bytes.Compare(g.high, other.high) <= 0)
}

// use notes that somebody is told of g.
func (g *gap) use() {
	if !g.used.Load() {
		g.used.Store(true)
	}
}

// Find returns a gap that holds key at a sequence, and about how many deleted keys it has. What happened between that
// sequence and those for which a gap is known is looked up in the records; where they do not hold all of it, that gap
// is not returned, nor one for which more than so many of them are to be looked at. Of more than a few
// only so many are looked at in vain for readers older than a gap: where keys all over it were changed since, each would be for
// every one of them. cut is memory that Find needs.
func (a *Gaps) Find(records Records, seq uint64, key []byte, mostRecords int, cut *Cut) (low, high []byte, keys int, ok bool) {
	for i := range a.all {
		if g := a.all[i].Load(); g != nil && g.from <= seq && seq <= g.upTo.Load() && g.holds(key) {
			g.use()
			return g.low, g.high, g.keys, true
		}
	}
	for i := range a.all {
		g := a.all[i].Load()
		if g == nil || !g.holds(key) {
			continue
		}
		*cut = Cut{At: key, Low: g.low, High: g.high}
		n := g.keys
		most := uint64(min(n*recordsEach, mostRecords))
		switch upTo := g.upTo.Load(); {
		case seq < g.from: // what was deleted since may be a row
			looks := g.from - seq
			again := looks <= fewRecords
			if looks > most || !again && looks+uint64(g.vain.Load()) > uint64(n*recordsEach) || !records.Holds(seq, g.from) {
				continue
			}
			switch cut.Changed(records, seq, g.from); {
			case again:
			case cut.Holds():
				a.add(newGap(cut.Low, cut.High, n, seq, upTo))
			default: // where the next key is it need not be otherwise
				g.vain.Add(int64(looks))
			}
		case seq > upTo:
			if seq-upTo > most || !records.Holds(upTo, seq) {
				continue
			}
			if cut.Put(records, upTo, seq); cut.first != nil {
				n = a.cut(i, g, cut, seq)
			} else {
				g.upTo.Store(seq) // another walk may have stored another one by now: both are true
			}
		}
		if cut.Holds() {
			g.use()
			return cut.Low, cut.High, n, true
		}
	}
	return nil, nil, 0, false
}

// cut puts what is left of gap number i in its place: around the key that was asked for, before all that was put and
// behind it. Each gets the same share of the keys, which it returns.
func (a *Gaps) cut(i int, g *gap, c *Cut, upTo uint64) (keys int) {
	left := make([]*gap, 0, 3)
	part := func(low, high []byte) {
		if high == nil || bytes.Compare(low, high) < 0 {
			left = append(left, newGap(low, high, 0, g.from, upTo))
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

// Note remembers that so many keys from low to before high (nil: no limit) have no row at a sequence. The bounds are
// the caller's.
func (a *Gaps) Note(low, high []byte, keys int, seq uint64) {
	if len(low)+len(high) <= a.Longest {
		a.add(newGap(low, high, keys, seq, seq))
	}
}

// add puts a gap in the place of those that lie within it, or of none, or else of one that nobody has used lately. One that
// holds at other sequences stays: who looks at these would have to pass its keys again, and take the place in turn.
func (a *Gaps) add(g *gap) {
	if len(g.low)+len(g.high) > a.Longest {
		return
	}
	place := -1
	for i := range a.all {
		switch old := a.all[i].Load(); {
		case old == nil:
			if place < 0 {
				place = i
			}
		case old.within(g):
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
// are taken out. It has them as bounds from then on.
type Cut struct {
	At, Low, High []byte

	low, high   []byte // what it was when the last Put began
	first, last []byte // of those between that were put; nil: none
}

// Put takes the keys out that records of sequences after one, up to another, put.
func (c *Cut) Put(records Records, after, upTo uint64) {
	c.low, c.high = c.Low, c.High
	records.Changes(after, upTo, (*withoutPuts)(c))
}

type withoutPuts Cut

// Change implements memtable.Changed.
func (p *withoutPuts) Change(kind base.Kind, key, _ []byte) {
	c := (*Cut)(p)
	if kind != base.KindPut || bytes.Compare(key, c.low) < 0 || c.high != nil && bytes.Compare(key, c.high) >= 0 {
		return
	}
	if c.first == nil || bytes.Compare(key, c.first) < 0 {
		c.first = key
	}
	if c.last == nil || bytes.Compare(key, c.last) > 0 {
		c.last = key
	}
	c.without(key)
}

// Changed takes the keys out that records of sequences after one, up to another, put or delete.
func (c *Cut) Changed(records Records, after, upTo uint64) {
	records.Changes(after, upTo, (*withoutChanged)(c))
}

type withoutChanged Cut

// Change implements memtable.Changed.
func (p *withoutChanged) Change(kind base.Kind, key, end []byte) {
	switch c := (*Cut)(p); {
	case kind != base.KindRangeDelete || bytes.Compare(key, c.At) > 0:
		c.without(key)
	case bytes.Compare(end, c.At) > 0:
		c.without(c.At)
	case bytes.Compare(end, c.Low) > 0:
		c.Low = end
	}
}

// without takes a key out.
func (c *Cut) without(key []byte) {
	if bytes.Compare(key, c.At) < 0 {
		if bytes.Compare(key, c.Low) >= 0 {
			c.Low = after(key)
		}
	} else if c.High == nil || bytes.Compare(key, c.High) < 0 {
		c.High = key
	}
}

// Holds reports whether At is left.
func (c *Cut) Holds() bool { return c.High == nil || bytes.Compare(c.At, c.High) < 0 }
