package iterator

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// A Visible over a single plain source has nothing to decide: the entries are
// the rows, and in both directions it stands on the row's version.

// plainForward takes the entry that the source stands on, if ok, as the row.
func (v *Visible) plainForward(ok bool) bool {
	if !ok {
		return v.end()
	}
	key := v.merged.one.Key()
	if base.Head(key) >= v.highPrefix && v.high != nil && bytes.Compare(key, v.high) >= 0 {
		return v.off()
	}
	v.key, v.valid = key, true
	return true
}

// plainBackward is plainForward for the other direction.
func (v *Visible) plainBackward(ok bool) bool {
	if !ok {
		return v.end()
	}
	key := v.merged.one.Key()
	if v.low != nil && bytes.Compare(key, v.low) < 0 {
		return v.off()
	}
	v.key, v.valid = key, true
	return true
}
