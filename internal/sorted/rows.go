package sorted

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
)

// Rows are the rows that a snapshot sees of a State, in the order of their keys. See the package
// comment.
type Rows struct {
	Snapshot uint64

	version *manifest.Version
	layers  []*tree.Layer     // newest first, as in the State
	memory  []*memtable.Table // of these, oldest first
	sizes   []int             // bytes of a record of each that are brought on their way at a time
	handles []*tree.Handle    // tables
	runs    int               // that they are

	rows   []row
	common []byte // what all keys begin with
	length int    // of every key; 0 if they are not all alike

	later     *memtable.Stack // order of what came after the snapshot
	laterFrom int             // it begins in this one of memory
}

// row is where a row stands.
type row struct {
	head uint64 // eight bytes of its key behind what all keys begin with
	at   uint64 // see place
}

// RowBytes is what a row takes.
const RowBytes = 16

// A place is that of a record in a memtable, or of a row in a block of a table, which one bit tells. Of a record
// 9 bits are the number of the memtable, 24 its own, and 30 where it stands in the buffer: its number leads there
// too, but by way of a column, which is one more miss of the processor's caches. Of a row 15 bits are the number of the
// table, 32 that of the block, and 16 its own.
const (
	inTable = 1 << 63

	memoryAt   = 54
	mostMemory = 1<<9 - 1
	recordAt   = 30
	mostRecord = 1<<24 - 1
	mostOffset = 1<<30 - 1

	numberAt   = 48
	mostNumber = 1<<15 - 1
	blockAt    = 16
	mostBlock  = 1<<31 - 1
	mostRow    = 1<<16 - 1
)

func (r row) inTable() bool { return r.at&inTable != 0 }

// record returns the number of a memtable, that of a record of it, and the record's offset.
func (r row) record() (memory int, rec, offset uint32) {
	return int(r.at >> memoryAt), uint32(r.at >> recordAt & mostRecord), uint32(r.at & mostOffset)
}

// place returns the numbers of a table, of a block of it, and of a row of that.
func (r row) place() (number, block, row int) {
	return int(r.at >> numberAt & mostNumber), int(r.at >> blockAt & mostBlock), int(r.at & mostRow)
}

// Of reports whether r can be read together with a State: that has the same tables, the same
// layers, and perhaps memtables on top.
func (r *Rows) Of(rs *tree.State) bool {
	if rs == nil || rs.Version != r.version || len(rs.Layers) < len(r.layers) {
		return false
	}
	newer := len(rs.Layers) - len(r.layers)
	for _, l := range rs.Layers[:newer] {
		if l.Mem == nil {
			return false
		}
	}
	return slices.Equal(rs.Layers[newer:], r.layers)
}

// Len returns how many rows there are; nil has none.
func (r *Rows) Len() int {
	if r == nil {
		return 0
	}
	return len(r.rows)
}

// Since appends iterators over what was committed after the snapshot, up to a sequence, and
// a little behind it, of a State that r is Of. memory is room for what it needs. It reports
// false, and appends nothing, where that is not to be had.
func (r *Rows) Since(dst []base.Iterator, its *memtable.Iters, memory []*memtable.Table, rs *tree.State, upTo uint64) (_ []base.Iterator, _ []*memtable.Table, ok bool) {
	if len(r.memory) > 0 {
		memory = append(memory, r.memory[r.laterFrom:]...)
	}
	newer := rs.Layers[:len(rs.Layers)-len(r.layers)]
	for _, l := range slices.Backward(newer) {
		memory = append(memory, l.Mem.Table)
	}
	if len(memory) == 0 {
		return dst, memory, true
	}
	dst, ok = r.later.Append(dst, its, memory, upTo)
	return dst, memory, ok
}

// Drop ends the use of r by others than those who read it now.
func (r *Rows) Drop() { r.later.Drop() }

// Builder says how Rows are built.
type Builder struct {
	Order *memtable.Stack // of the State's memtables
	Slot  *epoch.Slot     // of the goroutine that builds
	Most  int             // rows
	Stop  func() error    // asked now and then whether to go on
}

// Build puts the rows that a snapshot sees of a State, which the caller keeps, in order. It
// returns nil where that cannot be: there are range tombstones, tables that no manifest names yet
// or that are newer than the snapshot, too many rows, or a memtable larger than a place can tell; or it
// was stopped, or a table cannot be read, which is the business of who asks for its rows.
func (b *Builder) Build(rs *tree.State, snapshot uint64) *Rows {
	r := &Rows{Snapshot: snapshot, version: rs.Version, layers: rs.Layers, handles: rs.Handles, runs: len(rs.Runs)}
	for _, l := range slices.Backward(rs.Layers) {
		if l.Mem == nil || l.Mem.HasRangeDeletes() {
			return nil
		}
		r.memory = append(r.memory, l.Mem.Table)
		r.sizes = append(r.sizes, l.Mem.PrefetchBytes())
	}
	for i := range rs.Runs {
		if rs.Runs[i].Tombstones || rs.Runs[i].MaxSeq > snapshot { // Since has what is newer, but of memtables
			return nil
		}
	}
	if len(rs.Handles) > mostNumber || len(r.memory) > mostMemory {
		return nil
	}
	its, ok := b.sources(r, rs, snapshot)
	rows := iterator.New(its.sources, base.Visibility{Snapshot: snapshot}, nil, nil)
	defer rows.Close()
	if !ok || !r.span(its.sources) || !r.fill(rows, its.places, b.Most) {
		return nil
	}
	r.rows = slices.Clone(r.rows) // no longer than it is counted
	r.begin(b.Order)
	return r
}

// stepper is what is merged.
type stepper interface {
	base.Iterator
	iterator.KeyStepper
}

