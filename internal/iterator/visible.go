package iterator

import (
	"bytes"
	"math"

	"github.com/cairndb/cairn/internal/base"
)

// Source is one run of a reader's view.
type Source struct {
	// It walks the run's points. Of several iterators over one run (the chunks of
	// a memtable) only one needs the Cover.
	It base.Iterator
	// Cover returns the greatest sequence vis sees of the run's range tombstones
	// over key, 0 if there is none; nil if the run has no range tombstones. It
	// hides older versions in every source.
	Cover func(key []byte, vis base.Visibility) uint64
	// Alike returns the bounds of keys, from low to before high, around the one that Cover has last found covered, for
	// which it returns the same; nil if that is not known.
	Alike func() (low, high []byte)
	// Plain promises that It holds puts only, one per key, all of them visible to
	// the reader. A single plain source is walked without looking at anything but
	// its keys.
	Plain bool
}

// Visible walks the rows a reader sees: of each key in bounds the newest visible
// version, unless that is a delete or an even newer visible range tombstone
// covers it.
//
// Every positioning method reports whether it stands on a row afterwards; false
// means the end or an error, and Err tells which. Once off either end it stays
// off until First, Last or a seek. The zero value has no rows; Init makes it
// useful.
type Visible struct {
	merged Merging
	its    []base.Iterator
	covers []func(key []byte, vis base.Visibility) uint64
	alike  []func() (low, high []byte) // of each of these

	vis        base.Visibility
	low, high  []byte
	highPrefix uint64 // a lesser prefix is below high

	valid bool
	plain bool // the only source is plain, and nothing hides a row
	key   []byte
	seq   uint64
	err   error
	stretch
	behind
	gapWalk

	strode  int  // see TakeStrode
	skipped bool // a source stands farther on than the walk has come: it cannot turn round there
}

// New returns an unpositioned iterator; see Init.
func New(sources []Source, vis base.Visibility, low, high []byte) *Visible {
	v := &Visible{}
	v.Init(sources, vis, low, high)
	return v
}

// Init makes v an unpositioned iterator over the rows with keys in [low, high)
// that vis sees; nil bounds are no bounds. It owns the iterators of the sources
// from now on and keeps the bounds, but not the slice. What v had before is
// forgotten, not closed. A v that is used again does not allocate.
func (v *Visible) Init(sources []Source, vis base.Visibility, low, high []byte) {
	clear(v.its)
	clear(v.covers)
	clear(v.alike)
	v.its, v.covers, v.alike = v.its[:0], v.covers[:0], v.alike[:0]
	for _, s := range sources {
		v.its = append(v.its, s.It)
		if s.Cover != nil {
			v.covers, v.alike = append(v.covers, s.Cover), append(v.alike, s.Alike)
		}
	}
	v.plain = len(sources) == 1 && sources[0].Plain && len(v.covers) == 0
	v.merged.Init(v.its)
	v.vis, v.low, v.high = vis, low, high
	v.highPrefix = math.MaxUint64
	if high != nil {
		v.highPrefix = base.Head(high)
	}
	v.valid, v.key, v.err = false, nil, nil
	v.stretch = stretch{}
	v.behind.reset()
	v.gaps, v.skipped = nil, false
}

// Reset is Init without sources: it lets go of everything but the buffers.
func (v *Visible) Reset() { v.Init(nil, base.Visibility{}, nil, nil) }

// First moves to the first row.
func (v *Visible) First() bool {
	if v.low != nil {
		return v.SeekGE(v.low)
	}
	v.begin()
	return v.forward(v.merged.First())
}

// Last moves to the last row.
func (v *Visible) Last() bool {
	if v.high != nil {
		return v.SeekLT(v.high)
	}
	v.begin()
	return v.backward(v.merged.Last())
}

// SeekGE moves to the first row with a key >= key. The key may be v.Key().
func (v *Visible) SeekGE(key []byte) bool {
	v.begin()
	if v.low != nil && bytes.Compare(key, v.low) < 0 {
		key = v.low
	}
	if v.high != nil && bytes.Compare(key, v.high) >= 0 {
		return v.off()
	}
	v.own = append(v.own[:0], key...) // key may live in what moves now
	return v.forward(v.merged.SeekGE(v.own))
}

// SeekLT moves to the last row with a key < key. The key may be v.Key().
func (v *Visible) SeekLT(key []byte) bool {
	v.begin()
	if v.high != nil && bytes.Compare(key, v.high) > 0 {
		key = v.high
	}
	if v.low != nil && bytes.Compare(key, v.low) <= 0 {
		return v.off()
	}
	v.own = append(v.own[:0], key...)
	return v.backward(v.merged.SeekLT(v.own))
}

