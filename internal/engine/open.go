package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/directory"
	"github.com/cairndb/cairn/internal/follow"
	"github.com/cairndb/cairn/internal/indexer"
	"github.com/cairndb/cairn/internal/installer"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// Open opens the store in cfg.Dir, and makes it if there is none.
func Open(cfg config.Config) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	e := newEngine(cfg)
	if err := e.open(); err != nil {
		e.giveBack()
		return nil, reserve.SpaceError(err)
	}
	return e, nil
}

func newEngine(cfg config.Config) *Engine {
	e := &Engine{
		cfg: cfg, budget: arena.NewBudget(cfg.Memory),
		wake: make(chan struct{}, 1), wakeMerge: make(chan struct{}, 1), wakeFlush: make(chan struct{}, 1),
	}
	e.events.Logger, e.events.OnEvent = cfg.Logger, cfg.OnEvent
	e.pace.Config = &e.cfg
	e.syncer = pace.Syncer{Commits: &e.commit.mu, Newest: func() uint64 { return e.commit.nextSeq - 1 }, Visible: e.Visible, Sync: e.syncWritten}
	e.syncer.Init()
	e.writes.Count = func(n int64) { e.count(arena.ClassKept, n) }
	e.fitting = compact.Fitting{Free: e.freeSpace, Shrink: e.shrinkReserve}
	e.Init(cfg.Memory/8, func(delta int64) { e.budget.Add(arena.ClassMemtable, delta) })
	e.buffers = tree.NewBuffers(e.budget)
	e.pages = cache.New(e.budget, e.Epochs).Leave()
	e.tables = &tablefiles.Files{
		FS: cfg.FS, Dir: cfg.Dir, Pages: e.pages, Budget: e.budget, Share: cfg.Memory / indexer.Share,
		Profile: cfg.Profile, NewNum: e.ledger.TakeNum, PutBack: e.ledger.PutBack, SyncDir: e.ledger.SyncDir, Unused: e.closeTable,
		Raw: func() int64 { return e.State().RawBytes() }, Pressed: func() bool { return e.stalled.Load() > 0 || e.pressed.Load() },
	}
	e.tables.NotRemoved = func(path string) { e.obsolete.Again(obsolete.File{Path: path}) }
	e.merger.View, e.merger.Tables, e.merger.MustStop = &e.View, e.tables, e.mustStop
	e.indexer.View, e.indexer.Tables, e.indexer.Emit = &e.View, e.tables, e.events.Emit
	e.drowsiness = drowsy
	e.indexer.Init()
	e.ledger.FS, e.ledger.Dir, e.ledger.Obsolete, e.ledger.Poison, e.ledger.Edited = cfg.FS, cfg.Dir, &e.obsolete, e.poisonNow, e.shown.Edited
	e.logs.FS, e.logs.Dir, e.logs.Obsolete, e.logs.NewNum, e.logs.GiveBack, e.logs.MayUse = cfg.FS, cfg.Dir, &e.obsolete, e.ledger.NewNum, e.ledger.GiveBack, e.mayUseAgain
	e.logs.Failed = func(err error) { e.events.Emit(report.Event{Kind: report.EventBackgroundError, Err: err}) }
	e.segments = segments.Maker{
		Memory: cfg.Memory, Budget: e.budget, Buffers: e.buffers, Pages: e.pages, Tables: e.tables, Ledger: &e.ledger, Logs: &e.logs,
		Epochs: e.Epochs, Hurry: e.commit.hurry.Load, Log: &e.commit.log,
	}
	e.reserve = reserve.New(cfg.FS, e.path(base.FileReserve, 0))
	e.commit.shape.Relaxed = cfg.Relaxed
	e.commit.cond, e.commit.sealed = sync.NewCond(&e.commit.mu), sync.NewCond(&e.commit.mu)
	e.commit.log.Commits, e.commit.log.Ledger, e.commit.log.Poison = &e.commit.mu, &e.ledger, e.poisonNow
	e.installer = installer.Installer{
		View: &e.View, Merger: &e.merger, Indexer: &e.indexer, Ledger: &e.ledger, Logs: &e.logs, Obsolete: &e.obsolete,
		Commits: &e.commit.mu, Changed: e.commit.cond, Log: &e.commit.log, Poison: e.poisonNow,
		Refusal: e.refuseEdit, Closing: func() bool { return e.commit.closing }, Uses: e.commit.hasSegment, Publishing: e.publishing,
		Handles: tree.Handles{},
	}
	e.commit.queue.Lock, e.commit.queue.Changed, e.commit.queue.Log = &e.commit.mu, e.commit.cond, &round{Engine: e}
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e
}

func (e *Engine) open() (err error) {
	made, fsys := 0, e.cfg.FS
	if e.cfg.ReadOnly {
		if _, err = directory.Make(fsys, e.cfg.Dir, true); err != nil {
			return err
		}
		err = e.openReadOnly()
	} else if made, e.lock, err = directory.Claim(fsys, e.cfg.Dir, e.cfg.LockTimeout); err != nil {
		return err
	} else {
		e.unmake = func() { directory.Unmake(fsys, e.cfg.Dir, made, e.lock) }
		e.guard()
		err = e.openToWrite(made)
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", e.cfg.Dir, directory.Strange(err))
	}
	e.startBackground()
	return nil
}

