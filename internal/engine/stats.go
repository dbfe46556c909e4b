package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tree"
)

// Stats returns statistics. On a closed store they are zero.
func (e *Engine) Stats() (s report.Stats) {
	if e.Hold() != nil {
		return s
	}
	defer e.Release()
	r := e.Reader()
	defer e.Done(r)
	r.Slot.Glance(func() { s = e.statsOf(e.State()) })
	return s
}

// statsOf returns statistics of the state, which stays while it is looked at.
func (e *Engine) statsOf(rs *tree.State) report.Stats {
	s := report.Stats{
		Seq: e.Visible(), MemoryUsed: e.budget.Used(), MemoryLimit: e.budget.Limit(),
		Memtables: e.budget.UsedBy(arena.ClassMemtable), Pages: e.budget.UsedBy(arena.ClassPages),
		PointIndexes: e.budget.UsedBy(arena.ClassIndex), Flushes: e.events.Flushes.Load(), Compactions: e.events.Compactions.Load(),
		CommittedBytes: e.events.CommittedBytes.Load(), FlushedBytes: e.flushed(),
		CompactedBytes: e.events.CompactedBytes.Load() + e.tables.Private.Merged.Load(), DiskBytes: e.tables.Private.Bytes.Load() + e.obsolete.TableBytes(),
		HeapCopies: e.events.HeapCopies.Load(), OpenTransactions: e.Epochs.Holders(), Recovery: e.recovery, Stalls: time.Duration(e.events.StallNanos.Load()),
	}
	pages := e.pages.Stats()
	s.PinnedBytes, s.CacheMisses, s.CacheEvictions = pages.PinnedBytes, pages.Misses, pages.Evictions
	if p := e.events.LastError.Load(); p != nil {
		s.BackgroundError = *p
	}
	s.AddState(rs)
	e.addCommits(&s, rs)
	return s
}

// flushed returns how many bytes flushes have written, those of large transactions included.
func (e *Engine) flushed() int64 {
	return e.events.FlushedBytes.Load() + e.tables.Private.Flushed.Load()
}

// addCommits adds what commits have written to the log, and the debt of compaction, what waits to be flushed
// included: it is zero only when background work has nothing left to do.
func (e *Engine) addCommits(s *report.Stats, rs *tree.State) {
	debt := e.merger.Debt()
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	restless := e.awaitsRest(rs)
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem != e.commit.mem || restless {
			debt += l.Bytes()
		}
	}
	s.CompactionDebt, s.LoggedBytes = debt, e.commit.logged
}
