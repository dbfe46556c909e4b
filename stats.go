package cairn

import (
	"context"
	"time"

	"github.com/cairndb/cairn/internal/report"
)

// Stats describes a store at one moment. Byte counts are exact unless said to be
// estimates; totals count from Open. It is plain data: keeping it costs nothing.
type Stats struct {
	// Seq is the newest visible sequence. Sequences count writes, not commits; a transaction larger than memory
	// has one for each run of tables it has written.
	Seq uint64

	// DiskBytes is what tables and log use on disk, those tables included in which open
	// transactions have what they write, and those that a merge has replaced, whose
	// files go as soon as its result is durable and no iterator stands in them: while one is
	// replaced or removed it may be counted twice, or not at all. Space reserved for the log
	// but not written yet is left out.
	DiskBytes int64
	// LogBytes is the part of DiskBytes that is log: writes not yet in tables. Of a store that another process
	// writes it is at most that.
	LogBytes int64
	// RawBytes is the length of all keys and values in tables before compression,
	// superseded ones included, each key with the one byte that names its bucket.
	RawBytes int64
	// Entries is the number of rows in tables: deletes and superseded versions
	// that compaction has not yet removed included, writes still in the log not.
	Entries uint64
	// Tables is the number of table files; like what is said of tables below, and like RawBytes and Entries, without
	// those of open transactions.
	Tables int
	// Levels describes the tables of each level; level 0 has the youngest.
	Levels []LevelStats
	// Runs is the number of places a point read may have to look into.
	Runs int

	// SpaceAmplification estimates what superseded and deleted data costs: table
	// bytes over the bytes of the deepest level in use, which holds no key twice, but for versions kept for snapshots.
	// 1 is the least; 0 means there are no tables. What deletes hide, in memtables or in tables above, is not in it.
	SpaceAmplification float64
	// WriteAmplification is bytes written to the disk (log, flushes and
	// compactions) per byte committed since Open; 0 before the first commit.
	WriteAmplification float64
	// CommittedBytes is the size of all commits since Open: of what they put and delete, as it is
	// encoded for the log, or of a large transaction for its tables, before they are compressed.
	CommittedBytes int64
	// LoggedBytes is what commits have written to the log since Open: with the header of each, of
	// which a small one is mostly made, and what it is filled up with.
	LoggedBytes int64
	// FlushedBytes is what writing memtables to tables has written since Open, and what large transactions hold,
	// those that were rolled back included.
	FlushedBytes int64
	// CompactedBytes is what merging tables has written since Open, those of large transactions included. Where
	// memtables and tables are merged at once, as when a store comes to rest or is closed, what is written counts
	// here and as flushed, in proportion to what the ones and the others hold.
	CompactedBytes int64
	// Flushes and Compactions count finished ones since Open. Where memtables and tables are merged at once that is a
	// flush; tables of large transactions are neither.
	Flushes, Compactions int64
	// CompactionDebt is about how many bytes background work has still to write until
	// the tables are in the shape it aims for, those of memtables that wait to be flushed
	// included. Zero means it has nothing to do, but for compressing well what was
	// compressed in haste: see Balanced. Not that deletes hide nothing: few of them wait in the log,
	// unless they hide half of what the tables hold.
	CompactionDebt int64
	// Stalls is how long commits have waited for background work since Open, the
	// waits of all goroutines added up.
	Stalls time.Duration

	// MemoryLimit is Options.Memory, in bytes, or the default it stood for; less while the system gives less.
	MemoryLimit int64
	// MemoryUsed is how much of it is in use, by the store's own accounts:
	// Memtables, Pages, PointIndexes, table metadata (range deletes in tables are part
	// of it), and what open transactions hold that have written, or read of keys, more than
	// 16 KiB.
	MemoryUsed int64
	// Memtables is the memory of writes not yet in tables, spare segments included.
	Memtables int64
	// Pages is the memory of decoded table pages.
	Pages int64
	// PointIndexes is the memory of the tables' point indexes.
	PointIndexes int64
	// PinnedBytes is memory of decoded pages that cannot be given up because slices
	// handed out by Get, iterators or merges use it.
	PinnedBytes int64
	// HeapCopies counts values that Get copied to the Go heap, because slices handed
	// out before kept an eighth of the memory already: memtables as a whole, and pages,
	// counted for every transaction that has slices of one.
	HeapCopies int64
	// PageMisses counts pages read from disk, PageEvictions pages given up for
	// others, since Open.
	PageMisses, PageEvictions uint64

	// OpenTransactions counts transactions that have not ended.
	OpenTransactions int64
	// BackgroundError is the last error of background work since Open, nil if there
	// was none. Work that failed is tried again, unless it matches ErrPoisoned.
	BackgroundError error
	// Recovery is what Open found after an unclean end.
	Recovery RecoveryStats
}

