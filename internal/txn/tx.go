package txn

import (
	"runtime"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// Tx is a transaction: a snapshot and, if writable, what it has written and read.
// It is for one goroutine at a time.
type Tx struct {
	Kept any // what its caller keeps for the next one that is begun in its memory

	e        *engine.Engine
	r        *view.Reader
	key      []byte       // of the caller, see Key
	w        engine.Write // the commit
	part     [1][]byte    // its entries
	slot     *epoch.Slot  // r's
	snapshot uint64
	of       *tree.State // that the snapshot is read in; nil: the current one
	writable bool
	durable  bool
	done     bool
	failed   error // of a write; there are no others then, and no commit

	// What the transaction wrote: entries in buf, indexed by writes; before them what
	// it has adopted, and the runs it had to spill, oldest first.
	buf       []byte
	lent      bool  // somebody may still read what is in buf, beside iterators: it must not be reused
	handedOut int   // iterators of buf, that is of writes, that were not given back
	room      int   // what the writes may take before they are counted again
	counted   int64 // bytes counted to the budget
	writes    *memtable.Table
	spills    []*spill

	adopted      []*memtable.Table // see adopt; oldest first
	adoptedIndex int               // bytes

	reads     mvcc.ReadSet
	first     bool       // it has lost often, and may read much
	readBytes int64      // of it counted as arena.ClassTx
	iters     []*Iter    // open
	gaps      *view.Gaps // where its own writes leave no row; nil: not known of any

	// What keeps slices from Get alive until the end.
	mems        []*tree.Memory
	pages       map[*cache.Page]struct{}
	pinnedBytes int64 // of pages
}

// Begin starts a transaction.
func Begin(e *engine.Engine, writable bool) (*Tx, error) {
	if writable && e.Config().ReadOnly {
		if err := e.Hold(); err != nil {
			return nil, err
		}
		defer e.Release()
		return nil, base.ErrReadOnly
	}
	r, snapshot, of, err := e.BeginSnapshot()
	if err != nil {
		return nil, err
	}
	tx, _ := r.Kept.(*Tx)
	if r.Kept = nil; tx == nil {
		tx = new(Tx)
	}
	tx.e, tx.r, tx.slot, tx.snapshot, tx.of = e, r, r.Slot, snapshot, of
	tx.writable, tx.durable, tx.done, tx.lent, tx.handedOut = writable, !e.Config().Relaxed, false, false, 0
	tx.room, tx.counted, tx.readBytes, tx.pinnedBytes = keptBytes, 0, 0, 0
	if writable {
		if tx.writes == nil {
			tx.writes = memtable.NewGrowing(base.SeqPrivate)
		}
		tx.reads.SetLimit(e.Config().Memory / 64)
		tx.reads.Grants, tx.first = (*reading)(tx), false
	}
	return tx, nil
}

// What is kept for reuse: memory for small transactions.
const (
	keptBytes   = 16 << 10 // of the buffer of entries
	keptRecords = 256      // of their index, and of what is pinned
)

// Recycle gives the memory of a transaction that has ended to those to come. The
// caller, and whoever it has handed the transaction to, must not use it any more.
func (tx *Tx) Recycle() {
	if !tx.done {
		panic("txn: a transaction in progress cannot be recycled")
	}
	e, r := tx.e, tx.r
	tx.e, tx.r, tx.slot = nil, nil, nil
	r.Kept = tx // without anything but memory
	e.Done(r)
}

// Key joins a bucket's prefix and a key, in memory that the next call uses again.
func (tx *Tx) Key(bucket, key []byte) []byte {
	tx.key = append(append(tx.key[:0], bucket...), key...)
	return tx.key
}

// Snapshot returns the sequence the transaction reads at.
func (tx *Tx) Snapshot() uint64 { return tx.snapshot }

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }

// SetDurable sets the durability of this commit.
func (tx *Tx) SetDurable(durable bool) { tx.durable = durable }

