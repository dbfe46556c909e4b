package engine

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/mvcc"
)

// Tx is a transaction: a snapshot and, if writable, what it has written and read.
// It is for one goroutine at a time.
type Tx struct {
	e        *Engine
	r        *reader
	slot     *epoch.Slot // r's
	snapshot uint64
	writable bool
	durable  bool
	done     bool

	// What the transaction wrote: entries in buf, indexed by writes; before them
	// the runs it had to spill, oldest first.
	buf     []byte
	lent    bool  // somebody may still read buf: it must not be reused
	counted int64 // bytes counted as arena.ClassTx
	writes  *memtable.Table
	spills  []*spill

	reads mvcc.ReadSet
	iters map[*Iter]struct{}

	// What keeps slices from Get alive until the end.
	mems        []*memory
	pages       map[*cache.Page]struct{}
	pinnedBytes int64
}

// Begin starts a transaction.
func (e *Engine) Begin(writable bool) (*Tx, error) {
	if err := e.hold(); err != nil {
		return nil, err
	}
	if writable && e.cfg.ReadOnly {
		e.release()
		return nil, base.ErrReadOnly
	}
	r := e.readers.Get().(*reader)
	tx := &Tx{e: e, r: r, slot: r.slot, writable: writable, durable: !e.cfg.Relaxed}
	tx.snapshot = r.slot.BeginSnapshot(&e.visible)
	if writable {
		tx.writes = memtable.NewGrowing(base.SeqPrivate)
	}
	return tx, nil
}

// Snapshot returns the sequence the transaction reads at.
func (tx *Tx) Snapshot() uint64 { return tx.snapshot }

// SetDurable sets the durability of this commit.
func (tx *Tx) SetDurable(durable bool) { tx.durable = durable }

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
	hash := base.Hash(key)
	if tx.writable {
		if f, err := tx.own(key, hash); f.ok || err != nil {
			return f.value, orNotFound(&f, err)
		}
		tx.reads.AddKey(key, hash)
	}
	tx.slot.Enter()
	defer tx.slot.Exit()
	f, err := tx.e.state.Load().lookup(key, hash, base.Visibility{Snapshot: tx.snapshot})
	if err != nil || !f.live() {
		return nil, orNotFound(&f, err)
	}
	return tx.keep(&f), nil
}

// Has reports whether key has a value.
func (tx *Tx) Has(key []byte) (bool, error) {
	hash := base.Hash(key)
	if tx.writable {
		if f, err := tx.own(key, hash); f.ok || err != nil {
			return f.live(), err
		}
		tx.reads.AddKey(key, hash)
	}
	tx.slot.Enter()
	defer tx.slot.Exit()
	f, err := tx.e.state.Load().lookup(key, hash, base.Visibility{Snapshot: tx.snapshot})
	return f.live(), err
}

func orNotFound(f *found, err error) error {
	if err == nil && !f.live() {
		return base.ErrNotFound
	}
	return err
}

// own looks key up among the transaction's own writes.
func (tx *Tx) own(key []byte, hash uint64) (found, error) {
	if tx.writes.Len() == 0 && len(tx.spills) == 0 {
		return found{}, nil
	}
	vis := tx.visibility()
	cover := tx.writes.Cover(key, vis)
	if e, seq, ok := tx.writes.Get(key, hash, vis); ok {
		tx.lent = true
		return hit(found{value: present(e), seq: seq, kind: e.Kind, ok: true}, cover), nil
	}
	tx.slot.Enter()
	defer tx.slot.Exit()
	for i := len(tx.spills) - 1; i >= 0; i-- {
		f, done, err := tx.spills[i].run.lookup(key, hash, vis, &cover)
		if err != nil {
			return found{}, err
		}
		if done {
			if f.live() {
				f.value = tx.keep(&f)
			}
			return f, nil
		}
	}
	return hit(found{}, cover), nil
}

// keep makes f's value last until the transaction ends: it pins what the value
// stands in, or, when much is pinned already, copies it. Inside the epoch.
func (tx *Tx) keep(f *found) []byte {
	switch {
	case f.mem == nil && f.page == nil:
		return f.value
	case f.mem != nil && tx.pinMemory(f.mem), f.page != nil && tx.pinPage(f.page):
		return f.value[:len(f.value):len(f.value)]
	}
	tx.e.counters.heapCopies.Add(1)
	return append(make([]byte, 0, len(f.value)), f.value...)
}

func (tx *Tx) pinMemory(m *memory) bool {
	for _, p := range tx.mems {
		if p == m {
			return true
		}
	}
	if !tx.mayPin(int64(len(m.buf))) {
		return false
	}
	m.ref()
	tx.mems = append(tx.mems, m)
	return true
}

