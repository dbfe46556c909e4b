package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// Open opens the store in cfg.Dir, and makes it if there is none.
func Open(cfg Config) (*Engine, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	e := newEngine(cfg)
	if err := e.open0(); err != nil {
		e.release0()
		return nil, SpaceError(err)
	}
	return e, nil
}

func newEngine(cfg Config) *Engine {
	e := &Engine{
		cfg: cfg, epochs: epoch.New(), budget: arena.NewBudget(cfg.Memory),
		openDone: make(chan struct{}, 1), handles: map[uint64]*tree.Handle{},
		leftovers: map[uint64]compact.Leftover{},
		wake:      make(chan struct{}, 1), wakeMerge: make(chan struct{}, 1), wakeFlush: make(chan struct{}, 1), wakeIndex: make(chan struct{}, 1),
	}
	e.readers.New = func() any { return e.newReader() }
	e.arenas = arena.NewPool(e.budget, arena.ClassMemtable)
	e.pages = cache.New(e.budget, e.epochs)
	e.tables = &tablefiles.Files{
		FS: cfg.FS, Dir: cfg.Dir, Pages: e.pages, Budget: e.budget, Share: cfg.Memory / indexShare,
		Profile: cfg.Profile, NewNum: e.takeFileNum, SyncDir: e.syncDir, Unused: e.closeTable,
	}
	e.reserve = reserve.New(cfg.FS, e.path(base.FileReserve, 0))
	e.commit.cond = sync.NewCond(&e.commit.mu)
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e
}

func (e *Engine) open0() error {
	made, err := e.prepareDir()
	if err != nil {
		return err
	}
	if err := e.takeLock(); err != nil {
		return err
	}
	state, err := manifest.Recover(e.cfg.FS, e.cfg.Dir, e.cfg.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) && !e.cfg.ReadOnly {
		state, err = e.create(made)
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", e.cfg.Dir, err)
	}
	if err := e.load(state); err != nil {
		return fmt.Errorf("open store %s: %w", e.cfg.Dir, err)
	}
	e.startBackground()
	return nil
}

// prepareDir makes the directory and its parents, unless it is there, and returns
// how many it made. syncParents makes them durable.
func (e *Engine) prepareDir() (made int, err error) {
	info, err := e.cfg.FS.Stat(e.cfg.Dir)
	if err == nil && !info.Dir {
		return 0, fmt.Errorf("open store %s: %w: it is a file, not a directory", e.cfg.Dir, fs.ErrInvalid)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) || e.cfg.ReadOnly {
		return 0, wrap(err, "open store")
	}
	for dir := e.cfg.Dir; errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir; made++ {
		dir = filepath.Dir(dir)
		_, err = e.cfg.FS.Stat(dir)
	}
	return made, wrap(e.cfg.FS.MkdirAll(e.cfg.Dir), "make directory of the store")
}

