package iterator

import (
	"bytes"
	"sort"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// Concat walks a list of ordered parts that do not overlap, one after another:
// every key of a part is less than every key of the next, so that all versions
// of a key are in one part. At most one part is open at a time. It implements
// base.Iterator, KeyStepper, Stretcher, Carrier, VersionTeller and Dated: of the open part, if that does.
type Concat struct {
	n      int
	bounds func(i int) (smallest, largest []byte)
	open   func(i int) (base.Iterator, error)

	at    int           // the part that is or was open last
	it    base.Iterator // nil: none is open
	step  KeyStepper    // it, if it is one
	saved []byte
	err   error
}

// NewConcat returns an unpositioned iterator over n parts. bounds returns keys
// between which all keys of part i lie (either may be exclusive), ascending with
// i; open opens it. A part is closed as soon as it is left.
func NewConcat(n int, bounds func(i int) (smallest, largest []byte), open func(i int) (base.Iterator, error)) *Concat {
	return &Concat{n: n, bounds: bounds, open: open}
}

// Reset makes a closed c one over n parts, with the same functions.
func (c *Concat) Reset(n int) { c.n, c.at, c.err = n, 0, nil }

// enter opens part i, unless it is open already. It returns false after an
// error, and if there is no such part; then none is open.
func (c *Concat) enter(i int) bool {
	if c.it != nil && c.at == i {
		return true
	}
	if !c.leave() || i < 0 || i >= c.n {
		return false
	}
	it, err := c.open(i)
	if err != nil {
		c.err = err
		return false
	}
	c.it, c.at = it, i
	c.step, _ = it.(KeyStepper)
	return true
}

// leave closes the open part. It returns false after an error.
func (c *Concat) leave() bool {
	if c.it == nil {
		return true
	}
	err := c.it.Close()
	c.it, c.step = nil, nil
	if err != nil {
		c.err = err
	}
	return err == nil
}

// onward goes to the parts after the open one until there is an entry.
func (c *Concat) onward() bool {
	for c.healthy() && c.enter(c.at+1) {
		if c.it.First() {
			return true
		}
	}
	return false
}

// back goes to the parts before the open one until there is an entry.
func (c *Concat) back() bool {
	for c.healthy() && c.enter(c.at-1) {
		if c.it.Last() {
			return true
		}
	}
	return false
}

// healthy reports whether the open part ran off its end rather than failed.
func (c *Concat) healthy() bool {
	err := c.it.Err()
	if err != nil {
		c.leave()
		c.err = err
	}
	return err == nil
}

// First implements base.Iterator.
func (c *Concat) First() bool {
	c.err = nil
	return c.enter(0) && (c.it.First() || c.onward())
}

// Last implements base.Iterator.
func (c *Concat) Last() bool {
	c.err = nil
	return c.enter(c.n-1) && (c.it.Last() || c.back())
}

// SeekGE implements base.Iterator.
func (c *Concat) SeekGE(key []byte) bool {
	c.err = nil
	i := c.search(func(i int) bool {
		_, largest := c.bounds(i)
		return bytes.Compare(largest, key) >= 0
	})
	return c.enter(i) && (c.it.SeekGE(key) || c.onward())
}

// SeekLT implements base.Iterator.
func (c *Concat) SeekLT(key []byte) bool {
	c.err = nil
	i := c.search(func(i int) bool {
		smallest, _ := c.bounds(i)
		return bytes.Compare(smallest, key) >= 0
	})
	return c.enter(i-1) && (c.it.SeekLT(key) || c.back())
}

// search returns the first part for which reached, false up to some part and
// true from there on, is true; n if none. It begins at the part open last and
// goes on in growing strides, as most seeks are short.
func (c *Concat) search(reached func(i int) bool) int {
	lo, hi := 0, c.n // the answer is in [lo, hi]
	if c.at < c.n && reached(c.at) {
		hi = c.at
		for stride := 1; hi-stride >= lo; stride *= 2 {
			if !reached(hi - stride) {
				lo = hi - stride + 1
				break
			}
			hi -= stride
		}
	} else {
		lo = min(c.at+1, c.n)
		for stride := 1; lo+stride <= hi; stride *= 2 {
			if reached(lo + stride - 1) {
				hi = lo + stride - 1
				break
			}
			lo += stride
		}
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return reached(lo + i) })
}

// Next implements base.Iterator.
func (c *Concat) Next() bool { return c.it != nil && (c.it.Next() || c.onward()) }

// NextKey implements KeyStepper.
func (c *Concat) NextKey() bool {
	return c.it != nil && (nextKey(c.it, c.step, &c.saved) || c.onward())
}

// Stretch implements Stretcher: stretches of the open part.
func (c *Concat) Stretch(limit []byte, snapshot uint64) (*block.Cursor, int) {
	if s, ok := c.it.(Stretcher); ok {
		return s.Stretch(limit, snapshot)
	}
	return nil, 0
}

// StretchBack implements Stretcher.
func (c *Concat) StretchBack(low []byte, snapshot uint64) (*block.Cursor, int) {
	if s, ok := c.it.(Stretcher); ok {
		return s.StretchBack(low, snapshot)
	}
	return nil, 0
}

// Whole implements Carrier: blocks of the open part.
func (c *Concat) Whole(limit []byte) (raw int, codec block.Codec, ok bool) {
	if b, is := c.it.(Carrier); is {
		return b.Whole(limit)
	}
	return 0, 0, false
}

// Carry implements Carrier.
func (c *Concat) Carry(dst *block.Stored) error { return c.it.(Carrier).Carry(dst) }

// SkipBlock implements Carrier.
func (c *Concat) SkipBlock() bool { return c.it.(Carrier).SkipBlock() || c.onward() }

// IsNewest implements VersionTeller: all versions of a key are in one part.
func (c *Concat) IsNewest() bool {
	t, ok := c.it.(VersionTeller)
	return ok && t.IsNewest()
}

// Prev implements base.Iterator.
func (c *Concat) Prev() bool { return c.it != nil && (c.it.Prev() || c.back()) }

// Valid implements base.Iterator.
func (c *Concat) Valid() bool { return c.it != nil && c.it.Valid() }

// Key implements base.Iterator.
func (c *Concat) Key() []byte { return c.it.Key() }

// Seq implements base.Iterator.
func (c *Concat) Seq() uint64 { return c.it.Seq() }

// Kind implements base.Iterator.
func (c *Concat) Kind() base.Kind { return c.it.Kind() }

// Value implements base.Iterator.
func (c *Concat) Value() ([]byte, error) { return c.it.Value() }

// Err implements base.Iterator.
func (c *Concat) Err() error { return c.err }

// Close closes the open part.
func (c *Concat) Close() error {
	c.err = nil
	c.leave()
	return c.err
}
