package mvcc

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// Conflict says what a transaction read and somebody else wrote.
type Conflict struct {
	Low, High []byte // High nil: the single key Low
	Seq       uint64
}

// Check looks for a conflict with the records from..to-1 of t.
func (r *ReadSet) Check(t *memtable.Table, from, to int) *Conflict {
	whole := len(r.Ranges()) > 0 || t.HasRangeDeletes()
	if !whole && len(r.list) < (to-from)/recordsPerKey {
		return r.checkKeys(t, from, to)
	}
	for i := from; i < to; i++ {
		if !whole && !r.mayHave(t.Tag(i)) {
			continue
		}
		rec := t.Record(i)
		if c := r.checkRecord(&rec); c != nil {
			return c
		}
	}
	return nil
}

// recordsPerKey is how many records are passed in the time in which one key is looked up.
const recordsPerKey = 32

// checkKeys is Check where keys only were read and no range is deleted: a key has a record there if its newest before to is.
func (r *ReadSet) checkKeys(t *memtable.Table, from, to int) *Conflict {
	vis := base.Visibility{Snapshot: t.FirstSeq() + uint64(to) - 1}
	for i := range r.list {
		var e frame.Entry
		key := r.Key(i)
		if seq, ok := t.Get(&e, key, base.Hash(key), vis); ok && seq >= t.FirstSeq()+uint64(from) {
			return &Conflict{Low: bytes.Clone(key), Seq: seq}
		}
	}
	return nil
}

func (r *ReadSet) checkRecord(rec *memtable.Record) *Conflict {
	if rec.Kind == base.KindRangeDelete {
		return r.CheckRange(rec.Key, rec.Value, rec.Seq)
	}
	if r.find(rec.Tag, rec.Key) >= 0 || r.InRange(rec.Key) {
		return &Conflict{Low: bytes.Clone(rec.Key), Seq: rec.Seq}
	}
	return nil
}

// InRange reports whether key lies in a range that was read.
func (r *ReadSet) InRange(key []byte) bool { return len(r.Ranges()) > 0 && r.ranges.holds(key) }

// CheckRange looks for a conflict with a deletion of [low, high). It puts the keys in order first, if they are not (Order).
func (r *ReadSet) CheckRange(low, high []byte, seq uint64) *Conflict {
	if k := r.in(low, high); k != nil {
		return &Conflict{Low: bytes.Clone(k), Seq: seq}
	}
	if len(r.Ranges()) > 0 && r.ranges.overlap(low, high) {
		return &Conflict{Low: bytes.Clone(low), High: bytes.Clone(high), Seq: seq}
	}
	return nil
}

// Err returns a conflict with what was read as an error in the words of users; nil stays nil.
func (r *ReadSet) Err(c *Conflict) error {
	if c == nil {
		return nil
	}
	_, low, _ := base.CutBucketPrefix(c.Low)
	_, high, _ := base.CutBucketPrefix(c.High)
	if high == nil && c.High != nil {
		high = []byte{} // the end of the bucket: no upper bound
	}
	return &base.ConflictError{Low: low, High: high, Seq: c.Seq, Wide: r.coarse}
}
