package iterator

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// behind is what Visible knows of its row while it goes backward. The sources
// have then passed all versions of the row's key: only after the newest one, met
// last, is it known which counts. Going back onto that version is left until its
// value is wanted, and then only the one source that holds it moves. A version that
// is known to be the only one is not passed: the sources stand on it.
type behind struct {
	reverse bool
	on      bool   // going backward: the sources stand on the row
	own     []byte // the row's key
	source  int    // which source has the row's version, -1: no version is visible
	steps   int    // how many steps forward of where that source stands
	onto    bool   // the source has taken these steps
	above   []byte // memory for a bound
}

func (b *behind) reset() { b.reverse, b.onto = false, false }

// backward goes on to the last row at or before the entry that the sources stand
// on, the oldest of its key, if ok.
func (v *Visible) backward(ok bool) bool {
	if v.plain {
		return v.plainBackward(ok)
	}
	v.reverse = true
	hidden := 0 // keys without a row
	for ok {
		v.own = append(v.own[:0], v.merged.Key()...)
		if v.low != nil && bytes.Compare(v.own, v.low) < 0 {
			v.backwardOut(hidden, v.low)
			return v.off()
		}
		var kind base.Kind
		if v.on = v.merged.sole(); v.on {
			kind = v.version()
		} else if kind, ok = v.versions(); !ok && v.merged.Err() != nil {
			break // a newer version may be where it failed
		}
		if v.source >= 0 && kind == base.KindPut && !v.covered(v.own, v.seq) {
			if v.key, v.valid = v.own, true; hidden >= askAfter {
				v.backwardOut(hidden, append(v.own, 0))
			}
			if v.on {
				v.beginStretchBack()
			}
			return true
		}
		if v.on {
			ok = v.merged.Prev()
		}
		if hidden++; ok && v.ask(hidden) {
			_, ok = v.backwardOver(v.own, hidden) // versions has moved, if that does not
		}
		if ok && hidden%skipEvery == 0 && len(v.covers) > 0 {
			ok = v.skipBackward()
		}
	}
	if v.merged.Err() == nil {
		v.backwardOut(hidden, v.low)
	}
	return v.end()
}

// version notes the only version of the key own, on which the sources stand, if it is visible.
func (v *Visible) version() (kind base.Kind) {
	if v.source = -1; v.vis.Sees(v.merged.Seq()) {
		v.source, v.seq, kind = v.merged.current(), v.merged.Seq(), v.merged.Kind()
	}
	return kind
}

// versions passes the versions of the key own, the oldest first, and notes the
// newest visible one. ok tells whether there is an entry before them.
func (v *Visible) versions() (kind base.Kind, ok bool) {
	v.source = -1
	for passed := 0; ; passed++ {
		at := v.merged.current()
		if seq := v.merged.Seq(); v.vis.Sees(seq) {
			v.source, v.steps, v.seq, kind = at, 0, seq, v.merged.Kind()
			if passed > mostPassed && v.merged.newest(v.vis) {
				passed = 0
				continue
			}
		}
		if at == v.source {
			v.steps++
		}
		if !v.merged.Prev() {
			return kind, false
		}
		if !equal(v.merged.Key(), v.own) {
			return kind, true
		}
	}
}

// mostPassed is how many versions of a key are passed one by one.
const mostPassed = 16

// valueBehind reads the value of the row that the sources have passed.
func (v *Visible) valueBehind() ([]byte, error) {
	it := v.its[v.source]
	if !v.onto {
		v.onto = true
		if !forwardBy(it, v.steps) {
			v.err = it.Err()
			v.off()
			return nil, v.err
		}
	}
	return it.Value()
}

// forwardBy takes n > 0 steps; from nowhere, the front, the first one is First.
func forwardBy(it base.Iterator, n int) bool {
	if !it.Valid() {
		if !it.First() {
			return false
		}
		n--
	}
	for ; n > 0; n-- {
		if !it.Next() {
			return false
		}
	}
	return true
}

// restore undoes the steps of valueBehind. It returns false after an error.
func (v *Visible) restore() bool {
	if !v.onto {
		return true
	}
	v.onto = false
	it := v.its[v.source]
	for range v.steps {
		it.Prev()
	}
	if v.err = it.Err(); v.err != nil {
		return v.off()
	}
	v.merged.reload(v.source)
	return true
}

// stepBackward goes from the row behind the sources, or on which they stand, to the previous one.
func (v *Visible) stepBackward() bool {
	if v.on {
		return v.backward(v.merged.Prev())
	}
	return v.restore() && v.backward(v.merged.Valid())
}

// turnBackward goes from the row the sources stand on to the previous one.
func (v *Visible) turnBackward() bool {
	if v.skipped {
		return v.SeekLT(v.key)
	}
	v.own = append(v.own[:0], v.key...)
	ok := v.merged.Prev()
	for ok && equal(v.merged.Key(), v.own) {
		ok = v.merged.Prev()
	}
	return v.backward(ok)
}

// turnForward goes from the row behind the sources, or on which they stand, to the next one.
func (v *Visible) turnForward() bool {
	if v.skipped {
		return v.SeekGE(append(v.own, 0))
	}
	if !v.restore() {
		return false
	}
	v.reverse = false
	ok := false
	if v.merged.Valid() {
		ok = v.merged.Next()
	} else {
		ok = v.merged.First()
	}
	for ok && equal(v.merged.Key(), v.own) {
		ok = v.merged.Next()
	}
	return v.forward(ok)
}
