package engine

import (
	"context"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// Engine is an open store. All methods are safe for concurrent use.
type Engine struct {
	cfg   config.Config
	store base.ID
	lock  io.Closer

	// visible is the greatest sequence readers may see. It only grows (E2).
	visible atomic.Uint64
	state   atomic.Pointer[tree.State]
	closed  atomic.Bool
	closing sync.Once

	epochs  *epoch.Domain
	readers sync.Pool // *reader
	budget  *arena.Budget
	arenas  *arena.Pool
	pages   *cache.Cache
	tables  *tablefiles.Files
	pinned  atomic.Int64 // bytes kept in memory by slices handed out
	walked  compact.Walked
	brake   compact.Brake
	stalled atomic.Int32 // commits that wait for room

	open     atomic.Int64 // transactions and one-shot calls in progress
	openDone chan struct{}

	commit committer

	// manifestMu serialises edits and file numbers. Taken before commit.mu.
	manifestMu sync.Mutex
	manifest   *manifest.Log   // nil until the first log segment is made
	opened     *manifest.State // as Open left it
	parents    func() error    // waits until the name of a store that is being made is durable
	logging    atomic.Bool     // manifest is not nil
	nextFile   uint64

	// Guarded by commit.mu.
	handles     map[uint64]*tree.Handle
	segments    []uint64 // log segments made and not yet obsolete
	neverSynced []string // log files that Close has no use for, and that are in the system's cache only
	flushErr    error    // why the last attempt to flush failed
	flushTries  uint64   // how many have ended

	leftovers compact.Leftovers // garbage that snapshots held

	flushing     sync.Mutex  // one flush at a time
	merging      sync.Mutex  // one compaction at a time
	surveyed     bool        // see survey; guarded by merging
	closeWaits   atomic.Bool // for both: what is under way is given up
	large        sync.Mutex  // one large one-shot write at a time; before all other locks
	obsolete     obsolete.Files
	reserve      *reserve.Space
	reserveGiven atomic.Bool // to deletes; segments are made without it until it is held again

	background sync.WaitGroup
	removing   sync.WaitGroup // of files, at the end of Close
	stop       context.CancelFunc
	stopped    context.Context
	wake       chan struct{} // the keeper's
	wakeMerge  chan struct{} // the compactor's
	wakeFlush  chan struct{} // the flusher's, where it waits to try again
	wakeIndex  chan struct{} // the indexer's

	counters report.Counters
	recovery report.RecoveryStats
}

// Reader is what a goroutine needs to read: an epoch slot, and room for a key.
// Readers are pooled.
type Reader struct {
	key  []byte
	Slot *epoch.Slot
}

// internal joins a bucket's prefix and a key.
func (r *Reader) internal(bucket, key []byte) []byte {
	r.key = append(append(r.key[:0], bucket...), key...)
	return r.key
}

func (e *Engine) newReader() *Reader {
	r := &Reader{Slot: e.epochs.Register()}
	// The pool drops readers at will; their slots go back when that happens.
	runtime.SetFinalizer(r, func(r *Reader) { r.Slot.Release() })
	return r
}

// enter begins a one-shot read. Everything reachable stays in memory until leave.
func (e *Engine) enter() (*Reader, error) {
	r := e.readers.Get().(*Reader)
	r.Slot.Enter()
	if e.closed.Load() {
		e.leave(r)
		return nil, base.ErrClosed
	}
	return r, nil
}

func (e *Engine) leave(r *Reader) {
	r.Slot.Exit()
	e.readers.Put(r)
}

// Hold keeps Close waiting until Release: for transactions and commits.
func (e *Engine) Hold() error {
	e.open.Add(1)
	if e.closed.Load() {
		e.Release()
		return base.ErrClosed
	}
	return nil
}

// Release ends what Hold began.
func (e *Engine) Release() {
	if e.open.Add(-1) == 0 && e.closed.Load() {
		select {
		case e.openDone <- struct{}{}:
		default:
		}
	}
}

func (e *Engine) path(t base.FileType, num uint64) string {
	return filepath.Join(e.cfg.Dir, base.FileName(t, num))
}

// newFileNum returns an unused file number. manifestMu is held.
func (e *Engine) newFileNum() uint64 {
	num := e.nextFile
	e.nextFile++
	return num
}

func (e *Engine) takeFileNum() uint64 {
	e.manifestMu.Lock()
	defer e.manifestMu.Unlock()
	return e.newFileNum()
}

// newState makes a State. commit.mu is held.
func (e *Engine) newState(layers []*tree.Layer, v *manifest.Version) *tree.State {
	return tree.NewState(layers, v, func(m *base.TableMeta) *tree.Handle { return e.handles[m.Num] })
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

// Acquire returns the current state with a reference the caller must drop.
func (e *Engine) Acquire(slot *epoch.Slot) *tree.State {
	slot.Enter()
	rs := e.state.Load()
	rs.Ref()
	slot.Exit()
	return rs
}

// publish replaces the current state. Holder of commit.mu only.
func (e *Engine) publish(rs *tree.State) {
	e.commit.sealed.Signal()
	e.pages.SetScarce(rs.RawBytes() > e.cfg.Memory)
	if old := e.state.Swap(rs); old != nil {
		e.epochs.Retire(old.Unref)
	}
}