func (tx *Tx) pinPage(p *cache.Page) bool {
	if _, ok := tx.pages[p]; ok {
		return true
	}
	if !tx.mayPin(int64(len(p.Data()))) {
		return false
	}
	if tx.pages == nil {
		tx.pages = make(map[*cache.Page]struct{})
	}
	p.Pin()
	tx.pages[p] = struct{}{}
	return true
}

func (tx *Tx) mayPin(n int64) bool {
	if tx.e.pinned.Load()+n > tx.e.cfg.Memory/8 {
		return false
	}
	tx.e.pinned.Add(n)
	tx.pinnedBytes += n
	return true
}

// growAtOnce is the size from which a transaction's buffer grows to its limit in
// one step.
const growAtOnce = 4 << 20

// recordBytes is about what the index of a transaction's writes takes for each.
const recordBytes = 32

// held is what the writes take that are in memory.
func (tx *Tx) held() int { return len(tx.buf) + recordBytes*tx.writes.Len() }

// count counts a transaction that will spill to the budget, until it ends. Its
// memory is on the Go heap, which grows to twice what is in use.
func (tx *Tx) count() {
	if tx.counted == 0 {
		tx.counted = 2 * int64(tx.e.cfg.gatherBytes())
		tx.e.budget.Add(arena.ClassTx, tx.counted)
		tx.e.pages.Room(0)
	}
}

// Put sets key's value.
func (tx *Tx) Put(key, value []byte) error { return tx.write(base.KindPut, key, value) }

// Delete removes key.
func (tx *Tx) Delete(key []byte) error { return tx.write(base.KindDelete, key, nil) }

// DeleteRange removes the keys in [low, high).
func (tx *Tx) DeleteRange(low, high []byte) error {
	if tx.writable && bytes.Compare(low, high) >= 0 {
		return nil
	}
	return tx.write(base.KindRangeDelete, low, high)
}

func (tx *Tx) write(kind base.Kind, key, value []byte) error {
	if !tx.writable {
		return base.ErrReadOnly
	}
	if len(tx.buf) > 0 && tx.held()+len(key)+len(value) > tx.e.cfg.gatherBytes() {
		if err := tx.spill(); err != nil {
			return err
		}
	}
	at := len(tx.buf)
	if at > growAtOnce && cap(tx.buf)-at < 2*binary.MaxVarintLen64+1+len(key)+len(value) {
		// It will spill: growing step by step would copy it many times over.
		tx.count()
		tx.buf = slices.Grow(tx.buf, tx.e.cfg.gatherBytes()-at+len(key)+len(value)+64)
	}
	tx.buf = frame.AppendEntry(tx.buf, kind, key, value)
	tx.writes.SetBuffer(tx.buf)
	e, _ := frame.DecodeEntry(tx.buf[at:])
	tx.writes.Insert(at, e, base.Hash(key))
	return nil
}

// Commit ends the transaction and makes its writes visible. It returns the
// commit's sequence; of a transaction that wrote nothing, its snapshot.
func (tx *Tx) Commit() (uint64, error) {
	if tx.done {
		return 0, base.ErrTxClosed
	}
	defer tx.end()
	tx.noteScans()
	if tx.writes == nil || tx.writes.Len() == 0 && len(tx.spills) == 0 {
		return tx.snapshot, nil
	}
	if len(tx.spills) > 0 || len(tx.buf) > tx.e.cfg.spillBytes() {
		return tx.commitSpilled()
	}
	return tx.e.Commit(&Write{
		Payload: tx.buf, Count: tx.writes.Len(), Durable: tx.durable, Reads: &tx.reads, Snapshot: tx.snapshot})
}

// Rollback ends the transaction and forgets its writes. After Commit it does nothing.
func (tx *Tx) Rollback() {
	if !tx.done {
		tx.end()
	}
}

func (tx *Tx) end() {
	tx.done = true
	for it := range tx.iters {
		it.Close()
	}
	for _, m := range tx.mems {
		m.unref()
	}
	for p := range tx.pages {
		p.Unpin()
	}
	tx.dropSpills()
	tx.e.pinned.Add(-tx.pinnedBytes)
	tx.e.budget.Add(arena.ClassTx, -tx.counted)
	tx.slot.ClearSnapshot()
	tx.e.readers.Put(tx.r)
	tx.e.release()
	tx.buf, tx.writes, tx.mems, tx.pages = nil, nil, nil, nil
}

// AwaitOutcome waits until the commit that seq belongs to is visible or gone.
func (e *Engine) AwaitOutcome(seq uint64) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for e.visible.Load() < seq && seq < c.nextSeq && c.failed == nil {
		c.cond.Wait()
	}
}
