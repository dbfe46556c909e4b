package merger

import (
	"bytes"

	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
)

// Survey finds out what a merge would gain of those tables of the last level, with keys in [low, high) (nil: no bound), that
// no merge of this process has written: which were compressed in haste, and what they hold for snapshots that have ended.
// It reads the keys of one table at most, and reports whether there are no others: whoever wants to merge does not wait for
// more. It is called once at a time, and no table is closed meanwhile; Close waits for it, and so for one table's
// properties, or some of its rows. A table that cannot be read has nothing to gain.
func (m *Merger) Survey(rs *tree.State, low, high []byte) (all bool) {
	for _, meta := range rs.Version.Levels[manifest.Bottom] {
		if m.Leftovers.Known(meta.Num) || !meta.Overlaps(low, high) {
			continue
		}
		if m.MustStop() != nil {
			return true
		}
		h := rs.Handle(meta.Num)
		codec, err := h.Codec()
		found := compact.Leftover{Quick: err == nil && codec == block.S2 && m.Tables.CompressesWell()}
		if meta.MaxSeq > 0 { // else everybody sees all of it
			hidden, err := m.hiddenRows(h)
			if err != nil && m.MustStop() != nil {
				return true
			}
			if hidden > 0 {
				found.Keep(compact.Kept{From: meta.MinSeq, To: meta.MaxSeq - 1, Bytes: int64(hidden) * meta.RawBytes / int64(meta.Entries)})
			}
		}
		m.Leftovers.Found(meta.Num, found)
		if meta.MaxSeq > 0 {
			return false
		}
	}
	return true
}

// hiddenRows returns how many rows of a table are older versions.
func (m *Merger) hiddenRows(h *tree.Handle) (n int, err error) {
	r := m.View.Reader()
	defer m.View.Done(r)
	rows := h.NewIter(r.Slot, table.IterOptions{NoCache: true})
	defer rows.Close()
	var last []byte
	for i, ok := 1, rows.First(); ok; i, ok = i+1, rows.Next() {
		if i%askedAfter == 0 {
			if err := m.MustStop(); err != nil {
				return n, err
			}
		}
		if key := rows.Key(); i > 1 && bytes.Equal(key, last) {
			n++
		} else {
			last = append(last[:0], key...)
		}
	}
	return n, rows.Err()
}

// askedAfter is after how many rows somebody may say that it has to end.
const askedAfter = 4096
