package table

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/prefetch"
)

// IterOptions says how an iterator reads.
type IterOptions struct {
	// NoCache reads pages that are not resident into memory of the iterator and
	// leaves the cache as it is: for compactions and other walks of everything.
	NoCache bool
}

// Iter walks all rows of a table; it is a base.Iterator. An error sticks: from
// then on nothing is valid. It pins the key page it stands on, and the value
// page only once Value was called for its block. Moving within a block enters
// no epoch and allocates nothing. For one goroutine; others decode for it what it
// is about to come to (see ahead).
type Iter struct {
	r       *Reader
	slot    *epoch.Slot // nil: the cache is not used at all
	noCache bool

	block.Cursor // in block b; no rows if none is loaded
	b            int
	valid        bool
	err          error

	keyPage, valuePage *cache.Page // pinned, or nil
	keyBuf, valueBuf   []byte      // own memory for NoCache

	codec block.Codec // of the block carried last, or the table's first, if known
	known bool

	far   int    // the block that the walk has come to, which goes
	dir   int    // up or down, 1 or -1, from block to block; 0: it has just begun
	cold  int    // of its blocks so many that were not resident, one after the other, up to aheadAfter
	ahead *ahead // from then on, unless it is nil
}

// NewIter returns an iterator that stands nowhere. slot is a participant of the
// cache's epoch domain that the iterator's goroutine may enter. Close it.
func (r *Reader) NewIter(slot *epoch.Slot, opts IterOptions) *Iter {
	it := new(Iter)
	r.InitIter(it, slot, opts)
	return it
}

// InitIter is NewIter in the memory of it, which is new or closed.
func (r *Reader) InitIter(it *Iter, slot *epoch.Slot, opts IterOptions) {
	*it = Iter{r: r, slot: slot, noCache: opts.NoCache, b: -1, far: nowhere}
}

// nowhere is no block, nor next to one.
const nowhere = -2

var _ base.Iterator = (*Iter)(nil)

// First implements base.Iterator.
func (it *Iter) First() bool { return it.ready() && it.enter(0) && it.place(0) }

// Last implements base.Iterator.
func (it *Iter) Last() bool {
	return it.ready() && it.enter(it.r.Blocks()-1) && it.place(it.Rows()-1)
}

// SeekGE implements base.Iterator.
func (it *Iter) SeekGE(key []byte) bool {
	if !it.ready() || !it.enter(it.r.index.Find(key)) {
		return it.leave()
	}
	if i := it.SearchGE(key); i < it.Rows() {
		return it.place(i)
	}
	return it.enter(it.b+1) && it.place(0)
}

// SeekLT implements base.Iterator.
func (it *Iter) SeekLT(key []byte) bool {
	if !it.ready() || !it.enter(it.r.index.Find(key)) {
		return it.leave()
	}
	if i := it.SearchGE(key); i > 0 {
		return it.place(i - 1)
	}
	return it.enter(it.b-1) && it.place(it.Rows()-1)
}

// At returns where the iterator stands: on a row of a block.
func (it *Iter) At() (b, row int) { return it.b, it.Row }

// Go moves to a row of a block, as At returned them.
func (it *Iter) Go(b, row int) bool {
	if b == it.b {
		return it.place(row)
	}
	return it.ready() && it.enter(b) && it.place(row)
}

// Prefetch brings up to prefetch.Most bytes of a row's value on their way to the processor, if the values of its
// block are loaded. It returns how many bytes these are.
func (it *Iter) Prefetch(b, row int) int {
	if b != it.b || it.Values == nil {
		return 0
	}
	off, n := it.Keys.Value(row)
	n = min(n, prefetch.Most)
	prefetch.Lines(it.Values[off : off+n])
	return n
}

// Next implements base.Iterator.
func (it *Iter) Next() bool {
	if !it.valid {
		return false
	}
	if it.Row+1 < it.Rows() {
		it.Row++
		return true
	}
	return it.enter(it.b+1) && it.place(0)
}

// Prev implements base.Iterator.
func (it *Iter) Prev() bool {
	if !it.valid {
		return false
	}
	if it.Row > 0 {
		it.Row--
		return true
	}
	return it.enter(it.b-1) && it.place(it.Rows()-1)
}

// IsNewest implements iterator.VersionTeller: a newer version stands in the row before, or, of the first row, in another block.
func (it *Iter) IsNewest() bool { return it.Row > 0 && it.Single() }

// Valid implements base.Iterator.
func (it *Iter) Valid() bool { return it.valid }

// Key implements base.Iterator.
func (it *Iter) Key() []byte { return it.Cursor.Key() }

// Seq implements base.Iterator.
func (it *Iter) Seq() uint64 { return it.r.seq(it.Keys.Seq(it.Row)) }

