package engine

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/follow"
	"github.com/cairndb/cairn/internal/indexer"
	"github.com/cairndb/cairn/internal/installer"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/logfiles"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/recycle"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/shm"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// Engine is an open store. All methods are safe for concurrent use.
type Engine struct {
	view.View // what readers see

	cfg     config.Config
	lock    io.Closer  // nil: the store is read-only
	unmake  func()     // removes the directories that Open made
	shown   shm.Writer // what other processes see
	closing sync.Once

	follower *follow.Follower // nil: the store is not read-only

	budget    *arena.Budget
	buffers   *tree.Buffers
	pages     *cache.Cache
	tables    *tablefiles.Files
	merger    merger.Merger
	indexer   indexer.Indexer
	installer installer.Installer
	walked    compact.Walked
	writes    recycle.Buffer  // of the last large transaction
	fitting   compact.Fitting // guarded by merging
	deletes   compact.Account // guarded by merging
	pace      pace.Pace
	syncer    pace.Syncer
	stalled   atomic.Int32 // commits that wait for room
	tight     atomic.Int32 // those of them that wait for room on the disk, which only merges make
	awaited   atomic.Bool  // one has waited since the flush that is under way began
	pressed   atomic.Bool  // one has waited while the flush before was
	drowsiness
	asleep atomic.Bool // the compactor looks seldom: who begins a segment wakes it

	commit committer

	ledger ledger.Ledger // of the manifest. Locked before commit.mu
	logs   logfiles.Files

	segments segments.Maker

	// Guarded by commit.mu.
	flushErr   error  // why the last attempt to flush failed
	flushTries uint64 // how many have ended
	mergeTries uint64 // how many compactions have ended, or were not found, that a commit may have waited for
	merged     bool   // the last of these has merged something

	flushing   sync.Mutex  // one flush at a time
	merging    sync.Mutex  // one compaction at a time
	closeWaits atomic.Bool // for both: what is under way is given up
	large      sync.Mutex  // one large one-shot write at a time; before all other locks
	obsolete   obsolete.Files
	reserve    *reserve.Space

	background   sync.WaitGroup
	removing     sync.WaitGroup // of files, at the end of Close
	stop         context.CancelFunc
	stopped      context.Context
	stopIndexing context.CancelFunc // before Close makes tables that nobody reads
	wake         chan struct{}      // the keeper's
	wakeMerge    chan struct{}      // the compactor's
	wakeFlush    chan struct{}      // the flusher's, where it waits to try again
	spaceShort   atomic.Bool        // the last attempt to make a segment found no space
	restShort    atomic.Bool        // the last merge of everything did

	events   report.Emitter
	recovery report.RecoveryStats
}

func (e *Engine) path(t base.FileType, num uint64) string {
	return base.FilePath(e.cfg.Dir, t, num)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (e *Engine) wakeBackground() {
	signal(e.wake)
	e.commit.wakeAll()
}

// publishing is called before a State is published. commit.mu is held.
func (e *Engine) publishing(rs *tree.State) {
	e.commit.sealed.Signal()
	e.pages.SetScarce(rs.RawBytes() > e.budget.Limit())
}

// closeTable closes a table nobody reads any more.
func (e *Engine) closeTable(h *tree.Handle) {
	h.Reader.Close()
	h.Closed.Store(true)
	signal(e.wake)
	e.indexer.Wake() // its point index has made room
}

// What transactions, which are a layer of their own, need of the engine.

// Config returns what the store was opened with. It must not be changed.
func (e *Engine) Config() *config.Config { return &e.cfg }

// Tables returns the store's table files.
func (e *Engine) Tables() *tablefiles.Files { return e.tables }

// CountHeapCopy counts a value that was copied because too much is pinned.
func (e *Engine) CountHeapCopy() { e.events.HeapCopies.Add(1) }

// CountWrites counts n bytes more (less, if negative) that transactions hold on the
// Go heap, of what they have written or read, to the budget.
func (e *Engine) CountWrites(n int64) { e.count(arena.ClassTx, n) }

func (e *Engine) count(c arena.Class, n int64) {
	e.budget.Add(c, n)
	if n > 0 {
		e.pages.Room(0)
	}
}

// CountedWrites returns what CountWrites has counted: what KeepWrites keeps is nobody's.
func (e *Engine) CountedWrites() int64 { return e.budget.UsedBy(arena.ClassTx) }

// KeepWrites keeps a buffer of writes for the next transaction that is large. Nobody may use it any more. One that is
// larger than others can be could not be written to a table.
func (e *Engine) KeepWrites(buf []byte) { e.writes.Keep(buf, 2*e.cfg.GatherBytes()) }

// TakeWrites returns a buffer of at least n bytes that was kept, nil if there is none.
func (e *Engine) TakeWrites(n int) []byte { return e.writes.Take(n) }

// BeginLarge waits for the turn to write, as a commit of its own, more than
// SpillBytes: each holds a copy of what it writes, so they go one at a time. The
// caller does not hold the store open yet, and calls EndLarge.
func (e *Engine) BeginLarge() { e.large.Lock() }

// EndLarge gives the turn to the next.
func (e *Engine) EndLarge() { e.large.Unlock() }