// state returns the State the snapshot is read in now. The caller is inside the epoch.
func (tx *Tx) state() *tree.State {
	if tx.of != nil {
		return tx.of
	}
	return tx.e.State()
}

// visibility is what tx sees at this moment, its own writes included.
func (tx *Tx) visibility() base.Visibility {
	v := base.Visibility{Snapshot: tx.snapshot}
	if tx.writable {
		v.PrivateLimit = tx.writes.LastSeq() + 1
	}
	return v
}

// Get returns the value of key, valid until the transaction ends.
func (tx *Tx) Get(key []byte) ([]byte, error) {
	var f tree.Found
	hash := base.Hash(key)
	if tx.writable {
		if err := tx.own(&f, key, hash); f.OK || err != nil {
			return f.Value, orNotFound(&f, err)
		}
		tx.noteKey(key, hash)
	}
	tx.slot.Enter()
	defer tx.exit()
	if err := tx.state().Lookup(&f, key, hash, base.Visibility{Snapshot: tx.snapshot}); err != nil || !f.Live() {
		return nil, orNotFound(&f, err)
	}
	return tx.keep(&f), nil
}

// Has reports whether key has a value.
func (tx *Tx) Has(key []byte) (bool, error) {
	var f tree.Found
	f.KeyOnly = true
	hash := base.Hash(key)
	if tx.writable {
		if err := tx.own(&f, key, hash); f.OK || err != nil {
			return f.Live(), err
		}
		tx.noteKey(key, hash)
	}
	tx.slot.Enter()
	defer tx.exit()
	err := tx.state().Lookup(&f, key, hash, base.Visibility{Snapshot: tx.snapshot})
	return f.Live(), err
}

// exit leaves the epoch. Until then tx is in use, though nothing else of it may be: a transaction
// that is never ended is found by the collector once it is not, and its slot given back.
func (tx *Tx) exit() {
	tx.slot.Exit()
	runtime.KeepAlive(tx)
}

func orNotFound(f *tree.Found, err error) error {
	if err == nil && !f.Live() {
		return base.ErrNotFound
	}
	return err
}

// own looks key up among the transaction's own writes. f is zero but for KeyOnly, and stays so if nothing is
// found.
func (tx *Tx) own(f *tree.Found, key []byte, hash uint64) error {
	if tx.writes.Len() == 0 && len(tx.spills) == 0 {
		return nil
	}
	vis := tx.visibility()
	cover := tx.writes.Cover(key, vis)
	if f.LookupMemory(tx.writes, key, hash, vis) {
		tx.lent = true
		f.Hide(cover)
		return nil
	}
	tx.slot.Enter()
	defer tx.exit()
	for i := len(tx.spills) - 1; i >= 0; i-- {
		done, err := tx.spills[i].Run.Lookup(f, key, hash, vis, &cover)
		if err != nil {
			return err
		}
		if done {
			if f.Live() {
				f.Value = tx.keep(f)
			}
			return nil
		}
	}
	f.Hide(cover)
	return nil
}

// keep makes f's value last until the transaction ends: it pins what the value
// stands in, or, when much is pinned already, copies it. Inside the epoch.
func (tx *Tx) keep(f *tree.Found) []byte {
	switch {
	case f.Mem == nil && f.Page == nil:
		return f.Value
	case f.Mem != nil && tx.pinMemory(f.Mem), f.Page != nil && tx.pinPage(f.Page):
		return f.Value[:len(f.Value):len(f.Value)]
	}
	tx.e.CountHeapCopy()
	return append(make([]byte, 0, len(f.Value)), f.Value...)
}

func (tx *Tx) pinMemory(m *tree.Memory) bool {
	for _, p := range tx.mems {
		if p == m {
			return true
		}
	}
	if !m.Pin(tx.e) {
		return false
	}
	tx.mems = append(tx.mems, m)
	return true
}

