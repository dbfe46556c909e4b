package tablefiles

import (
	"slices"

	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// OpenIngested opens the tables of private runs once more, for when they are part of the store. They get their
// sequences later (Sequence).
func (f *Files) OpenIngested(private []*tree.Run) (tables []*tree.Handle, err error) {
	for _, r := range private {
		for _, t := range r.Tables {
			meta := *t.Meta
			h, err := f.Open(&meta)
			if err != nil {
				CloseAll(tables)
				return nil, err
			}
			tables = append(tables, h)
		}
	}
	return tables, nil
}

// Sequence gives tables opened of private runs their real sequences: first that of the oldest run, and so on. It
// returns the edit that adds them.
func Sequence(private []*tree.Run, tables []*tree.Handle, first uint64) *manifest.Edit {
	edit := &manifest.Edit{}
	for i, r := range private {
		seq := first + uint64(i)
		for _, h := range tables[:len(r.Tables)] {
			Resequence(h.Meta, seq)
			h.Reader.Resequence(seq)
			edit.Added = append(edit.Added, manifest.Added{Run: seq, Table: h.Meta})
		}
		tables = tables[len(r.Tables):]
	}
	return edit
}

// HoldPuts reports whether tables hold anything but deletes.
func HoldPuts(tables []*tree.Handle) bool {
	return slices.ContainsFunc(tables, func(h *tree.Handle) bool { return h.Meta.Entries > h.Meta.Deletes })
}

// CloseAll closes tables that never became part of the store.
func CloseAll(tables []*tree.Handle) {
	for _, h := range tables {
		h.Reader.Close()
	}
}
