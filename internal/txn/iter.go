package txn

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/sorted"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// Iter walks the keys of [low, high) that a transaction sees, as they were, its
// own writes included, when the iterator was made. It keeps memory alive only
// while it stands somewhere: when a call finds that the store has moved on to a
// newer state it goes there, which changes nothing it sees.
type Iter struct {
	tx        *Tx // nil once that has ended
	low, high []byte
	vis       base.Visibility

	rs      *tree.State // nil: not positioned
	rows    iterator.Visible
	sources []iterator.Source
	open    []base.Iterator // to close with the sources
	chunks  memtable.Iters  // of the memtables
	ownIts  memtable.Iters  // of own
	memory  []*memtable.Table
	sorted  sorted.Iter
	tables  memoryOf[table.Iter]
	runs    memoryOf[tree.RunIter]
	at      int             // in tx.iters
	walked  int             // rows since it was last noted
	own     []base.Iterator // the transaction's chunks, as they were at the start
	writes  *memtable.Table // what they are chunks of: the transaction's may be another by now
	spills  []*spill
	cut     view.Cut // memory of gaps

	// What has been walked since the last jump, for the read set: from start, in
	// direction forward, up to the row it stands on.
	start   []byte
	end     []byte // memory for where it ends
	forward bool
	walking bool

	valid bool
	err   error
	done  bool
}

// memoryOf is things of which the first ones are in use; the others' memory is for others.
type memoryOf[T any] struct {
	all   []*T
	inUse int
}

func (m *memoryOf[T]) take(fresh func() *T) *T {
	if m.inUse == len(m.all) {
		m.all = append(m.all, fresh())
	}
	m.inUse++
	return m.all[m.inUse-1]
}

func (m *memoryOf[T]) reset(letGo func(*T)) {
	for _, t := range m.all[:m.inUse] {
		letGo(t)
	}
	m.inUse = 0
}

// closedIters have nothing but memory for reuse.
var closedIters = sync.Pool{New: func() any { return new(Iter) }}

// NewIter makes an iterator over [low, high).
func (tx *Tx) NewIter(low, high []byte) *Iter {
	it := closedIters.Get().(*Iter)
	it.tx, it.vis, it.done = tx, tx.visibility(), false
	it.low, it.high = append(it.low[:0], low...), append(it.high[:0], high...)
	if tx.writable {
		it.writes = tx.writes
		it.own = it.ownIts.Append(it.own, it.writes, math.MaxUint64)
		tx.handedOut++
		it.spills = append(it.spills, tx.spills...)
		for _, s := range it.spills {
			s.ref()
		}
	}
	it.at = len(tx.iters)
	tx.iters = append(tx.iters, it)
	return it
}

// First moves to the first row.
func (it *Iter) First() bool {
	return it.jump(it.low, true, func() bool { return it.rows.First() })
}

// Last moves to the last row.
func (it *Iter) Last() bool {
	return it.jump(it.high, false, func() bool { return it.rows.Last() })
}

// Seek moves to the first row with a key >= key.
func (it *Iter) Seek(key []byte) bool {
	key = it.clamp(key)
	return it.jump(key, true, func() bool { return it.rows.SeekGE(key) })
}

// SeekLT moves to the last row with a key < key.
func (it *Iter) SeekLT(key []byte) bool {
	key = it.clamp(key)
	return it.jump(key, false, func() bool { return it.rows.SeekLT(key) })
}

func (it *Iter) clamp(key []byte) []byte {
	if bytes.Compare(key, it.low) < 0 {
		return it.low
	}
	if bytes.Compare(key, it.high) > 0 {
		return it.high
	}
	return key
}

// jump positions the iterator anew.
func (it *Iter) jump(from []byte, forward bool, move func() bool) bool {
	if !it.ready() {
		return false
	}
	it.noteWalk()
	it.start = append(it.start[:0], from...)
	it.forward, it.walking = forward, true
	it.refresh()
	it.valid = move()
	return it.settled()
}

func (it *Iter) ready() bool {
	if it.done || it.tx.done {
		it.fail(base.ErrTxClosed)
	}
	return it.err == nil
}

func (it *Iter) fail(err error) {
	it.valid, it.err = false, err
}

func (it *Iter) settled() bool {
	if !it.valid {
		if err := it.rows.Err(); err != nil {
			it.fail(err)
		}
	}
	return it.valid
}

// Next moves to the next row. Within a block of a table that is all there is to it: what
// a closed iterator or one that has failed stands on is not valid.
func (it *Iter) Next() bool { return it.valid && it.forward && it.rows.Advance() || it.step(true) }

// Prev moves to the previous row.
func (it *Iter) Prev() bool { return it.valid && !it.forward && it.rows.Retreat() || it.step(false) }

