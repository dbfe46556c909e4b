package iterator

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// Entry is one version of one key.
type Entry struct {
	Key   []byte
	Seq   uint64
	Kind  base.Kind
	Value []byte
}

// Compare orders entries as every base.Iterator does: by key, then the newer first.
func Compare(a, b Entry) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(b.Seq, a.Seq)
}

// Sort puts entries in the order of Compare.
func Sort(entries []Entry) { slices.SortFunc(entries, Compare) }

// SliceIter walks a sorted slice. It implements base.Iterator.
type SliceIter struct {
	entries []Entry
	i       int // -1: nowhere
}

// NewSliceIter returns an unpositioned iterator over entries, which must be in
// the order of Compare and unchanged while it is in use.
func NewSliceIter(entries []Entry) *SliceIter { return &SliceIter{entries: entries, i: -1} }

// move stands on entry i, or nowhere if there is none.
func (s *SliceIter) move(i int) bool {
	if uint(i) >= uint(len(s.entries)) {
		s.i = -1
		return false
	}
	s.i = i
	return true
}

func (s *SliceIter) lowerBound(key []byte) int {
	return sort.Search(len(s.entries), func(i int) bool { return bytes.Compare(s.entries[i].Key, key) >= 0 })
}

// First implements base.Iterator.
func (s *SliceIter) First() bool { return s.move(0) }

// Last implements base.Iterator.
func (s *SliceIter) Last() bool { return s.move(len(s.entries) - 1) }

// SeekGE implements base.Iterator.
func (s *SliceIter) SeekGE(key []byte) bool { return s.move(s.lowerBound(key)) }

// SeekLT implements base.Iterator.
func (s *SliceIter) SeekLT(key []byte) bool { return s.move(s.lowerBound(key) - 1) }

// Next implements base.Iterator.
func (s *SliceIter) Next() bool { return s.i >= 0 && s.move(s.i+1) }

// Prev implements base.Iterator.
func (s *SliceIter) Prev() bool { return s.i >= 0 && s.move(s.i-1) }

// Valid implements base.Iterator.
func (s *SliceIter) Valid() bool { return s.i >= 0 }

// Key implements base.Iterator. The slice belongs to the entries.
func (s *SliceIter) Key() []byte { return s.entries[s.i].Key }

// Seq implements base.Iterator.
func (s *SliceIter) Seq() uint64 { return s.entries[s.i].Seq }

// Kind implements base.Iterator.
func (s *SliceIter) Kind() base.Kind { return s.entries[s.i].Kind }

// Value implements base.Iterator. The slice belongs to the entries.
func (s *SliceIter) Value() ([]byte, error) { return s.entries[s.i].Value, nil }

// Err implements base.Iterator; it is always nil.
func (s *SliceIter) Err() error { return nil }

// Close implements base.Iterator.
func (s *SliceIter) Close() error {
	s.i = -1
	return nil
}
