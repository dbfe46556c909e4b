package tree

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/frame"
)

// Found is the outcome of a point read: the newest version that is seen, and what
// keeps its bytes in memory (one of mem, page; neither: the Go heap).
type Found struct {
	Value []byte
	Seq   uint64
	Kind  base.Kind
	Mem   *Memory
	Page  *cache.Page
	OK    bool // some version is seen; it may be a delete
}

// Live reports whether the key has a value.
func (f *Found) Live() bool { return f.OK && f.Kind == base.KindPut }

// Lookup finds the newest version of key that vis sees. It goes from the newest
// layer to the oldest run and stops at the first hit (E1); a range tombstone of a
// newer or the same layer counts if its sequence is greater than the hit's. The
// caller is inside the epoch.
func (rs *State) Lookup(key []byte, hash uint64, vis base.Visibility) (Found, error) {
	cover := uint64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			if f, done, err := lookupRuns(l.Ingest, key, hash, vis, &cover); done || err != nil {
				return f, err
			}
			continue
		}
		if l.Mem.FirstSeq() > vis.Snapshot {
			continue
		}
		if l.Mem.HasRangeDeletes() {
			cover = max(cover, l.Mem.Cover(key, vis))
		}
		if e, seq, ok := l.Mem.Get(key, hash, vis); ok {
			return Hit(Found{Value: Present(e), Seq: seq, Kind: e.Kind, Mem: l.Mem, OK: true}, cover), nil
		}
	}
	if f, done, err := lookupRuns(rs.Runs, key, hash, vis, &cover); done || err != nil {
		return f, err
	}
	return Hit(Found{}, cover), nil
}

func lookupRuns(runs []Run, key []byte, hash uint64, vis base.Visibility, cover *uint64) (Found, bool, error) {
	for i := range runs {
		if f, done, err := runs[i].Lookup(key, hash, vis, cover); done || err != nil {
			return f, done, err
		}
	}
	return Found{}, false, nil
}

// Lookup looks key up in one run. done means the search is over.
func (r *Run) Lookup(key []byte, hash uint64, vis base.Visibility, cover *uint64) (f Found, done bool, err error) {
	if r.MaxSeq < *cover {
		return Hit(Found{}, *cover), true, nil
	}
	h := r.find(key)
	if h == nil {
		return f, false, nil
	}
	if h.Meta.RangeDeletes > 0 {
		*cover = max(*cover, h.Tombstones().Cover(key, vis))
	}
	row, ok, err := h.Get(key, hash, vis)
	if err != nil || !ok {
		return f, false, err
	}
	return Hit(Found{Value: row.Value, Seq: row.Seq, Kind: row.Kind, Page: row.Page, OK: true}, *cover), true, nil
}

// Hit applies the covering range tombstone to what was found.
func Hit(f Found, cover uint64) Found {
	if cover > f.Seq || !f.OK && cover > 0 {
		return Found{Seq: cover, Kind: base.KindDelete, OK: true}
	}
	return f
}

// Present makes a present empty value non-nil.
func Present(e frame.Entry) []byte {
	if e.Value == nil && e.Kind == base.KindPut {
		return []byte{}
	}
	return e.Value
}