func (e *Engine) openToWrite(made int) error {
	state, err := manifest.Recover(e.cfg.FS, e.cfg.Dir, false)
	names, listed := e.cfg.FS.List(e.cfg.Dir)
	if g, ok := e.cfg.FS.(vfs.Guard); ok { // else it may be another store's, which had the name meanwhile
		if moved := g.Check(); moved != nil {
			return moved
		}
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if err == nil || missing {
		err = listed
	}
	switch {
	case err != nil:
		return err
	case missing:
		return directory.Later(e.create(made, names), e.tables.NotRemoved)
	}
	return directory.Later(e.load(state, names), e.tables.NotRemoved)
}

func (e *Engine) openReadOnly() error {
	e.follower = &follow.Follower{
		FS: e.cfg.FS, Dir: e.cfg.Dir, Timeout: e.cfg.LockTimeout, View: &e.View, Tables: e.tables, Buffers: e.buffers, Emit: e.events.Emit,
		Tell: func(rs *tree.State) {
			e.pages.SetScarce(rs.RawBytes() > e.budget.Limit())
			e.indexer.Wake()
		},
	}
	err := e.follower.Open()
	e.recovery = e.follower.Recovery
	return err
}

// share begins to show other processes what is committed, before there is anything in the log. Where that
// cannot be had they find out, and do not read the store meanwhile. Where they would not, as for want of space, the first
// commit has to wait: that is the error. commit.mu is held, or nobody commits yet.
func (e *Engine) share() error {
	s, ok := e.lock.(vfs.Sharer)
	if !ok || e.commit.commits > 0 || e.shown.Showing() {
		return nil
	}
	memory, err := s.Share()
	if err == nil {
		e.shown.Begin(memory, e.Visible())
	} else if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return err
}

// guard keeps to the directory whose lock is held, wherever its name leads to (E12).
func (e *Engine) guard() {
	if lock, ok := e.lock.(vfs.Guard); ok {
		e.cfg.FS = vfs.Guarded(e.cfg.FS, lock)
		e.tables.FS, e.ledger.FS, e.logs.FS = e.cfg.FS, e.cfg.FS, e.cfg.FS
		e.reserve = reserve.New(e.cfg.FS, e.path(base.FileReserve, 0))
	}
}

// create makes an empty store, its first log segment with it: whoever makes a store is
// going to write.
func (e *Engine) create(made int, names []string) error {
	e.ledger.Parents = directory.SyncParents(e.cfg.FS, e.cfg.Dir, made)
	defer e.ledger.Parents() // nothing goes on after an Open that failed
	e.start(manifest.NewState(base.NewID()), names)
	if err := e.ensureManifest(); err != nil {
		return err
	}
	return directory.Clean(e.cfg.FS, e.cfg.Dir, e.ledger.State(), names, nil)
}

// start makes the engine what the manifest says. names are those in the directory.
func (e *Engine) start(state *manifest.State, names []string) {
	e.ledger.Start(state, manifest.FirstFreeNum(names, state))
	e.tables.Store, e.logs.Store = state.Store, state.Store
	e.commit.nextSeq = state.LastSeq + 1
	e.installer.Publish(nil, state.Version)
}

// load makes the engine what the manifest and the log say. names are those in the directory.
func (e *Engine) load(state *manifest.State, names []string) (err error) {
	e.tables.Store, e.logs.Store = state.Store, state.Store
	if err := e.openTables(state); err != nil {
		return err
	}
	e.start(state, names)
	e.recovery.DroppedBytes, e.recovery.DroppedFrom = int64(state.Dropped.Bytes), state.Dropped.From
	replayed := !state.NoLog()
	if replayed { // which makes another manifest
		err = e.recover(names)
	} else if err = e.recoveryLog().CheckNone(names); err == nil {
		err = directory.Confirm(e.cfg.FS, e.cfg.Dir, state, names, e.ledger.Next())
	}
	if err != nil {
		return err
	}
	e.Show(e.commit.nextSeq - 1)
	if replayed {
		_ = e.share() // so that readers let go of the log; the first commit tries again
		if names, err = e.cfg.FS.List(e.cfg.Dir); err != nil {
			return err
		}
	}
	err = directory.Clean(e.cfg.FS, e.cfg.Dir, e.ledger.Opened, names, nil)
	if replayed && err == nil {
		e.joinRuns()
	}
	return err
}

func (e *Engine) openTables(state *manifest.State) error {
	metas := make([]*base.TableMeta, 0, state.Version.NumTables())
	for _, meta := range state.Version.Tables() {
		metas = append(metas, meta)
	}
	opened, err := e.tables.OpenAll(metas)
	e.installer.Handles.Add(opened)
	return err
}

// giveBack gives back what a failed or finished engine holds.
func (e *Engine) giveBack() error {
	e.stop()
	e.background.Wait()
	e.closeSegments()
	e.Drop()
	errs := e.installer.Handles.Close()
	if e.follower != nil {
		errs = append(errs, e.follower.Close())
	}
	e.Epochs.Drain()
	if e.follower != nil {
		e.buffers.AwaitUnmapped() // else the files of a log would be in use when Close has returned
	}
	e.pages.Close()
	e.tables.DropAhead()
	if err := e.buffers.Close(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", base.ErrTxForgotten, err))
	}
	errs = append(errs, e.ledger.Close())
	e.removing.Wait()
	e.events.Wait()
	e.logs.Close()
	e.shown.End()
	if e.lock != nil {
		if parents := e.ledger.Parents; parents != nil && parents() != nil {
			e.unmake()
		}
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
