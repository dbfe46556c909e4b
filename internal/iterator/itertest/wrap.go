package itertest

import (
	"bytes"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
)

// Invalidating returns an iterator like it that overwrites the key and the value
// it has handed out as soon as it is positioned again.
func Invalidating(it base.Iterator) base.Iterator {
	inv := &invalidating{Iterator: it}
	if s, ok := it.(iterator.KeyStepper); ok {
		return &invalidatingStepper{inv, s}
	}
	return inv
}

type invalidating struct {
	base.Iterator
	key, value []byte
}

type invalidatingStepper struct {
	*invalidating
	step iterator.KeyStepper
}

// moved spoils what was handed out and takes up the new key.
func (v *invalidating) moved(ok bool) bool {
	spoil(v.key)
	spoil(v.value)
	v.key, v.value = nil, nil
	if ok {
		v.key = append([]byte{}, v.Iterator.Key()...)
	}
	return ok
}

func spoil(b []byte) {
	for i := range b {
		b[i] ^= 0xA5
	}
}

func (v *invalidating) First() bool            { return v.moved(v.Iterator.First()) }
func (v *invalidating) Last() bool             { return v.moved(v.Iterator.Last()) }
func (v *invalidating) SeekGE(key []byte) bool { return v.moved(v.Iterator.SeekGE(key)) }
func (v *invalidating) SeekLT(key []byte) bool { return v.moved(v.Iterator.SeekLT(key)) }
func (v *invalidating) Next() bool             { return v.moved(v.Iterator.Next()) }
func (v *invalidating) Prev() bool             { return v.moved(v.Iterator.Prev()) }
func (v *invalidating) Key() []byte            { return v.key }
func (v *invalidatingStepper) NextKey() bool   { return v.moved(v.step.NextKey()) }
func (v *invalidating) Close() error           { v.moved(false); return v.Iterator.Close() }
func (v *invalidating) Value() ([]byte, error) {
	value, err := v.Iterator.Value()
	if v.value == nil && err == nil {
		v.value = append([]byte{}, value...)
	}
	return v.value, err
}

// Stepping returns an iterator like it that implements iterator.KeyStepper.
func Stepping(it base.Iterator) base.Iterator { return &stepping{it} }

type stepping struct{ base.Iterator }

func (s *stepping) NextKey() bool {
	if !s.Valid() {
		return false
	}
	key := bytes.Clone(s.Key())
	for s.Next() {
		if !bytes.Equal(s.Key(), key) {
			return true
		}
	}
	return false
}

// Telling returns an iterator like it, which is over entries, that implements iterator.VersionTeller.
func Telling(it base.Iterator, entries []iterator.Entry) base.Iterator { return &telling{it, entries} }

type telling struct {
	base.Iterator
	entries []iterator.Entry
}

func (t *telling) IsNewest() bool {
	at, _ := slices.BinarySearchFunc(t.entries, t.Key(), func(e iterator.Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	return t.entries[at].Seq == t.Seq()
}

// Failing returns an iterator like it whose positioning calls and value reads
// fail with err after the first n of them.
func Failing(it base.Iterator, n int, err error) base.Iterator {
	return &failing{Iterator: it, left: n, with: err}
}

type failing struct {
	base.Iterator
	left      int
	with, err error
}

func (f *failing) fails() bool {
	f.err = nil
	if f.left--; f.left < 0 {
		f.err = f.with
	}
	return f.err != nil
}

func (f *failing) First() bool            { return !f.fails() && f.Iterator.First() }
func (f *failing) Last() bool             { return !f.fails() && f.Iterator.Last() }
func (f *failing) SeekGE(key []byte) bool { return !f.fails() && f.Iterator.SeekGE(key) }
func (f *failing) SeekLT(key []byte) bool { return !f.fails() && f.Iterator.SeekLT(key) }
func (f *failing) Next() bool             { return !f.fails() && f.Iterator.Next() }
func (f *failing) Prev() bool             { return !f.fails() && f.Iterator.Prev() }
func (f *failing) Valid() bool            { return f.err == nil && f.Iterator.Valid() }
func (f *failing) Err() error             { return f.err }
func (f *failing) Value() ([]byte, error) {
	if f.left--; f.left < 0 {
		return nil, f.with
	}
	return f.Iterator.Value()
}

// Striding returns an iterator over puts of different keys that implements iterator.Strider:
// strides have at most so many rows. Its moves fail with err after the first n of them, if err
// is not nil.
func Striding(entries []iterator.Entry, most, n int, err error) base.Iterator {
	s := &striding{Iterator: iterator.NewSliceIter(entries), entries: entries, most: most}
	if err != nil {
		s.Iterator = Failing(s.Iterator, n, err)
	}
	return s
}

type striding struct {
	base.Iterator
	entries []iterator.Entry
	most    int
}

func (s *striding) Stride(limit []byte) int {
	at, _ := slices.BinarySearchFunc(s.entries, s.Key(), func(e iterator.Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	n := 0
	for _, e := range s.entries[at+1:] {
		if n == s.most || limit != nil && bytes.Compare(e.Key, limit) >= 0 {
			break
		}
		n++
	}
	return n
}

// Dated returns an iterator like it, of which no row has a greater sequence than newest, that implements iterator.Dated and
// counts how often it skips.
func Dated(it base.Iterator, newest uint64, skips *int) base.Iterator {
	return &dated{Iterator: it, newest: newest, skips: skips}
}

type dated struct {
	base.Iterator
	newest uint64
	skips  *int
}

func (d *dated) NewestSeq() uint64                { return d.newest }
func (d *dated) SkipGE(key []byte, _ uint64) bool { *d.skips++; return d.SeekGE(key) }
func (d *dated) SkipLT(key []byte, _ uint64) bool { *d.skips++; return d.SeekLT(key) }

// DatedEach returns an iterator like it, each row of which is a part of iterator.Dated, that counts how often it skips.
func DatedEach(it base.Iterator, skips *int) base.Iterator {
	return &datedEach{dated{Iterator: it, skips: skips}}
}

type datedEach struct{ dated }

func (d *datedEach) NewestSeq() uint64 { return d.Seq() }

func (d *datedEach) SkipGE(key []byte, below uint64) bool {
	*d.skips++
	for d.Next() && bytes.Compare(d.Key(), key) < 0 && d.Seq() < below {
	}
	return d.Valid()
}

func (d *datedEach) SkipLT(key []byte, below uint64) bool {
	*d.skips++
	for d.Prev() && bytes.Compare(d.Key(), key) >= 0 && d.Seq() < below {
	}
	return d.Valid()
}

func (d *dated) IsNewest() bool {
	t, ok := d.Iterator.(iterator.VersionTeller)
	return ok && t.IsNewest()
}
