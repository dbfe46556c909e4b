package engine

import (
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// RecoveryStats says what Open found after an unclean end.
type RecoveryStats struct {
	DroppedBytes int64         // bytes behind the last whole commit that were dropped
	DroppedFrom  uint64        // position where they began: segment<<32 | offset
	Duration     time.Duration // of the recovery; 0 after a clean close
}

// counters are totals since Open.
type counters struct {
	flushes, compactions         atomic.Int64
	flushedBytes, compactedBytes atomic.Int64
	committedBytes               atomic.Int64
	stallNanos, throttled        atomic.Int64
	heapCopies                   atomic.Int64
	lastError                    atomic.Pointer[error]
}

func (c *counters) count(ev Event) {
	switch ev.Kind {
	case EventFlush:
		c.flushes.Add(1)
	case EventCompaction:
		c.compactions.Add(1)
	case EventBackgroundError, EventNoSpace:
		c.lastError.Store(&ev.Err)
	}
}

// Stats describes a store at one moment.
type Stats struct {
	Seq          uint64 // newest visible sequence
	Tables       int
	Levels       []LevelStats // by level, level 0 first
	DiskBytes    int64        // tables and log
	LogBytes     int64        // of which log segments, as far as used
	RawBytes     int64        // key and value bytes in tables before compression
	Entries      uint64       // rows in tables, superseded ones and deletes included
	Runs         int          // places a point read may have to look
	MemoryUsed   int64        // of Memory, by the engine's own accounts
	MemoryLimit  int64
	Memtables    int64 // bytes
	Pages        int64
	PointIndexes int64
	PinnedBytes  int64 // kept by slices handed out and iterators

	CacheMisses, CacheEvictions uint64
	Flushes, Compactions        int64
	CommittedBytes              int64 // payload of commits
	FlushedBytes                int64 // written by flushes
	CompactedBytes              int64 // written by compactions
	CompactionDebt              int64 // bytes that compaction has still to rewrite
	Stalls                      time.Duration
	HeapCopies                  int64 // values Get copied because too much was pinned
	OpenTransactions            int64
	BackgroundError             error // last one, nil if none
	Recovery                    RecoveryStats
}

// LevelStats describes one level.
type LevelStats struct {
	Tables int
	Bytes  int64
}

// Stats returns statistics. On a closed store they are zero.
func (e *Engine) Stats() Stats {
	if e.Hold() != nil {
		return Stats{}
	}
	defer e.Release()
	r := e.readers.Get().(*Reader)
	r.Slot.Enter()
	defer e.leave(r)
	rs := e.state.Load()
	s := Stats{
		Seq: e.visible.Load(), MemoryUsed: e.budget.Used(), MemoryLimit: e.cfg.Memory,
		Memtables: e.budget.UsedBy(arena.ClassMemtable), Pages: e.budget.UsedBy(arena.ClassPages),
		PointIndexes: e.budget.UsedBy(arena.ClassIndex),
		Flushes:      e.counters.flushes.Load(), Compactions: e.counters.compactions.Load(),
		CommittedBytes: e.counters.committedBytes.Load(), FlushedBytes: e.counters.flushedBytes.Load(),
		CompactedBytes: e.counters.compactedBytes.Load(), Stalls: time.Duration(e.counters.stallNanos.Load()),
		HeapCopies: e.counters.heapCopies.Load(), OpenTransactions: e.open.Load() - 1, Recovery: e.recovery,
	}
	pages := e.pages.Stats()
	s.PinnedBytes = pages.PinnedBytes
	s.CacheMisses, s.CacheEvictions = pages.Misses, pages.Evictions
	if p := e.counters.lastError.Load(); p != nil {
		s.BackgroundError = *p
	}
	s.addState(rs)
	s.CompactionDebt = e.owed(rs)
	return s
}

// owed is the debt of compaction, what waits to be flushed included: it is zero
// only when background work has nothing left to do.
func (e *Engine) owed(rs *tree.State) int64 {
	debt := e.currentDebt()
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem != e.commit.mem {
			debt++
		}
	}
	return debt
}

func (s *Stats) addState(rs *tree.State) {
	s.Runs = len(rs.Layers) + len(rs.Runs)
	s.Levels = make([]LevelStats, manifest.NumLevels)
	for level, t := range rs.Version.Tables() {
		s.Tables++
		s.Levels[level].Tables++
		s.Levels[level].Bytes += t.Size
		s.DiskBytes += t.Size
		s.RawBytes += t.RawBytes
		s.Entries += t.Entries
	}
	for _, l := range rs.Layers {
		if l.Mem != nil {
			s.LogBytes += l.Mem.LogBytes()
		}
	}
	s.DiskBytes += s.LogBytes
}
