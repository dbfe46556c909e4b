package txn

import (
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/view"
)

// gaps are those of the store, as an iterator sees it.
type gaps Iter

var _ iterator.Gaps = (*gaps)(nil)

// mostOwn is how many records of its own a transaction has, at most, that takes gaps: it looks at all of them each time.
const mostOwn = 1 << 10

// Gap implements iterator.Gaps: where the store has no row the transaction may have one.
func (it *gaps) Gap(key []byte) (low, high []byte, keys int, ok bool) {
	own := 0
	if it.writes != nil {
		own = it.writes.Len()
	}
	if own > mostOwn || len(it.spills) > 0 {
		return nil, nil, 0, false
	}
	low, high, keys, ok = it.tx.e.Gaps.Find(it.rs, it.vis.Snapshot, key)
	if !ok || own == 0 {
		return low, high, keys, ok
	}
	cut := view.Cut{At: key, Low: low, High: high}
	cut.Take(it.writes.Puts(0, own))
	return cut.Low, cut.High, keys, cut.Holds()
}

// NoteGap implements iterator.Gaps, unless the transaction has deleted something itself.
func (it *gaps) NoteGap(low, high []byte, keys int) {
	if it.writes == nil || it.writes.Len() == 0 && len(it.spills) == 0 {
		it.tx.e.Gaps.Note(low, high, keys, it.vis.Snapshot)
	}
}