func (it *Iter) step(forward bool) bool {
	if !it.ready() || !it.valid {
		return false
	}
	if it.forward != forward && it.tx.writable {
		it.noteWalk()
		it.start = append(it.start[:0], it.rows.Key()...)
		if !forward {
			it.start = append(it.start, 0)
		}
		it.walking = true
	}
	it.forward = forward
	if !it.rows.Valid() { // Advance has failed
		it.valid = false
		return it.settled()
	}
	if it.rs != it.tx.state() {
		it.follow()
		if !it.valid {
			return it.settled()
		}
	}
	if forward {
		it.valid = it.rows.Next()
	} else {
		it.valid = it.rows.Prev()
	}
	if it.walked += 1 + it.rows.TakeStrode()/strideShare; it.walked >= mostWalked {
		it.tellWalked()
	}
	return it.settled()
}

// mostWalked is after how many rows the engine is told of them: long scans are to be
// noticed before they end.
const mostWalked = 4096

// strideShare: rows sorted beforehand cost no more than one in so many that are put together.
const strideShare = 4

// tellWalked tells the engine how far it has walked, if in several sources, sorted beforehand
// or not.
func (it *Iter) tellWalked() {
	it.walked += it.rows.TakeStrode()/strideShare + it.rows.TakePassed()
	if it.walked > 0 && (len(it.sources) > 1 || it.sorted.Rows != nil) {
		it.tx.e.NoteWalked(it.walked)
	}
	it.walked = 0
}

// follow moves to the current state and stands on the same row again.
func (it *Iter) follow() {
	key := bytes.Clone(it.rows.Key())
	it.refresh()
	it.valid = it.rows.SeekGE(key)
}

// refresh builds the sources over the current state, unless they stand there.
func (it *Iter) refresh() {
	if it.rs != nil && it.rs == it.tx.state() {
		return
	}
	it.drop()
	it.tx.slot.Enter()
	it.rs = it.tx.state()
	it.tx.r.Hold(it.rs)
	it.tx.exit()
	it.sources = it.sources[:0]
	it.addOwn()
	if !it.addSorted() {
		it.addLayers()
		it.addRuns(it.rs.Runs)
	}
	it.rows.Init(it.sources, it.vis, it.low, it.high)
	it.rows.UseGaps((*gaps)(it))
}

// addOwn adds the transaction's own writes.
func (it *Iter) addOwn() {
	if !it.tx.writable {
		return
	}
	for _, own := range it.own {
		it.sources = append(it.sources, iterator.Source{It: own})
	}
	if it.writes.HasRangeDeletes() {
		it.addCover(it.writes.Covers())
	}
	for _, s := range it.spills {
		it.addRun(&s.Run)
	}
}

// addCover adds range tombstones that come with no rows of their own.
func (it *Iter) addCover(c *memtable.Covers) {
	it.sources = append(it.sources, iterator.Source{It: iterator.NewSliceIter(nil), Cover: c.Cover, Alike: c.Alike})
}

// addLayers adds what lies above the tables: memtables together, unless their order is not
// to be had.
func (it *Iter) addLayers() {
	it.memory = it.memory[:0]
	for _, l := range slices.Backward(it.rs.Layers) {
		switch {
		case l.Mem == nil:
			it.addRuns(l.Ingest)
			continue
		case l.Mem.HasRangeDeletes():
			it.addCover(l.Mem.Covers())
		}
		it.memory = append(it.memory, l.Mem.Table)
	}
	if len(it.memory) == 0 {
		return
	}
	n := len(it.open)
	ok := it.tx.of == nil || it.tx.of == it.tx.e.State() // else the order is of others
	if ok {
		it.open, ok = it.tx.e.Order.Append(it.open, &it.chunks, it.memory, it.vis.Snapshot)
	}
	if !ok {
		for _, m := range it.memory {
			if m.FirstSeq() <= it.vis.Snapshot {
				it.open = it.chunks.Append(it.open, m, it.vis.Snapshot)
			}
		}
	}
	it.addChunks(n)
}

// addSorted adds rows that were sorted beforehand, and what was committed since, in the place
// of all layers and runs, and reports whether that is to be had.
func (it *Iter) addSorted() (ok bool) {
	rows := it.tx.e.Sorted(it.rs, it.vis.Snapshot)
	if rows == nil {
		return false
	}
	n := len(it.open)
	if it.open, it.memory, ok = rows.Since(it.open, &it.chunks, it.memory[:0], it.rs, it.vis.Snapshot); !ok {
		return false
	}
	it.addChunks(n)
	for _, l := range it.rs.Layers {
		if l.Mem.HasRangeDeletes() { // after the rows were sorted
			it.addCover(l.Mem.Covers())
		}
	}
	it.sorted.Init(rows, it.tx.slot)
	it.open = append(it.open, &it.sorted)
	it.sources = append(it.sources, iterator.Source{It: &it.sorted, Plain: true})
	return true
}

// addChunks adds what is open from number n on.
func (it *Iter) addChunks(n int) {
	for _, chunk := range it.open[n:] {
		it.sources = append(it.sources, iterator.Source{It: chunk})
	}
}