// Kind implements base.Iterator.
func (it *Iter) Kind() base.Kind { return it.Keys.Kind(it.Row) }

// Err implements base.Iterator.
func (it *Iter) Err() error { return it.err }

// Close unpins the pages. It may be called again; nothing else may. It waits for whoever reads a block ahead.
func (it *Iter) Close() error {
	it.turn(nowhere)
	it.release()
	return nil
}

// Value implements base.Iterator. It is nil for a delete and never nil for a put.
func (it *Iter) Value() ([]byte, error) {
	if !it.valid || it.Kind() == base.KindDelete {
		return nil, it.err
	}
	value, ok := it.Cursor.Value()
	if !ok {
		if err := it.loadValues(); err != nil {
			it.fail(err)
			return nil, err
		}
		value, _ = it.Cursor.Value()
	}
	return value, nil
}

// Stretch implements iterator.Stretcher: the rows up to the end of the block, if all of
// them are plain and seen at the snapshot.
func (it *Iter) Stretch(limit []byte, snapshot uint64) (c *block.Cursor, end int) {
	if !it.valid || !it.Plain() || it.r.maxSeq() > snapshot {
		return nil, 0
	}
	end = it.Rows()
	if limit != nil && bytes.Compare(it.Keys.Key(end-1), limit) >= 0 {
		end = it.SearchGE(limit)
	}
	return &it.Cursor, end
}

// StretchBack implements iterator.Stretcher: the rows down to the second one of the block, if all of them are plain and seen
// at the snapshot. A newer version of the first one may stand in the block before.
func (it *Iter) StretchBack(low []byte, snapshot uint64) (c *block.Cursor, begin int) {
	if !it.valid || !it.Plain() || it.r.maxSeq() > snapshot {
		return nil, 0
	}
	if begin = 1; it.Rows() > 1 && bytes.Compare(it.Keys.Key(1), low) < 0 {
		begin = it.SearchGE(low)
	}
	return &it.Cursor, begin
}

// NewestSeq implements iterator.Dated.
func (it *Iter) NewestSeq() uint64 { return it.r.newestRow(it.b) }

// SkipGE implements iterator.Dated. It mostly stays in the block.
func (it *Iter) SkipGE(key []byte, below uint64) bool {
	if i := it.SearchGE(key); i < it.Rows() {
		return it.place(i)
	}
	if it.r.partSeqs != nil {
		last := it.r.index.Find(key)
		for next := (it.b/partBlocks + 1) * partBlocks; next <= last; next += partBlocks {
			if it.r.newestRow(next) >= below {
				return it.enter(next) && it.place(0)
			}
		}
	}
	return it.SeekGE(key)
}

// SkipLT implements iterator.Dated.
func (it *Iter) SkipLT(key []byte, below uint64) bool {
	if i := it.SearchGE(key); i > 0 {
		return it.place(i - 1)
	}
	if it.r.partSeqs != nil {
		first := it.r.index.Find(key)
		for before := it.b/partBlocks*partBlocks - 1; before >= first; before -= partBlocks {
			if it.r.newestRow(before) >= below {
				return it.enter(before) && it.place(it.Rows()-1)
			}
		}
	}
	return it.SeekLT(key)
}

// Whole implements iterator.Carrier. It says so of blocks that a merge of a store which has outgrown memory would write
// as they are: all rows are puts without a sequence, each of another key.
func (it *Iter) Whole(limit []byte) (raw int, c block.Codec, ok bool) {
	if !it.valid || it.Row != 0 || !it.noCache || !it.r.cache.Scarce() || !it.Plain() || !it.Unsequenced() || it.r.meta.GlobalSeq != 0 {
		return 0, 0, false
	}
	e, last := &it.r.index.Blocks[it.b], it.Keys.Key(it.Rows()-1)
	if e.Jumbo() || limit != nil && bytes.Compare(last, limit) >= 0 {
		return 0, 0, false
	}
	if !it.known {
		var err error
		if it.codec, err = it.r.Codec(); err != nil { // who reads the rows will say so
			return 0, 0, false
		}
		it.known = true
	}
	return it.KeyBytes() + int(e.ValueHeap), it.codec, true
}

// Carry implements iterator.Carrier.
func (it *Iter) Carry(dst *block.Stored) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	e := &it.r.index.Blocks[it.b]
	if err := s.read(it.r.src, e.Off, int(e.KeyPage)+int(e.ValuePage)); err != nil {
		return err
	}
	dst.Keys, dst.FormBytes = it.Keys, int(e.KeyForm)
	if err := dst.Set(it.r.id, e.Off, s.stored, int(e.KeyPage)); err != nil {
		return err
	}
	it.codec, _ = dst.Codec() // most likely the next one's, too
	return nil
}

