package engine

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/table"
)

// lockedRecords is how many records are validated under the commit lock. More are
// looked at without it first.
const lockedRecords = 1024

// validate checks w's reads against every commit sequenced since its snapshot,
// pending ones included. commit.mu is held; it may be let go of, and then the
// result is false: look again at everything.
func (e *Engine) validate(w *Write) (bool, error) {
	c := &e.commit
	last := c.nextSeq - 1
	if w.Reads == nil || w.Reads.Empty() || w.checked >= last || skipValidation {
		return true, nil
	}
	if c.ingesting > 0 {
		c.cond.Wait() // its tables are not in the state yet
		return false, nil
	}
	rs := e.state.Load()
	if last-w.checked <= lockedRecords && rs.memoryHolds(w.checked+1) {
		return true, conflictError(rs.checkMemory(w.Reads, w.checked))
	}
	rs.ref()
	c.mu.Unlock()
	err := e.validateAll(rs, w)
	rs.unref()
	c.mu.Lock()
	w.checked = last
	return false, err
}

// skipValidation turns validation off, so that a test can show that the checkers
// it relies on would notice.
var skipValidation bool

// memoryHolds reports whether every record from seq on is in a memtable.
func (rs *readState) memoryHolds(seq uint64) bool {
	for _, l := range rs.layers {
		if l.mem == nil {
			return false
		}
		if l.mem.FirstSeq() <= seq {
			return true
		}
	}
	return false
}

// checkMemory checks reads against the memtables' records above checked.
func (rs *readState) checkMemory(reads *mvcc.ReadSet, checked uint64) *mvcc.Conflict {
	for _, l := range rs.layers {
		if l.mem == nil || l.mem.Len() == 0 || l.mem.LastSeq() <= checked {
			continue
		}
		from := max(checked+1, l.mem.FirstSeq()) - l.mem.FirstSeq()
		if c := reads.Check(l.mem.Table, int(from), l.mem.Len()); c != nil {
			return c
		}
	}
	return nil
}

// validateAll checks w's reads against everything in rs above w.checked.
func (e *Engine) validateAll(rs *readState, w *Write) error {
	if c := rs.checkMemory(w.Reads, w.checked); c != nil {
		return conflictError(c)
	}
	if rs.memoryHolds(w.checked + 1) {
		return nil
	}
	return e.validateTables(rs, w)
}

// validateTables looks for what commits above w.checked have left in tables. The
// newest version of a key is always there, deletes included, because compaction
// keeps what w's snapshot tells apart.
func (e *Engine) validateTables(rs *readState, w *Write) error {
	r := e.readers.Get().(*reader)
	defer e.readers.Put(r)
	for _, h := range rs.handles {
		if h.meta.MaxSeq <= w.checked {
			continue
		}
		if err := checkTable(r.slot, h, w); err != nil {
			return err
		}
	}
	return nil
}

func checkTable(slot epochSlot, h *handle, w *Write) error {
	newest := base.Visibility{Snapshot: base.MaxSeq}
	slot.Enter()
	for i := range w.Reads.Len() {
		key := w.Reads.Key(i)
		if !h.meta.Contains(key) {
			continue
		}
		row, ok, err := h.Get(key, base.Hash(key), newest)
		if err != nil || ok && row.Seq > w.checked {
			slot.Exit()
			if err != nil {
				return err
			}
			return conflictError(&mvcc.Conflict{Low: bytes.Clone(key), Seq: row.Seq})
		}
	}
	slot.Exit()
	for ts := range h.Tombstones().All() {
		if ts.Seq > w.checked {
			if c := w.Reads.CheckRange(ts.Low, ts.High, ts.Seq); c != nil {
				return conflictError(c)
			}
		}
	}
	return checkTableRanges(slot, h, w)
}

func checkTableRanges(slot epochSlot, h *handle, w *Write) error {
	var it base.Iterator
	for _, g := range w.Reads.Ranges() {
		if !h.meta.Overlaps(g.Low, g.High) {
			continue
		}
		if it == nil {
			it = h.NewIter(slot, table.IterOptions{})
			defer it.Close()
		}
		for ok := it.SeekGE(g.Low); ok && bytes.Compare(it.Key(), g.High) < 0; ok = it.Next() {
			if it.Seq() > w.checked {
				return conflictError(&mvcc.Conflict{Low: bytes.Clone(it.Key()), Seq: it.Seq()})
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
	}
	return nil
}

// conflictError turns a conflict into an error; nil stays nil.
func conflictError(c *mvcc.Conflict) error {
	if c == nil {
		return nil
	}
	_, low, _ := base.CutBucketPrefix(c.Low)
	_, high, _ := base.CutBucketPrefix(c.High)
	if high == nil && c.High != nil {
		high = []byte{} // the end of the bucket: no upper bound
	}
	return &base.ConflictError{Low: low, High: high, Seq: c.Seq}
}