// LevelStats describes one level of tables.
type LevelStats struct {
	Tables int   // number of files
	Bytes  int64 // on disk
}

// RecoveryStats says what Open did to repair the end of the log. What was dropped every Open says,
// until the store has been written to and closed.
type RecoveryStats struct {
	// DroppedBytes is how much of the log behind the last whole commit, and of the
	// manifest behind its last whole edit, was left out: what was in progress when the
	// power went, none of it acknowledged as Durable unless the log is damaged up to its
	// end (see Open). Zero bytes behind the end do not count.
	DroppedBytes int64
	// DroppedFrom is where these bytes began: the number of the log segment in the
	// upper 32 bits, the offset in its file in the lower. Zero if nothing of the log was.
	DroppedFrom uint64
	// Duration is how long recovery took, zero if there was nothing to recover.
	Duration time.Duration
}

// Stats describes the store at this moment. It is cheap enough to be called every
// second, but not on every operation. On a closed store it is zero. Of a store that another process writes
// (Options.ReadOnly) it tells what was seen last, by a read, a transaction, Verify, or in the background ten times a
// second: it does not look at the files.
func (db *DB) Stats() Stats {
	e := db.e.Stats()
	s := Stats{
		Seq: e.Seq, DiskBytes: e.DiskBytes, LogBytes: e.LogBytes, RawBytes: e.RawBytes,
		Entries: e.Entries, Tables: e.Tables, Runs: e.Runs,
		CommittedBytes: e.CommittedBytes, LoggedBytes: e.LoggedBytes, FlushedBytes: e.FlushedBytes, CompactedBytes: e.CompactedBytes,
		Flushes: e.Flushes, Compactions: e.Compactions, CompactionDebt: e.CompactionDebt, Stalls: e.Stalls,
		MemoryLimit: e.MemoryLimit, MemoryUsed: e.MemoryUsed, Memtables: e.Memtables, Pages: e.Pages,
		PointIndexes: e.PointIndexes, PinnedBytes: e.PinnedBytes, HeapCopies: e.HeapCopies,
		PageMisses: e.CacheMisses, PageEvictions: e.CacheEvictions,
		OpenTransactions: e.OpenTransactions, BackgroundError: e.BackgroundError,
		Recovery: RecoveryStats(e.Recovery),
	}
	for _, l := range e.Levels {
		s.Levels = append(s.Levels, LevelStats(l))
	}
	s.amplify(&e)
	return s
}

// amplify derives the amplifications from the totals.
func (s *Stats) amplify(e *report.Stats) {
	deepest, tables := int64(0), int64(0)
	for _, l := range e.Levels {
		tables += l.Bytes
		if l.Bytes > 0 {
			deepest = l.Bytes
		}
	}
	if deepest > 0 {
		s.SpaceAmplification = float64(tables) / float64(deepest)
	}
	if e.CommittedBytes > 0 {
		written := e.LoggedBytes + e.FlushedBytes + e.CompactedBytes
		s.WriteAmplification = float64(written) / float64(e.CommittedBytes)
	}
}

// Report is what Verify found.
type Report struct {
	Tables   int     // table files read to their end, damaged ones included
	Bytes    int64   // bytes read
	Entries  uint64  // rows seen, deletes and superseded versions included; those of damaged pages are not
	Problems []error // every damaged page, and all else found wrong, each matching ErrCorrupt or an I/O error, which ends the look at its file; nil if all is well
}

// Verify reads every table in full and checks every checksum, the order of keys,
// and that files agree with what the manifest says of them, and that of each key newer versions stand in the tables
// that reads look at first; for that it may read keys once more. Files are read as they are open: that the name of
// one is gone it does not see. Reads and writes go on
// meanwhile; what is checked are the tables as of the call. All that is wrong is in
// the report and, joined, in the error. Where another process writes the store (Options.ReadOnly), and it cannot be
// seen what tables there are by now, that is the error, and the report is empty. ctx ends it early with ctx.Err(); the
// report then covers what was read. ctx may be nil.
func (db *DB) Verify(ctx context.Context) (Report, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	r, err := db.e.Verify(ctx, nil)
	return Report(r), err
}
