package tree

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
)

// Found is the outcome of a point read: the newest version that is seen, and what
// keeps its bytes in memory (one of Mem and Page; neither: the Go heap).
type Found struct {
	table.Row
	Mem *Memory
	OK  bool // some version is seen; it may be a delete
}

// Live reports whether the key has a value.
func (f *Found) Live() bool { return f.OK && f.Kind == base.KindPut }

// Lookup sets f, which is zero but for KeyOnly, to the newest version of key that vis sees. It goes from the
// newest layer to the oldest run and stops at the first hit (E1); a range tombstone of a
// newer or the same layer counts if its sequence is greater than the hit's. The
// caller is inside the epoch.
func (rs *State) Lookup(f *Found, key []byte, hash uint64, vis base.Visibility) error {
	cover := uint64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			if done, err := f.lookupRuns(l.Ingest, key, hash, vis, &cover); done || err != nil {
				return err
			}
			continue
		}
		if l.Mem.FirstSeq() > vis.Snapshot {
			continue
		}
		if l.Mem.HasRangeDeletes() {
			cover = max(cover, l.Mem.Cover(key, vis))
		}
		if f.LookupMemory(l.Mem.Table, key, hash, vis) {
			f.Mem = l.Mem
			f.Hide(cover)
			return nil
		}
	}
	if done, err := f.lookupRuns(rs.Runs, key, hash, vis, &cover); done || err != nil {
		return err
	}
	f.Hide(cover)
	return nil
}

func (f *Found) lookupRuns(runs []Run, key []byte, hash uint64, vis base.Visibility, cover *uint64) (done bool, err error) {
	for i := range runs {
		if done, err := runs[i].Lookup(f, key, hash, vis, cover); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// Lookup looks key up in one run. done means the search is over; else f is as it was.
func (r *Run) Lookup(f *Found, key []byte, hash uint64, vis base.Visibility, cover *uint64) (done bool, err error) {
	if r.MaxSeq < *cover {
		f.Hide(*cover)
		return true, nil
	}
	h := r.find(key)
	if h == nil {
		return false, nil
	}
	if h.Meta.RangeDeletes > 0 {
		*cover = max(*cover, h.Tombstones().Cover(key, vis))
	}
	if f.OK, err = h.Get(&f.Row, key, hash, vis); !f.OK {
		return false, err
	}
	f.Hide(*cover)
	return true, nil
}

// LookupMemory sets f to the newest version of key in a memtable that vis sees, and reports
// whether there is one. A present empty value is not nil.
func (f *Found) LookupMemory(m *memtable.Table, key []byte, hash uint64, vis base.Visibility) bool {
	var e frame.Entry
	seq, ok := m.Get(&e, key, hash, vis)
	if !ok {
		return false
	}
	if f.Value = e.Value; e.Value == nil && e.Kind == base.KindPut {
		f.Value = block.EmptyValue
	}
	f.Kind, f.Seq, f.OK = e.Kind, seq, true
	return true
}

// Hide makes what was found a delete if a range tombstone of sequence cover hides it.
func (f *Found) Hide(cover uint64) {
	if cover > f.Seq || !f.OK && cover > 0 {
		*f = Found{Row: table.Row{Seq: cover, Kind: base.KindDelete}, OK: true}
	}
}