// addRuns adds those of the store's runs of which the snapshot may see something.
func (it *Iter) addRuns(runs []tree.Run) {
	for i := range runs {
		if runs[i].MinSeq <= it.vis.Snapshot {
			it.addRun(&runs[i])
		}
	}
}

func (it *Iter) addRun(r *tree.Run) {
	var src iterator.Source
	if len(r.Tables) == 1 {
		if !r.Tables[0].Meta.Overlaps(it.low, it.high) {
			return
		}
		src.It = it.tableIter(r.Tables[0])
	} else {
		run := it.runs.take(tree.NewRunIter)
		run.Init(r, it.tx.slot, table.IterOptions{})
		src.It = run
	}
	if r.Tombstones {
		c := r.Covers()
		src.Cover, src.Alike = c.Cover, c.Alike
	}
	it.open = append(it.open, src.It)
	it.sources = append(it.sources, src)
}

// tableIter returns an iterator over a table, to be closed before the next state is read.
func (it *Iter) tableIter(h *tree.Handle) *table.Iter {
	t := it.tables.take(func() *table.Iter { return new(table.Iter) })
	h.InitIter(t, it.tx.slot, table.IterOptions{})
	return t
}

// drop lets go of the state and everything pinned in it.
func (it *Iter) drop() {
	it.tellWalked()
	for _, o := range it.open {
		o.Close()
	}
	clear(it.open)
	it.open = it.open[:0]
	it.chunks.Reset()
	it.tables.reset(func(t *table.Iter) { *t = table.Iter{} })
	it.runs.reset((*tree.RunIter).Clear)
	if it.rs != nil {
		it.tx.r.LetGo(it.rs)
		it.rs = nil
	}
}

// Valid reports whether the iterator stands on a row.
func (it *Iter) Valid() bool { return it.valid && !it.done && !it.tx.done }

// Key returns the key, valid until the next move.
func (it *Iter) Key() []byte {
	if !it.Valid() {
		return nil
	}
	return it.rows.Key()
}

// Value reads the value, valid until the next move.
func (it *Iter) Value() ([]byte, error) {
	if !it.Valid() {
		if it.err != nil {
			return nil, it.err
		}
		if !it.done && !it.tx.done {
			return nil, fmt.Errorf("%w: the iterator stands on no key", base.ErrTxClosed)
		}
		return nil, base.ErrTxClosed
	}
	v, err := it.rows.Value()
	if err != nil {
		it.fail(err)
		return nil, err
	}
	if v == nil {
		v = []byte{}
	}
	return v, nil
}

// Pair returns the key and the value, valid until the next move.
func (it *Iter) Pair() (key, value []byte, err error) {
	if value, err = it.Value(); err != nil {
		return nil, nil, err
	}
	return it.rows.Key(), value, nil
}

// Err returns the error that ended the iteration, nil at its regular end.
func (it *Iter) Err() error { return it.err }

// Close lets go of everything. Closing twice is fine.
func (it *Iter) Close() {
	if it.done {
		return
	}
	it.noteWalk()
	it.drop()
	for _, s := range it.spills {
		s.unref()
	}
	it.done, it.valid = true, false
	last := len(it.tx.iters) - 1
	it.tx.iters[it.at], it.tx.iters[last].at = it.tx.iters[last], it.at
	it.tx.iters[last], it.tx.iters = nil, it.tx.iters[:last]
}

// Recycle gives the memory of a closed iterator to those to come, unless its transaction
// has ended before. Nobody may use the iterator any more.
func (it *Iter) Recycle() {
	if it.tx == nil {
		return
	}
	if it.tx.writable && it.writes == it.tx.writes { // else there has been a spill since, with which they went
		it.tx.handedOut--
	}
	it.rows.Reset()
	it.ownIts.Reset()
	clear(it.sources[:cap(it.sources)]) // there were more before it moved to a newer state
	clear(it.memory[:cap(it.memory)])
	clear(it.own)
	clear(it.spills)
	it.tx, it.writes, it.err, it.cut = nil, nil, nil, view.Cut{}
	it.sources, it.memory, it.own, it.spills = it.sources[:0], it.memory[:0], it.own[:0], it.spills[:0]
	it.walked, it.walking, it.valid = 0, false, false
	closedIters.Put(it)
}

// noteWalk adds to the transaction's read set what has been walked: from where
// the walk began to the row it stands on, or to the bound if it ran out.
func (it *Iter) noteWalk() {
	if !it.walking || !it.tx.writable {
		return
	}
	it.walking = false
	switch {
	case it.forward && it.valid:
		it.end = append(append(it.end[:0], it.rows.Key()...), 0)
		it.tx.noteRange(it.start, it.end)
	case it.forward:
		it.tx.noteRange(it.start, it.high)
	case it.valid:
		it.tx.noteRange(it.rows.Key(), it.start)
	default:
		it.tx.noteRange(it.low, it.start)
	}
}

// noteScans completes the read set with what open iterators have walked.
func (tx *Tx) noteScans() {
	for _, it := range tx.iters {
		it.noteWalk()
	}
}