func (tx *Tx) pinPage(p *cache.Page) bool {
	if _, ok := tx.pages[p]; ok {
		return true
	}
	n := int64(len(p.Data()))
	if !tx.e.Pin(n) {
		return false
	}
	tx.pinnedBytes += n
	if tx.pages == nil {
		tx.pages = make(map[*cache.Page]struct{})
	}
	p.Pin()
	tx.pages[p] = struct{}{}
	return true
}

// Commit ends the transaction and makes its writes visible. It returns the
// commit's sequence; of a transaction that wrote nothing, its snapshot. Where a write
// has failed it returns that error: not all of what was written is there.
func (tx *Tx) Commit() (uint64, error) {
	if tx.done {
		return 0, base.ErrTxClosed
	}
	defer tx.end()
	if tx.failed != nil {
		return 0, tx.failed
	}
	tx.noteScans()
	if tx.writes == nil || tx.writes.Len() == 0 && len(tx.spills) == 0 {
		return tx.snapshot, nil
	}
	if len(tx.spills) > 0 || len(tx.buf) > tx.e.Config().SpillBytes() || tx.writes.RangeDeleteBytes() > frame.MaxShortBytes {
		return tx.commitSpilled() // where others do not wait while so much is copied, or so many range deletes are put in order
	}
	tx.part[0] = tx.buf
	tx.w.Reset()
	tx.w.Entries, tx.w.Bytes, tx.w.Count, tx.w.Durable = tx.part[:], len(tx.buf), tx.writes.Len(), tx.durable
	tx.w.Reads, tx.w.Snapshot = &tx.reads, tx.snapshot
	seq, err := tx.e.Commit(&tx.w)
	if takesLessInTables(len(tx.buf), err) {
		return tx.commitSpilled()
	}
	return seq, err
}

// Rollback ends the transaction and forgets its writes. After Commit it does nothing.
func (tx *Tx) Rollback() {
	if !tx.done {
		tx.end()
	}
}

func (tx *Tx) end() {
	tx.done = true
	for len(tx.iters) > 0 {
		it := tx.iters[len(tx.iters)-1]
		if it.valid { // what comes behind it was not looked at
			it.err = base.ErrTxClosed
		}
		it.Close()
		it.tx = nil // which begins again as another
	}
	for _, m := range tx.mems {
		m.Unpin(tx.e)
	}
	if len(tx.pages) > 0 { // of most transactions there is nothing of all this
		for p := range tx.pages {
			p.Unpin()
		}
	}
	tx.dropSpills()
	if tx.pinnedBytes != 0 {
		tx.e.Unpin(tx.pinnedBytes)
	}
	if n := tx.counted + tx.readBytes; n != 0 {
		tx.e.CountWrites(-n)
	}
	tx.of = nil
	tx.e.EndSnapshot(tx.r)
	tx.forget()
}

// isLent reports whether somebody may still read buf, or writes.
func (tx *Tx) isLent() bool { return tx.lent || tx.handedOut > 0 }

// forget lets go of everything but memory worth keeping.
func (tx *Tx) forget() {
	tx.w.Reset()
	tx.part[0] = nil
	tx.gaps, tx.failed = nil, nil
	tx.adopted, tx.adoptedIndex = nil, 0
	if tx.buf = tx.buf[:0]; tx.isLent() {
		tx.buf = nil
	} else if cap(tx.buf) > keptBytes {
		tx.e.KeepWrites(tx.buf)
		tx.buf = nil
	}
	if tx.writes != nil && (tx.isLent() || tx.writes.Len() > keptRecords) {
		tx.writes = nil
	}
	if tx.writes != nil {
		tx.writes.Reset(base.SeqPrivate)
	}
	if tx.reads.Memory() > keptBytes {
		tx.reads = mvcc.ReadSet{}
	}
	tx.reads.Reset()
	if len(tx.pages) > keptRecords {
		tx.pages = nil
	}
	if len(tx.pages) > 0 {
		clear(tx.pages)
	}
	clear(tx.mems)
	tx.mems = tx.mems[:0]
	if cap(tx.iters) > keptRecords {
		tx.iters = nil
	}
}
