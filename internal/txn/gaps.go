package txn

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/view"
)

// gaps are those of the store and of a transaction's own writes, as an iterator sees them.
type gaps Iter

var _ iterator.Gaps = (*gaps)(nil)

// mostOwn is how many records of its own a transaction has, at most, that takes gaps of the store: it looks at all of
// them each time.
const mostOwn = 1 << 10

// mine returns how many records of its own the transaction has in memory, and whether it has any at all.
func (it *gaps) mine() (n int, any bool) {
	if it.writes != nil {
		n = it.writes.Len()
	}
	return n, n > 0 || len(it.spills) > 0
}

// Gap implements iterator.Gaps: where the store has no row the transaction may have one.
func (it *gaps) Gap(key []byte, records int) (low, high []byte, keys int, ok bool) {
	own, any := it.mine()
	if any && it.tx.gaps != nil {
		if low, high, keys, ok = it.tx.gaps.Find(it.writes, it.vis.PrivateLimit-1, key, records, &it.cut); ok {
			return low, high, keys, true
		}
	}
	if own > min(mostOwn, records) || len(it.spills) > 0 {
		return nil, nil, 0, false
	}
	low, high, keys, ok = it.tx.e.Gaps.Find(it.rs, it.vis.Snapshot, key, records, &it.cut)
	if !ok || own == 0 {
		return low, high, keys, ok
	}
	it.cut = view.Cut{At: key, Low: low, High: high}
	it.cut.Put(it.writes, it.writes.FirstSeq()-1, it.writes.LastSeq())
	return it.cut.Low, it.cut.High, keys, it.cut.Holds()
}

// NoteGap implements iterator.Gaps: the store has no row there either, if the transaction has deleted none.
func (it *gaps) NoteGap(low, high []byte, keys int) {
	own, any := it.mine()
	if any {
		if it.tx.gaps == nil {
			it.tx.gaps = &view.Gaps{Longest: it.tx.e.Gaps.Longest}
		}
		it.tx.gaps.Note(low, high, keys, it.vis.PrivateLimit-1)
	}
	if own > mostOwn || len(it.spills) > 0 || own > 0 && it.deletes(low, high) {
		return
	}
	it.tx.e.Gaps.Note(low, high, keys, it.vis.Snapshot)
}

// deletes reports whether the transaction has deleted something from low to before high (nil: no limit).
func (it *gaps) deletes(low, high []byte) bool {
	in := deletesIn{low: low, high: high}
	it.writes.Changes(it.writes.FirstSeq()-1, it.writes.LastSeq(), &in)
	return in.found
}

// deletesIn looks for deletes of keys from low to before high (nil: no limit).
type deletesIn struct {
	low, high []byte
	found     bool
}

// Change implements memtable.Changed.
func (d *deletesIn) Change(kind base.Kind, key, end []byte) {
	if kind == base.KindDelete {
		end = append(bytes.Clone(key), 0)
	}
	d.found = d.found || kind != base.KindPut && bytes.Compare(d.low, end) < 0 && (d.high == nil || bytes.Compare(key, d.high) < 0)
}