// SkipBlock implements iterator.Carrier.
func (it *Iter) SkipBlock() bool { return it.valid && it.enter(it.b+1) && it.place(0) }

// ready makes sure that the index is there, and reports whether there is a block.
func (it *Iter) ready() bool {
	if it.err != nil || it.r.Blocks() == 0 {
		return it.leave()
	}
	if err := it.r.load(); err != nil {
		return it.fail(err)
	}
	return true
}

// place puts the iterator on a row of the loaded block.
func (it *Iter) place(row int) bool {
	it.Row, it.valid = row, true
	return true
}

func (it *Iter) leave() bool {
	it.valid = false
	return false
}

func (it *Iter) fail(err error) bool {
	it.err = err
	it.unload()
	return it.leave()
}

// enter makes b the loaded block, if there is such a block. Beyond the last one a walk past the cache is over: what it is
// merged with may go on for long.
func (it *Iter) enter(b int) bool {
	if it.err != nil || b < 0 || b >= it.r.Blocks() {
		if it.noCache {
			it.release()
		}
		return it.leave()
	}
	if b == it.b {
		return true
	}
	it.lookAhead(b)
	it.unload()
	if err := it.loadKeys(b); err != nil {
		return it.fail(err)
	}
	it.b = b
	return true
}

// lookAhead has blocks decoded ahead of a walk that comes to block b, if nothing it has come to was resident. A walk
// may step back over the border of a block to see whether there are versions of the same key.
func (it *Iter) lookAhead(b int) {
	if it.slot == nil || it.noCache {
		return
	}
	step := b - it.far
	switch {
	case it.dir == 0 && step*step == 1:
		it.dir = step
	case it.dir != 0 && (step == 0 || step == -it.dir):
		return
	case it.dir == 0 || step != it.dir:
		it.turn(b)
		return
	}
	it.far = b
	if it.ahead == nil {
		switch {
		case it.r.slots[2*b].Peek() != nil:
			it.cold = 0
			return
		case it.cold < aheadAfter:
			it.cold++
			return
		}
		if it.ahead = it.r.newAhead(b, it.dir); it.ahead == nil {
			return
		}
	}
	it.ahead.at(b, it.Values != nil)
}

// turn begins a walk at block b.
func (it *Iter) turn(b int) {
	it.ahead.end()
	it.far, it.dir, it.cold, it.ahead = b, 0, 0, nil
}

// unload lets go of the loaded block.
func (it *Iter) unload() {
	if it.keyPage != nil {
		it.keyPage.Unpin()
	}
	if it.valuePage != nil {
		it.valuePage.Unpin()
	}
	it.keyPage, it.valuePage, it.Cursor = nil, nil, block.Cursor{}
	it.b, it.valid = -1, false
}

// release lets go of the loaded block, and of the iterator's own memory.
func (it *Iter) release() {
	it.unload()
	it.keyBuf, it.valueBuf = nil, nil
}

func (it *Iter) loadKeys(b int) (err error) {
	if it.keyPage, err = it.page(2*b, b, (*Reader).keyPage); err != nil {
		return err
	}
	if it.keyPage != nil {
		it.Keys = block.View(it.keyPage.Data())
		return nil
	}
	it.keyBuf = resize(it.keyBuf, int(it.r.index.Blocks[b].KeyForm))
	if err := it.r.readKeys(it.r.src, b, it.keyBuf); err != nil {
		return err
	}
	it.Keys = block.View(it.keyBuf)
	return nil
}

func (it *Iter) loadValues() (err error) {
	e := &it.r.index.Blocks[it.b]
	if e.Jumbo() {
		it.Values, err = it.r.readJumbo(it.b)
		return err
	}
	if it.valuePage, err = it.page(2*it.b+1, it.b, (*Reader).valuePage); err != nil {
		return err
	}
	if it.valuePage != nil {
		it.Values = it.valuePage.Data()
		return nil
	}
	it.valueBuf = resize(it.valueBuf, int(e.ValueHeap))
	if err := it.r.readValues(it.b, it.valueBuf); err != nil {
		return err
	}
	it.Values = it.valueBuf
	return nil
}

// page returns a page of block b, pinned: a resident one, or one that read makes
// resident. It is nil if the iterator shall read the page into its own memory.
func (it *Iter) page(slot, b int, read func(*Reader, int) (*cache.Page, error)) (p *cache.Page, err error) {
	if it.slot == nil {
		return nil, nil
	}
	it.slot.Enter()
	defer it.slot.Exit()
	if it.noCache {
		p = it.r.cache.Load(&it.r.slots[slot])
	} else {
		p, err = read(it.r, b)
	}
	if p != nil {
		p.Pin()
	}
	return p, err
}
