package engine

import (
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/tablefiles"
)

// What transactions, which are a layer of their own, need of the engine.

// Config returns what the store was opened with. It must not be changed.
func (e *Engine) Config() *config.Config { return &e.cfg }

// Tables returns the store's table files.
func (e *Engine) Tables() *tablefiles.Files { return e.tables }

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
