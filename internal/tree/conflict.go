package tree

import (
	"bytes"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/table"
)

// MemoryHolds reports whether every record from seq on is in a memtable, in the newest State, and where no large transaction
// is about to add its tables to that.
func (rs *State) MemoryHolds(seq uint64) bool {
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return false
		}
		if l.Mem.FirstSeq() <= seq {
			return true
		}
	}
	return false
}

// Holds reports whether every record of sequences after one, up to another, is in a memtable. In a State on which somebody
// still stands a memtable may go on behind a large transaction whose tables that State does not have.
func (rs *State) Holds(after, upTo uint64) bool {
	next := upTo + 1 // has to be behind the memtable, or in it
	for _, l := range rs.Layers {
		switch {
		case l.Mem == nil:
			return false
		case l.Mem.Len() == 0:
			continue
		case l.Mem.LastSeq()+1 < next:
			return false
		case l.Mem.FirstSeq() <= after+1:
			return true
		}
		next = min(next, l.Mem.FirstSeq())
	}
	return false
}

// Changes tells of each record of sequences after one, up to another. All of them are in memtables; see Holds.
func (rs *State) Changes(after, upTo uint64, told memtable.Changed) {
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem.LastSeq() <= after {
			return
		}
		if first := l.Mem.FirstSeq(); first <= upTo {
			l.Mem.Changes(max(after, first-1), min(upTo, l.Mem.LastSeq()), told)
		}
	}
}

// MemoryDeletesRanges reports whether a memtable with a record of sequence seq or a greater one deletes ranges.
func (rs *State) MemoryDeletesRanges(seq uint64) bool {
	return slices.ContainsFunc(rs.Layers, func(l *Layer) bool {
		return l.Mem != nil && l.Mem.Len() > 0 && l.Mem.LastSeq() >= seq && l.Mem.HasRangeDeletes()
	})
}

// CheckMemory checks reads against the memtables' records above checked.
func (rs *State) CheckMemory(reads *mvcc.ReadSet, checked uint64) *mvcc.Conflict {
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem.Len() == 0 || l.Mem.LastSeq() <= checked {
			continue
		}
		from := max(checked+1, l.Mem.FirstSeq()) - l.Mem.FirstSeq()
		if c := reads.Check(l.Mem.Table, int(from), l.Mem.Len()); c != nil {
			return c
		}
	}
	return nil
}

// CheckTables looks for what commits above checked have left in tables. The newest
// version of a key is there, deletes included, because compaction keeps what the
// snapshot that was read tells apart; but where the snapshot had no such key and there is
// none now it may have left nothing of what came and went between, which a transaction
// placed now reads the same.
func (rs *State) CheckTables(slot *epoch.Slot, reads *mvcc.ReadSet, checked uint64) (*mvcc.Conflict, error) {
	for _, h := range rs.Handles {
		if h.Meta.MaxSeq <= checked {
			continue
		}
		if c, err := h.check(slot, reads, checked); c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

// check checks reads against what one table holds above checked.
func (h *Handle) check(slot *epoch.Slot, reads *mvcc.ReadSet, checked uint64) (*mvcc.Conflict, error) {
	if c, err := h.checkKeys(slot, reads, checked); c != nil || err != nil {
		return c, err
	}
	for ts := range h.Tombstones().All() {
		if ts.Seq > checked {
			if c := reads.CheckRange(ts.Low, ts.High, ts.Seq); c != nil {
				return c, nil
			}
		}
	}
	return h.checkRanges(slot, reads, checked)
}

func (h *Handle) checkKeys(slot *epoch.Slot, reads *mvcc.ReadSet, checked uint64) (*mvcc.Conflict, error) {
	newest := base.Visibility{Snapshot: base.MaxSeq}
	for i := range reads.Len() {
		key := reads.Key(i)
		if !h.Meta.Contains(key) {
			continue
		}
		row := table.Row{KeyOnly: true}
		slot.Enter() // for one key: pages that give way in an epoch are not free before its end
		ok, err := h.Get(&row, key, base.Hash(key), newest)
		slot.Exit()
		if err != nil {
			return nil, err
		}
		if ok && row.Seq > checked {
			return &mvcc.Conflict{Low: bytes.Clone(key), Seq: row.Seq}, nil
		}
	}
	return nil, nil
}

func (h *Handle) checkRanges(slot *epoch.Slot, reads *mvcc.ReadSet, checked uint64) (*mvcc.Conflict, error) {
	var it base.Iterator
	for _, g := range reads.Ranges() {
		if !h.Meta.Overlaps(g.Low, g.High) {
			continue
		}
		if it == nil {
			it = h.NewIter(slot, table.IterOptions{})
			defer it.Close()
		}
		for ok := it.SeekGE(g.Low); ok && bytes.Compare(it.Key(), g.High) < 0; ok = it.Next() {
			if it.Seq() > checked {
				return &mvcc.Conflict{Low: bytes.Clone(it.Key()), Seq: it.Seq()}, nil
			}
		}
		if err := it.Err(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
