package itertest

import (
	"bytes"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/iterator"
)

// page is one block in memory.
type page struct {
	keys   block.Keys
	values []byte
}

// pagedIter walks blocks as a table does, and knows stretches.
type pagedIter struct {
	block.Cursor
	pages  []page
	at     int
	valid  bool
	maxSeq uint64
}

// Paged returns an iterator over entries, which are in order, in blocks of so many rows at
// most. It implements iterator.Stretcher and iterator.VersionTeller.
func Paged(entries []iterator.Entry, rows int) base.Iterator {
	it := &pagedIter{}
	for len(entries) > 0 {
		n := min(rows, len(entries))
		it.pages = append(it.pages, makePage(entries[:n]))
		for _, e := range entries[:n] {
			it.maxSeq = max(it.maxSeq, e.Seq)
		}
		entries = entries[n:]
	}
	return it
}

func makePage(entries []iterator.Entry) page {
	var keys block.KeyBuilder
	p := page{values: []byte{}}
	for _, e := range entries {
		keys.Add(e.Key, e.Seq, e.Kind, len(e.Value))
		p.values = append(p.values, e.Value...)
	}
	stored := keys.Encode(nil)
	form := make([]byte, keys.FormBytes())
	if err := block.Expand(form, stored); err != nil {
		panic(fmt.Sprintf("itertest: a page of given entries: %v", err))
	}
	p.keys = block.View(form)
	return p
}

// place stands on a row of a page, counted over page ends; there is none: nowhere.
func (it *pagedIter) place(at, row int) bool {
	for at >= 0 && at < len(it.pages) && row >= it.pages[at].keys.Rows() {
		at, row = at+1, 0
	}
	if row < 0 {
		if at--; at >= 0 {
			row = it.pages[at].keys.Rows() - 1
		}
	}
	if it.valid = at >= 0 && at < len(it.pages); it.valid {
		it.at = at
		it.Cursor = block.Cursor{Keys: it.pages[at].keys, Row: row, Values: it.pages[at].values}
	}
	return it.valid
}

func (it *pagedIter) First() bool { return it.place(0, 0) }
func (it *pagedIter) Last() bool  { return it.place(len(it.pages), -1) }
func (it *pagedIter) Next() bool  { return it.valid && it.place(it.at, it.Row+1) }
func (it *pagedIter) Prev() bool  { return it.valid && it.place(it.at, it.Row-1) }

// bound returns the first row with a key >= key.
func (it *pagedIter) bound(key []byte) (at, row int) {
	for at := range it.pages {
		if row := it.pages[at].keys.SearchGE(key); row < it.pages[at].keys.Rows() {
			return at, row
		}
	}
	return len(it.pages), 0
}

func (it *pagedIter) SeekGE(key []byte) bool { return it.place(it.bound(key)) }

func (it *pagedIter) SeekLT(key []byte) bool {
	at, row := it.bound(key)
	return it.place(at, row-1)
}

func (it *pagedIter) Valid() bool     { return it.valid }
func (it *pagedIter) Key() []byte     { return it.Cursor.Key() }
func (it *pagedIter) Seq() uint64     { return it.Keys.Seq(it.Row) }
func (it *pagedIter) Kind() base.Kind { return it.Keys.Kind(it.Row) }
func (it *pagedIter) Err() error      { return nil }
func (it *pagedIter) Close() error    { return nil }

func (it *pagedIter) Value() ([]byte, error) {
	if it.Kind() != base.KindPut {
		return nil, nil
	}
	v, _ := it.Cursor.Value()
	return v, nil
}

// IsNewest implements iterator.VersionTeller.
func (it *pagedIter) IsNewest() bool { return it.Row > 0 && it.Single() }

// Stretch implements iterator.Stretcher.
func (it *pagedIter) Stretch(limit []byte, snapshot uint64) (*block.Cursor, int) {
	if !it.valid || !it.Plain() || it.maxSeq > snapshot {
		return nil, 0
	}
	end := it.Rows()
	for limit != nil && end > 0 && bytes.Compare(it.Keys.Key(end-1), limit) >= 0 {
		end--
	}
	return &it.Cursor, end
}

// StretchBack implements iterator.Stretcher.
func (it *pagedIter) StretchBack(low []byte, snapshot uint64) (*block.Cursor, int) {
	if !it.valid || !it.Plain() || it.maxSeq > snapshot {
		return nil, 0
	}
	begin := 1
	for begin < it.Rows() && bytes.Compare(it.Keys.Key(begin), low) < 0 {
		begin++
	}
	return &it.Cursor, begin
}
