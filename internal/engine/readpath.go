package engine

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
)

type epochSlot = *epoch.Slot

// found is the outcome of a point read: the newest version that is seen, and what
// keeps its bytes in memory (one of mem, page; neither: the Go heap).
type found struct {
	value []byte
	seq   uint64
	kind  base.Kind
	mem   *memory
	page  *cache.Page
	ok    bool // some version is seen; it may be a delete
}

// live reports whether the key has a value.
func (f *found) live() bool { return f.ok && f.kind == base.KindPut }

// lookup finds the newest version of key that vis sees. It goes from the newest
// layer to the oldest run and stops at the first hit (E1); a range tombstone of a
// newer or the same layer counts if its sequence is greater than the hit's. The
// caller is inside the epoch.
func (rs *readState) lookup(key []byte, hash uint64, vis base.Visibility) (found, error) {
	cover := uint64(0)
	for _, l := range rs.layers {
		if l.mem == nil {
			if f, done, err := lookupRuns(l.ingest, key, hash, vis, &cover); done || err != nil {
				return f, err
			}
			continue
		}
		if l.mem.FirstSeq() > vis.Snapshot {
			continue
		}
		if l.mem.HasRangeDeletes() {
			cover = max(cover, l.mem.Cover(key, vis))
		}
		if e, seq, ok := l.mem.Get(key, hash, vis); ok {
			return hit(found{value: present(e), seq: seq, kind: e.Kind, mem: l.mem, ok: true}, cover), nil
		}
	}
	if f, done, err := lookupRuns(rs.runs, key, hash, vis, &cover); done || err != nil {
		return f, err
	}
	return hit(found{}, cover), nil
}

func lookupRuns(runs []run, key []byte, hash uint64, vis base.Visibility, cover *uint64) (found, bool, error) {
	for i := range runs {
		if f, done, err := runs[i].lookup(key, hash, vis, cover); done || err != nil {
			return f, done, err
		}
	}
	return found{}, false, nil
}

// lookup looks key up in one run. done means the search is over.
func (r *run) lookup(key []byte, hash uint64, vis base.Visibility, cover *uint64) (f found, done bool, err error) {
	if r.maxSeq < *cover {
		return hit(found{}, *cover), true, nil
	}
	h := r.find(key)
	if h == nil {
		return f, false, nil
	}
	if h.meta.RangeDeletes > 0 {
		*cover = max(*cover, h.Tombstones().Cover(key, vis))
	}
	row, ok, err := h.Get(key, hash, vis)
	if err != nil || !ok {
		return f, false, err
	}
	return hit(found{value: row.Value, seq: row.Seq, kind: row.Kind, page: row.Page, ok: true}, *cover), true, nil
}

// hit applies the covering range tombstone to what was found.
func hit(f found, cover uint64) found {
	if cover > f.seq || !f.ok && cover > 0 {
		return found{seq: cover, kind: base.KindDelete, ok: true}
	}
	return f
}

// present makes a present empty value non-nil.
func present(e frame.Entry) []byte {
	if e.Value == nil && e.Kind == base.KindPut {
		return []byte{}
	}
	return e.Value
}

// GetTo appends the newest committed value of key to dst[:0].
func (e *Engine) GetTo(bucket, key, dst []byte) ([]byte, error) {
	r, err := e.enter()
	if err != nil {
		return nil, err
	}
	defer e.leave(r)
	f, err := e.latest(r.internal(bucket, key))
	if err != nil {
		return nil, err
	}
	if !f.live() {
		return nil, base.ErrNotFound
	}
	if dst == nil {
		dst = make([]byte, 0, len(f.value))
	}
	return append(dst[:0], f.value...), nil
}

// Has reports whether key has a value.
func (e *Engine) Has(bucket, key []byte) (bool, error) {
	r, err := e.enter()
	if err != nil {
		return false, err
	}
	defer e.leave(r)
	f, err := e.latest(r.internal(bucket, key))
	return f.live(), err
}

// latest finds the newest committed version of key. The caller is inside the
// epoch. The state is loaded before the visible sequence (E7): compaction drops
// only what a newer visible version hides, so a state holds every version that a
// sequence loaded after it asks for.
func (e *Engine) latest(key []byte) (found, error) {
	rs := e.state.Load()
	if rs == nil { // Close came between enter and here
		return found{}, base.ErrClosed
	}
	return rs.lookup(key, base.Hash(key), base.Visibility{Snapshot: e.visible.Load()})
}