// stoppable asks now and then whether to go on; if not, it fails. It is walked forward.
type stoppable struct {
	stepper
	stop  func() error
	steps int
	err   error
}

// stopEvery is after how many steps stop is asked.
const stopEvery = 1024

func (s *stoppable) goesOn() bool {
	if s.steps++; s.steps%stopEvery == 0 && s.err == nil {
		s.err = s.stop()
	}
	return s.err == nil
}

// Next implements base.Iterator.
func (s *stoppable) Next() bool { return s.goesOn() && s.stepper.Next() }

// NextKey implements iterator.KeyStepper.
func (s *stoppable) NextKey() bool { return s.goesOn() && s.stepper.NextKey() }

// Err implements base.Iterator.
func (s *stoppable) Err() error { return cmp.Or(s.err, s.stepper.Err()) }

// sources are what is merged, and where each of them stands.
type sources struct {
	sources []iterator.Source
	places  []func() (uint64, bool)
}

func (s *sources) add(it stepper, b *Builder, place func() (uint64, bool)) {
	s.sources = append(s.sources, iterator.Source{It: &stoppable{stepper: it, stop: b.Stop}})
	s.places = append(s.places, place)
}

func (b *Builder) sources(r *Rows, rs *tree.State, snapshot uint64) (s sources, ok bool) {
	if len(r.memory) > 0 {
		chunks, ok := b.Order.Append(nil, nil, r.memory, snapshot)
		for _, c := range chunks {
			s.add(c.(*memtable.Iter), b, func() (uint64, bool) { return placeOf(c.(*memtable.Iter)) })
		}
		if !ok {
			return s, false
		}
	}
	for _, run := range rs.Runs {
		var at *table.Iter
		number := 0
		open := func(i int) (base.Iterator, error) {
			number = slices.Index(rs.Handles, run.Tables[i])
			at = run.Tables[i].NewIter(b.Slot, table.IterOptions{NoCache: true})
			return at, nil
		}
		bounds := func(i int) ([]byte, []byte) { return run.Tables[i].Meta.Smallest, run.Tables[i].Meta.Largest }
		s.add(iterator.NewConcat(len(run.Tables), bounds, open), b, func() (uint64, bool) { return placeIn(number, at) })
	}
	return s, true
}

func placeOf(it *memtable.Iter) (uint64, bool) {
	number, rec, offset := it.At()
	return uint64(number)<<memoryAt | uint64(rec)<<recordAt | uint64(offset), rec <= mostRecord && offset <= mostOffset
}

func placeIn(number int, it *table.Iter) (uint64, bool) {
	b, row := it.At()
	return inTable | uint64(number)<<numberAt | uint64(b)<<blockAt | uint64(row), b <= mostBlock && row <= mostRow
}

// span finds what all keys begin with, from the first and the last one of each source. It returns
// false after an error.
func (r *Rows) span(sources []iterator.Source) bool {
	var first, last []byte
	for _, s := range sources {
		if !s.It.First() {
			if s.It.Err() != nil {
				return false // it may be there the next time
			}
			continue
		}
		if key := s.It.Key(); first == nil || bytes.Compare(key, first) < 0 {
			first = bytes.Clone(key)
		}
		if !s.It.Last() {
			return false
		}
		if key := s.It.Key(); last == nil || bytes.Compare(key, last) > 0 {
			last = bytes.Clone(key)
		}
	}
	r.common = last[:base.CommonPrefix(first, last)]
	return true
}

// fill notes where the rows stand, and reports whether all of them are there.
func (r *Rows) fill(rows *iterator.Visible, places []func() (uint64, bool), most int) bool {
	for ok := rows.First(); ok; ok = rows.Next() {
		key := rows.Key()
		at, can := places[rows.At()]()
		if !can || len(r.rows) == most {
			return false
		}
		if len(r.rows) == 0 {
			r.length = len(key)
		} else if len(key) != r.length {
			r.length = 0
		}
		r.rows = append(r.rows, row{base.Head(key[len(r.common):]), at})
	}
	return rows.Err() == nil
}

// begin makes the order of what comes after the snapshot.
func (r *Rows) begin(order *memtable.Stack) {
	next := r.Snapshot + 1
	for i, t := range r.memory {
		if t.FirstSeq() <= next {
			r.laterFrom = i
		}
	}
	if len(r.memory) == 0 {
		r.later = order.After(nil, 0)
		return
	}
	t := r.memory[r.laterFrom]
	r.later = order.After(t, int(min(max(next, t.FirstSeq())-t.FirstSeq(), uint64(t.Len()))))
}

// lowerBound bounds how many rows have lesser keys than the given one, by heads, where that is
// between two numbers. If it is low, the search is short.
func (r *Rows) lowerBound(low, high int, key []byte) (int, int) {
	n := len(r.common)
	switch order := bytes.Compare(key[:min(len(key), n)], r.common); {
	case order < 0:
		return low, low
	case order > 0:
		return high, high
	}
	h := base.Head(key[n:])
	low = r.search(low, high, func(head uint64) bool { return head >= h })
	if low == high || r.rows[low].head != h || r.exact() && len(key) <= r.length {
		return low, low
	}
	return low, r.search(low, high, func(head uint64) bool { return head > h })
}

// exact reports whether heads tell all keys apart.
func (r *Rows) exact() bool { return r.length > 0 && r.length-len(r.common) <= 8 }

// search returns the first row between two whose head is far enough.
func (r *Rows) search(low, high int, far func(head uint64) bool) int {
	for stride := 1; low+stride <= high; stride *= 2 {
		if far(r.rows[low+stride-1].head) {
			high = low + stride - 1
			break
		}
		low += stride
	}
	return low + sort.Search(high-low, func(i int) bool { return far(r.rows[low+i].head) })
}
