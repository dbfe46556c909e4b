package report

import (
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// RecoveryStats says what Open found after an unclean end.
type RecoveryStats struct {
	DroppedBytes int64         // bytes behind the last whole commit that were dropped
	DroppedFrom  uint64        // position where they began: segment<<32 | offset
	Duration     time.Duration // of the recovery; 0 after a clean close
}

// Counters are totals since Open.
type Counters struct {
	Flushes, Compactions         atomic.Int64
	FlushedBytes, CompactedBytes atomic.Int64
	CommittedBytes               atomic.Int64
	StallNanos                   atomic.Int64
	HeapCopies                   atomic.Int64
	LastError                    atomic.Pointer[error]
}

// Count counts what an event tells.
func (c *Counters) Count(ev Event) {
	switch ev.Kind {
	case EventFlush:
		c.Flushes.Add(1)
	case EventCompaction:
		c.Compactions.Add(1)
	case EventBackgroundError, EventNoSpace:
		c.LastError.Store(&ev.Err)
	}
}

// Stats describes a store at one moment.
type Stats struct {
	Seq          uint64 // newest visible sequence
	Tables       int
	Levels       []LevelStats // by level, level 0 first
	DiskBytes    int64        // tables, with those of open transactions and those replaced that are still there, and log
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
	CommittedBytes              int64 // entries of commits
	LoggedBytes                 int64 // written to the log by commits
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

// AddState adds what a state of the store says.
func (s *Stats) AddState(rs *tree.State) {
	s.Runs = len(rs.Layers) + len(rs.Runs)
	s.Levels = make([]LevelStats, manifest.NumLevels)
	for level, t := range rs.Version.Tables() {
		s.addTable(level, t)
	}
	for _, l := range rs.Layers {
		if l.Mem != nil {
			s.LogBytes += l.Mem.LogBytes()
		}
		for _, h := range l.Tables() { // of a large transaction; the manifest has them a moment later
			s.addTable(0, h.Meta)
		}
	}
	s.DiskBytes += s.LogBytes
}

func (s *Stats) addTable(level int, t *base.TableMeta) {
	s.Tables++
	s.Levels[level].Tables++
	s.Levels[level].Bytes += t.Size
	s.DiskBytes += t.Size
	s.RawBytes += t.RawBytes
	s.Entries += t.Entries
}
