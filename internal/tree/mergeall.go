package tree

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// mergeAllShare: everything is merged at once if what lies above the last level is at
// least one part in this many of what lies there.
const mergeAllShare = 10

// TableBytes returns what all tables take on disk.
func (rs *State) TableBytes() (n int64) {
	for level := range manifest.NumLevels {
		n += rs.Version.Bytes(level)
	}
	return n
}

// RawBytes returns the bytes of keys and values in all tables; of no state, 0.
func (rs *State) RawBytes() (n int64) {
	if rs == nil {
		return 0
	}
	for _, meta := range rs.Version.Tables() {
		n += meta.RawBytes
	}
	return n
}

// HeldBytes returns the bytes of keys and values in memtables and tables.
func (rs *State) HeldBytes() int64 {
	return rs.RawBytes() + rs.LogBytes()
}

// OfTables returns which part of n bytes, written of memtables and tables together, counts as written of tables: in
// proportion to the bytes of keys and values.
func (rs *State) OfTables(n int64) int64 {
	return int64(float64(n) * float64(rs.RawBytes()) / float64(max(rs.HeldBytes(), 1)))
}

// WorthMergingAll reports whether there are memtables, and so much in them and above
// the last level that it would be merged into the last level anyway, and no more than
// limit bytes in all, tables as large as on the disk.
func (rs *State) WorthMergingAll(limit int64) bool {
	above := int64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return false // of a large transaction: a table as it stands
		}
		above += l.Mem.LogBytes()
	}
	bottom := rs.Version.Bytes(manifest.Bottom)
	above += rs.TableBytes() - bottom
	return above > 0 && len(rs.Layers) > 0 && above+bottom <= limit && above*mergeAllShare >= bottom
}

// RestMerge is how many bytes a store at rest, or one that is scanned, may have to be merged
// into the last level in one pass, where tables hold most of it; restMost, where most of it lies above
// the last level and would be merged into it piece by piece; closeMerge, one that is closed.
const (
	RestMerge  = 64 << 20
	restMost   = 1 << 30
	closeMerge = 256 << 20
)

// MergeAtRest returns how many bytes are merged when the store comes to rest.
func (rs *State) MergeAtRest() int64 {
	bottom := int64(0)
	for _, meta := range rs.Version.Levels[manifest.Bottom] {
		bottom += meta.RawBytes
	}
	due := rs.dueAnyway()
	if rs.HeldBytes() >= 2*bottom {
		due = max(due, restMost)
	}
	return max(RestMerge, due)
}

// CloseMerge returns how many bytes Close merges, the debt it still works off: none where
// nothing is hidden.
func (rs *State) CloseMerge() int64 {
	if rs.hidesNothing() {
		return 0
	}
	return max(closeMerge, rs.dueAnyway())
}

// dueAnyway returns what there is to merge where memtables hold as much as tables, since they have
// to be written in any case; else 0.
func (rs *State) dueAnyway() int64 {
	raw := rs.RawBytes()
	if inMemory := rs.HeldBytes() - raw; inMemory >= raw {
		return inMemory + rs.TableBytes()
	}
	return 0
}

// closeWell is how many bytes of keys and values Close compresses well, with zstd on one
// processor 40 to 160 ms.
const closeWell = 16 << 20

// ClosesWell reports whether Close compresses well: what it merges is little, and most of it is
// in tables of the last level that are, of which haste would make larger ones.
func (rs *State) ClosesWell() bool {
	held := rs.HeldBytes()
	if held > closeWell {
		return false
	}
	well := int64(0)
	for _, h := range rs.BottomWith(block.Zstd) {
		well += h.Meta.RawBytes
	}
	return 2*well > held
}

// hidesNothing reports whether the tables are one run of puts, and no memtable holds
// anything.
func (rs *State) hidesNothing() bool {
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem.Len() > 0 {
			return false
		}
	}
	if len(rs.Runs) > 1 {
		return false
	}
	for _, r := range rs.Runs {
		for _, h := range r.Tables {
			if h.Meta.Deletes > 0 || h.Meta.RangeDeletes > 0 {
				return false
			}
		}
	}
	return true
}

// Continues reports whether rs is old with nothing but new layers on top.
func (rs *State) Continues(old *State) bool {
	n := len(rs.Layers) - len(old.Layers)
	return n >= 0 && rs.Version == old.Version && slices.Equal(rs.Layers[n:], old.Layers)
}

// Whole is all that memtables and tables hold, on its way to the last level.
type Whole struct {
	Rows       *iterator.Merging
	Tombstones *tombstone.List
	Count      uint64        // of rows
	Edit       manifest.Edit // removes the tables
}

// splitBytes is how much a part of a merge of everything has at least.
const splitBytes = 4 << 20

// Split returns the keys at which up to n processors begin to merge everything, each a part about as
// large as the others, if they are alike in what holds most: a memtable or a run. The first is nil.
func (rs *State) Split(n int) [][]byte {
	most := int64(0)
	var part func(i, n int) []byte
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return [][]byte{nil}
		}
		if bytes := l.Mem.LogBytes(); l.Mem.Len() > 0 && bytes > most {
			most, part = bytes, l.Mem.Part
		}
	}
	for _, r := range rs.Runs {
		if bytes := r.RawBytes(); bytes > most {
			most, part = bytes, r.Part
		}
	}
	lows := [][]byte{nil}
	if n = min(n, int(rs.HeldBytes()/splitBytes)); n < 2 || part == nil {
		return lows
	}
	rs.Sort()
	for i := 1; i < n; i++ {
		if low := bytes.Clone(part(i, n)); bytes.Compare(low, lows[i-1]) > 0 {
			lows = append(lows, low)
		} else {
			return lows[:1] // one key over and over
		}
	}
	return lows
}

// Sort sorts memtables, side by side.
func (rs *State) Sort() {
	var sorting sync.WaitGroup
	defer sorting.Wait()
	for _, l := range rs.Layers {
		if l.Mem != nil {
			sorting.Go(l.Mem.Sort)
		}
	}
}

// LiveBytes returns about how many bytes memtables hold that none of their own hides.
func (rs *State) LiveBytes() (n int64) {
	for _, l := range rs.Layers {
		if l.Mem == nil {
			continue
		}
		if records := l.Mem.Len(); records > 0 { // a moment later they may all have been truncated
			n += l.Mem.LogBytes() * int64(l.Mem.Keys()) / int64(records)
		}
	}
	return n
}

// Whole reads everything in a state of memtables and tables: of rs, which is to outlast
// the rows.
func (rs *State) Whole(slot *epoch.Slot, snapshots tombstone.Stripes) *Whole {
	w := &Whole{}
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, l := range rs.Layers {
		rows, tombs = l.Mem.AppendRows(rows, tombs)
		w.Count += uint64(l.Mem.Len())
		if l.Mem.Len() > 0 {
			w.Edit.LastSeq = max(w.Edit.LastSeq, l.Mem.LastSeq())
		}
	}
	for level, meta := range rs.Version.Tables() {
		w.Edit.Removed = append(w.Edit.Removed, manifest.Removed{Level: level, Num: meta.Num})
	}
	w.Tombstones = tombstone.Merge(AppendTombstones(tombs, rs.Runs)...)
	rows, n := AppendRows(rows, rs.Runs, w.Tombstones, snapshots, slot)
	w.Count += n
	w.Rows = iterator.NewMerging(rows...)
	return w
}