// syncParents makes the entry of the store's directory durable, and those of its
// parents. It does so for every store that is made, also where the directory was
// there: an Open that failed may have made it, or the caller a moment ago. Further
// up than that, what cannot be synced is not ours.
func (e *Engine) syncParents(made int) error {
	dir := e.cfg.Dir
	for i := 0; filepath.Dir(dir) != dir; i++ {
		dir = filepath.Dir(dir)
		err := e.cfg.FS.SyncDir(dir)
		switch {
		case err == nil || i > 0 && i >= made || made == 0 && errors.Is(err, fs.ErrPermission):
		default:
			return fmt.Errorf("make directory of the store: %w", err)
		}
	}
	return nil
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// takeLock takes the lock, waiting up to LockTimeout. A read-only Open shares it;
// it does not make the file, without which nobody can be writing.
func (e *Engine) takeLock() error {
	if _, err := e.cfg.FS.Stat(e.path(base.FileLock, 0)); e.cfg.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	deadline := time.Now().Add(e.cfg.LockTimeout)
	for {
		var err error
		e.lock, err = e.cfg.FS.Lock(e.path(base.FileLock, 0), e.cfg.ReadOnly)
		if err == nil || !errors.Is(err, vfs.ErrLocked) || !time.Now().Before(deadline) {
			return wrap(err, "lock store")
		}
		time.Sleep(min(10*time.Millisecond, time.Until(deadline)))
	}
}

// create makes an empty store.
func (e *Engine) create(made int) (*manifest.State, error) {
	if err := e.syncParents(made); err != nil {
		return nil, err
	}
	names, err := e.cfg.FS.List(e.cfg.Dir)
	if err != nil {
		return nil, err
	}
	num := manifest.FirstFreeNum(names, nil)
	if err := manifest.CreateSealed(e.cfg.FS, e.cfg.Dir, base.NewID(), num, &manifest.Edit{}); err != nil {
		return nil, err
	}
	return manifest.Recover(e.cfg.FS, e.cfg.Dir, false)
}

// load makes the engine what the manifest and the log say.
func (e *Engine) load(state *manifest.State) error {
	names, err := e.cfg.FS.List(e.cfg.Dir)
	if err != nil {
		return err
	}
	e.store, e.opened = state.Store, state
	e.tables.Store = state.Store
	e.nextFile = manifest.FirstFreeNum(names, state)
	if err := e.openTables(state); err != nil {
		return err
	}
	c := &e.commit
	c.nextSeq = state.LastSeq + 1
	e.publish(e.newState(nil, state.Version))
	e.recovery.DroppedBytes, e.recovery.DroppedFrom = int64(state.Dropped.Bytes), state.Dropped.From
	if len(state.Segments) > 0 || !state.Clean {
		if !e.cfg.ReadOnly {
			e.reserve.Release() // recovery may need the space
		}
		if err := e.recover(names); err != nil {
			return err
		}
	}
	e.visible.Store(c.nextSeq - 1)
	if !e.cfg.ReadOnly {
		return e.removeGarbage()
	}
	return nil
}

func (e *Engine) openTables(state *manifest.State) error {
	for _, meta := range state.Version.Tables() {
		h, err := e.tables.OpenListed(meta)
		if err != nil {
			return err
		}
		e.handles[meta.Num] = h
	}
	return nil
}

// removeGarbage removes what earlier runs left behind: files of interrupted
// flushes and edits. Unknown names are never touched, nor are files that something
// else has made under names like ours.
func (e *Engine) removeGarbage() error {
	names, err := e.cfg.FS.List(e.cfg.Dir)
	if err != nil {
		return err
	}
	garbage := manifest.Obsolete(names, e.opened, nil)
	for _, name := range names {
		if t, _ := base.ParseFileName(name); t == base.FileReserve {
			garbage = append(garbage, name)
		}
	}
	for _, name := range garbage {
		name = filepath.Join(e.cfg.Dir, name)
		if !e.mayBeOurs(name) {
			continue
		}
		if err := e.cfg.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mayBeOurs looks at the beginning of a file with a name of the store's.
func (e *Engine) mayBeOurs(name string) bool {
	f, err := e.cfg.FS.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [8]byte
	n, err := f.ReadAt(head[:], 0)
	t, _ := base.ParseFileName(filepath.Base(name))
	return (err == nil || err == io.EOF) && base.MayBeOurs(t, head[:n])
}

// release0 gives back what a failed or finished engine holds.
func (e *Engine) release0() error {
	e.stop()
	e.background.Wait()
	var errs []error
	if rs := e.state.Swap(nil); rs != nil {
		e.epochs.Retire(rs.Unref)
	}
	e.drainEpochs()
	for _, h := range e.handles {
		if !h.Closed.Load() {
			errs = append(errs, h.Reader.Close())
		}
	}
	e.drainEpochs()
	e.pages.Close()
	errs = append(errs, e.arenas.Close())
	if e.manifest != nil {
		errs = append(errs, e.manifest.Close())
	}
	errs = append(errs, closeIt(e.lock))
	return errors.Join(errs...)
}

func closeIt(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// drainEpochs runs everything retired. Nobody reads any more, or is about to stop.
func (e *Engine) drainEpochs() {
	for e.epochs.Collect(); e.epochs.Pending() > 0; e.epochs.Collect() {
		time.Sleep(50 * time.Microsecond)
	}
}
