package engine

import (
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// What transactions, which are a layer of their own, need of the engine.

// Config returns what the store was opened with. It must not be changed.
func (e *Engine) Config() *config.Config { return &e.cfg }

// Tables returns the store's table files.
func (e *Engine) Tables() *tablefiles.Files { return e.tables }

// State returns the current state. The caller is inside the epoch, or holds a
// snapshot and only compares.
func (e *Engine) State() *tree.State { return e.state.Load() }

// BeginSnapshot returns a reader whose slot holds a snapshot of everything visible,
// and the snapshot's sequence. EndSnapshot gives both back.
func (e *Engine) BeginSnapshot() (*Reader, uint64) {
	r := e.readers.Get().(*Reader)
	return r, r.Slot.BeginSnapshot(&e.visible)
}

// EndSnapshot ends what BeginSnapshot began.
func (e *Engine) EndSnapshot(r *Reader) {
	r.Slot.ClearSnapshot()
	e.readers.Put(r)
}

// Retire calls free once nobody who reads now still does.
func (e *Engine) Retire(free func()) { e.epochs.Retire(free) }

// Pin counts n bytes as kept in memory by slices handed out, unless too many are
// already.
func (e *Engine) Pin(n int64) bool {
	if e.pinned.Load()+n > e.cfg.Memory/8 {
		return false
	}
	e.pinned.Add(n)
	return true
}

// Unpin ends what Pin counted.
func (e *Engine) Unpin(n int64) { e.pinned.Add(-n) }

// CountHeapCopy counts a value that was copied because too much is pinned.
func (e *Engine) CountHeapCopy() { e.counters.HeapCopies.Add(1) }

// CountWrites counts n bytes more (less, if negative) that transactions hold on the
// Go heap, of what they have written or read, to the budget.
func (e *Engine) CountWrites(n int64) {
	e.budget.Add(arena.ClassTx, n)
	if n > 0 {
		e.pages.Room(0)
	}
}

// CountedWrites returns what CountWrites has counted.
func (e *Engine) CountedWrites() int64 { return e.budget.UsedBy(arena.ClassTx) }

// BeginLarge waits for the turn to write, as a commit of its own, more than
// SpillBytes: each holds a copy of what it writes, so they go one at a time. The
// caller does not hold the store open yet, and calls EndLarge.
func (e *Engine) BeginLarge() { e.large.Lock() }

// EndLarge gives the turn to the next.
func (e *Engine) EndLarge() { e.large.Unlock() }