// begin forgets the position; the sources are about to be positioned anew.
func (v *Visible) begin() {
	v.err = nil
	v.stretch = stretch{}
	v.behind.reset()
	v.begins, v.skipped = true, false
}

// off ends the walk outside the bounds.
func (v *Visible) off() bool {
	v.valid, v.key = false, nil
	return false
}

// end ends the walk where the sources ended, or failed.
func (v *Visible) end() bool {
	v.err = v.merged.Err()
	return v.off()
}

// Next moves to the next row.
func (v *Visible) Next() bool {
	if v.Advance() {
		return true
	}
	v.leaveStretch()
	switch {
	case !v.valid:
		return false
	case v.plain:
		return v.plainForward(v.merged.one.Next())
	case v.reverse:
		return v.turnForward()
	}
	return v.forward(v.merged.NextKey())
}

// Prev moves to the previous row.
func (v *Visible) Prev() bool {
	if v.Retreat() {
		return true
	}
	v.leaveStretch()
	switch {
	case !v.valid:
		return false
	case v.plain:
		return v.plainBackward(v.merged.one.Prev())
	case v.reverse:
		return v.stepBackward()
	}
	return v.turnBackward()
}

// forward goes on to the first row at or after the entry that the sources stand
// on, the newest of its key, if ok. The newest version that is visible decides
// about its key.
func (v *Visible) forward(ok bool) bool {
	if v.plain {
		return v.plainForward(ok)
	}
	m, hidden := &v.merged, 0 // keys without a row, and versions that are not seen
	for ok {
		it := m.one // this loop runs per row: calls of m would come on top of calls of it
		var key []byte
		if it != nil {
			key = it.Key()
		} else {
			it, key = m.src[m.win], m.heads[m.win].key
		}
		if base.Head(key) >= v.highPrefix && v.high != nil && bytes.Compare(key, v.high) >= 0 {
			v.forwardOut(hidden, v.high)
			return v.off()
		}
		seq := it.Seq()
		seen := v.vis.Sees(seq)
		if seen && it.Kind() == base.KindPut && (len(v.covers) == 0 || !v.covered(key, seq)) {
			v.key, v.seq, v.valid = key, seq, true
			if hidden >= askAfter {
				v.forwardOut(hidden, key)
			}
			v.beginStretch()
			return true
		}
		if hidden++; v.ask(hidden) {
			var moved bool
			if moved, ok = v.forwardOver(key, hidden); moved {
				continue
			}
		}
		if hidden%skipEvery == 0 && len(v.covers) > 0 {
			var skipped bool
			if skipped, ok = v.skipForward(); skipped {
				continue
			}
		}
		if seen {
			ok = m.NextKey()
		} else {
			ok = m.Next() // an older version may be seen
		}
	}
	if v.merged.Err() == nil {
		v.forwardOut(hidden, v.high)
	}
	return v.end()
}

// covered reports whether a visible range tombstone newer than seq covers key.
func (v *Visible) covered(key []byte, seq uint64) bool {
	for _, cover := range v.covers {
		if cover(key, v.vis) > seq {
			return true
		}
	}
	return false
}

// Valid reports whether v stands on a row.
func (v *Visible) Valid() bool { return v.valid }

// Key returns the row's key, valid until the next positioning call; nil if v
// does not stand on a row.
func (v *Visible) Key() []byte { return v.key }

// Seq returns the sequence of the row that v stands on.
func (v *Visible) Seq() uint64 {
	if v.valid && (v.plain || v.cur != nil || v.strider != nil) {
		return v.merged.Seq()
	}
	return v.seq
}

// At returns which of the sources has the row that v stands on after a move forward.
func (v *Visible) At() int { return v.merged.current() }

// Value returns the row's value, valid until the next positioning call. Nothing
// of it is read before the call. If it fails the row stays current, unless
// moving onto its version failed: then Err is set too.
func (v *Visible) Value() ([]byte, error) {
	switch {
	case !v.valid:
		return nil, v.err
	case v.reverse && !v.on:
		return v.valueBehind()
	case v.cur != nil:
		if value, ok := v.cur.Value(); ok {
			return value, nil
		}
	}
	return v.merged.Value()
}

// Err returns why the walk ended early, nil if it did not.
func (v *Visible) Err() error { return v.err }

// Close closes the iterators of the sources and returns their first error. v has
// no rows afterwards; closing it again does nothing.
func (v *Visible) Close() error {
	var first error
	for _, it := range v.its {
		if err := it.Close(); first == nil {
			first = err
		}
	}
	v.Reset()
	return first
}
