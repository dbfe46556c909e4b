package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/directory"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/recovery"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/shm"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Follower reads a store. The exported fields are set before Open.
type Follower struct {
	FS      vfs.FS
	Dir     string
	Timeout time.Duration // how long Open waits for a lock, where there is no other way
	View    *view.View
	Tables  *tablefiles.Files
	Buffers *tree.Buffers
	Emit    func(report.Event)
	Tell    func(*tree.State) // is told of each that is put into the view

	Recovery report.RecoveryStats // as Open found the store

	bare  atomic.Bool // there was no lock file when the store was read: the next three are set later, under mu
	lock  io.Closer   // shared: nobody writes; nil: there is no lock file, or it is watched
	watch vfs.Watch   // nil: nobody can write, unless bare
	page  shm.Reader
	seq   atomic.Uint64 // what was shown when the view was last replaced
	turn  atomic.Uint64

	mu      sync.Mutex
	opened  bool
	edits   uint64            // shown before the manifest was read
	version *manifest.Version // of the manifest
	tail    tail              // what is above it
	layers  int               // how many layers of that the view has; -1: it has another version
	handles tree.Handles      // open tables, with a reference each
	state   *tree.State       // the last that was put into the view: what it is made of is looked at only; nil: there was none
}

// Open makes the view one of the store. Errors are those of the files, *vfs.LockedError if somebody writes the
// store and cannot be followed, and fs.ErrNotExist if there is none.
func (f *Follower) Open() error {
	f.handles = tree.Handles{}
	f.View.Follow(f.CatchUp, f.CatchUpTables)
	if err := f.begin(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.opened = true }()
	err := f.refresh()
	if f.watch == nil && f.lock == nil { // somebody may have made a lock file meanwhile, and moved what was looked for
		f.bare.Store(true)
		if there, joined := f.join(); there {
			err = joined
		}
	}
	return err
}

// join begins where there was no lock file, if there is one by now: as a copy has none, and the first who writes to it makes
// one. Then everything is looked at again. mu is held.
func (f *Follower) join() (there bool, err error) {
	err = f.begin()
	if err == nil && f.watch == nil && f.lock == nil {
		return false, nil
	}
	if err == nil {
		err = f.refresh()
	}
	if err != nil { // it may be another store's, whose writers must not be kept out
		return true, errors.Join(err, f.end())
	}
	f.bare.Store(false)
	return true, nil
}

// catchUpBare is CatchUp where there was no lock file. It asks for the name: nothing else tells that somebody writes.
func (f *Follower) catchUpBare() error {
	if _, err := f.FS.Stat(f.lockName()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.bare.Load() {
		_, err = f.join()
	} else {
		_, err = f.catchUpTables()
	}
	return err
}

// begin watches the lock file. Where that cannot be had it takes the lock, shared; but it makes no file, without
// which nobody can be writing, and is not in the way of whoever is just making the store. What fails for a moment, for
// want of descriptors say, is an error: the lock would keep writers out for as long as it is held.
func (f *Follower) begin() error {
	err := f.beginWatch()
	if err == nil || errors.Is(err, fs.ErrNotExist) || !f.made() {
		return nil
	}
	if err = f.beginWatch(); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil // the lock file was whole before the store was made
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	wait := f.Timeout
	if f.opened {
		wait = 0
	}
	f.lock, err = directory.Lock(f.FS, f.Dir, true, wait)
	return err
}

// end ends what begin began.
func (f *Follower) end() error {
	var errs []error
	if f.watch != nil {
		errs = append(errs, f.watch.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	f.watch, f.lock, f.page = nil, nil, shm.Reader{}
	return errors.Join(errs...)
}

// beginWatch watches the lock file, unless its holder lets nobody.
func (f *Follower) beginWatch() error {
	w, ok := f.FS.(vfs.Watcher)
	if !ok {
		return errors.ErrUnsupported
	}
	watch, err := w.Watch(f.lockName())
	if err != nil {
		return err
	}
	holder, err := watch.Holder()
	if err == nil && holder == vfs.Hidden {
		err = errors.ErrUnsupported
	}
	if err != nil {
		watch.Close()
		return err
	}
	f.watch, f.page = watch, shm.NewReader(watch.Bytes())
	return nil
}

// made reports whether there is a store, as far as can be told.
func (f *Follower) made() bool {
	current, err := f.FS.Open(base.FilePath(f.Dir, base.FileCurrent, 0))
	if err == nil {
		current.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// CatchUp brings the view up to date with what is shown now. It makes no system call if that is nothing new, unless there was
// no lock file.
func (f *Follower) CatchUp() error {
	if f.bare.Load() {
		return f.catchUpBare()
	}
	if f.watch == nil || !f.page.News(f.turn.Load(), f.seq.Load()) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.page.News(f.turn.Load(), f.seq.Load()) {
		return nil
	}
	return f.catchUp()
}

// catchUp reads what the log has more; if that is not enough, everything is looked at again. mu is held.
func (f *Follower) catchUp() error {
	seen, ok := f.page.Look()
	if ok && seen.Shown && seen.Turn == f.turn.Load() && f.following() && f.layers >= 0 && f.tail.read(nil, wal.Position(seen.End)) == nil {
		return f.replace(seen, seen.Seq)
	}
	return f.refresh()
}

// CatchUpTables is CatchUp, and reads the manifest, too, if it was edited: what is committed may be in other tables by
// now, or in tables and no longer in the log, though there is no news for reads.
func (f *Follower) CatchUpTables() error {
	if f.bare.Load() {
		return f.catchUpBare()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.catchUpTables()
	return err
}

// catchUpTables reports whether there was anything to do. mu is held.
func (f *Follower) catchUpTables() (news bool, err error) {
	if f.watch == nil {
		return false, nil
	}
	switch seen, ok := f.page.Look(); {
	case ok && seen.Turn == f.turn.Load() && seen.Edits != f.edits && f.following():
		return true, f.refresh()
	case f.page.News(f.turn.Load(), f.seq.Load()):
		return true, f.catchUp()
	}
	return false, nil
}

// Poll looks at the store every so often until ctx ends: who reads seldom shall not keep what the writer has
// long got rid of, nor have to wait for a day's commits.
func (f *Follower) Poll(ctx context.Context) {
	if !f.bare.Load() && f.watch == nil {
		return
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.poll()
			f.View.Epochs.Collect()
		}
	}
}

const pollEvery = 100 * time.Millisecond

func (f *Follower) poll() {
	if f.bare.Load() {
		_ = f.catchUpBare() // as below
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if news, _ := f.catchUpTables(); !news { // whoever reads next is told of errors
		_ = f.Buffers.Trim() // of what was let go of, nothing is wanted soon
	}
}

// following reports whether what is in the view is what somebody has shown.
func (f *Follower) following() bool { return f.tail.fs != nil }

// tries bounds how often the store is looked at while it changes.
const tries = 100

// found is what an attempt to read the store has found: if the next finds the same and fails in the same way it is not
// because the store has changed meanwhile.
type found struct {
	manifest, next, logStart uint64
	seen                     shm.Seen
	failed                   string
}

// refresh brings the view up to date with the manifest, and the log behind it, or leaves it as it is, and keeps nothing
// open for the next time that may be what the process has run out of. mu is held.
func (f *Follower) refresh() (err error) {
	defer func() {
		if err != nil {
			if f.layers < 0 { // the tail lies behind tables that the view does not have
				f.tail.drop()
			}
			f.letGo(nil)
		}
	}()
	var last found
	for range tries {
		if f.View.Closed() {
			return base.ErrClosed // which waits for this
		}
		now, err := f.attempt()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errLost):
			err = base.Corruptf(f.Dir, -1, "the log does not lead to what its writer shows")
		case errors.Is(err, vfs.ErrLocked):
			return err
		}
		now.seen.Seq, now.seen.End, now.failed = 0, 0, err.Error()
		if now == last {
			return err
		}
		last = now
	}
	return fmt.Errorf("read store %s: it has changed each of %d times it was looked at: %w", f.Dir, tries, os.ErrDeadlineExceeded)
}

// look looks at what is shown, if anything can be.
func (f *Follower) look() (seen shm.Seen, err error) {
	if f.watch != nil {
		var ok bool
		if seen, ok = f.page.Look(); !ok {
			err = base.Corruptf(f.lockName(), 0, "the lock file was cut")
		}
	}
	return seen, err
}

func (f *Follower) lockName() string { return base.FilePath(f.Dir, base.FileLock, 0) }

// attempt is one attempt of refresh.
func (f *Follower) attempt() (now found, err error) {
	if now.seen, err = f.look(); err != nil {
		return now, err
	}
	holder := vfs.Nobody
	if f.watch != nil {
		holder, err = f.watch.Holder()
	}
	if err == nil && holder == vfs.Hidden {
		err = &vfs.LockedError{Path: f.lockName()}
	}
	if err != nil {
		return now, err
	}
	st, err := manifest.Recover(f.FS, f.Dir, true)
	if f.watch != nil {
		err = cmp.Or(f.watch.Check(), err) // it may be another store's
	}
	if err != nil {
		return now, err
	}
	now.manifest, now.next, now.logStart = st.Manifest, st.NextFileNum, st.LogStart
	if f.version == nil {
		f.Tables.Store = st.Store
	} else if st.Store != f.Tables.Store {
		return now, base.Corruptf(f.Dir, -1, "another store has taken the place of the one that was opened")
	}
	if err := f.openTables(st); err != nil {
		return now, err
	}
	if !now.seen.Shown || holder == vfs.Nobody {
		return now, f.readAll(st, now.seen)
	}
	return now, f.follow(st, now.seen)
}

// openTables opens those of a manifest that are not open yet, and lets go of those that only an earlier one named.
func (f *Follower) openTables(st *manifest.State) error {
	var metas []*base.TableMeta
	f.letGo(st.Version)
	for _, meta := range st.Version.Tables() {
		if f.handles[meta.Num] == nil {
			metas = append(metas, meta)
		}
	}
	opened, err := f.Tables.OpenAll(metas)
	f.hold(opened)
	return err
}

func (f *Follower) hold(tables []*tree.Handle) {
	for _, h := range tables {
		h.Ref()
		if old := f.handles[h.Meta.Num]; old != nil { // a log that is replayed once more opens its tables anew
			old.Unref()
		}
		f.handles[h.Meta.Num] = h
	}
}

// openTable opens a table that the log names, unless it is open.
func (f *Follower) openTable(meta *base.TableMeta) (*tree.Handle, error) {
	if h := f.handles[meta.Num]; h != nil {
		return h, nil
	}
	h, err := f.Tables.OpenListed(meta)
	if err == nil {
		f.hold([]*tree.Handle{h})
	}
	return h, err
}

// follow brings the view up to date with a store that somebody writes, and shows.
func (f *Follower) follow(st *manifest.State, was shm.Seen) error {
	if f.turn.Load() != was.Turn || !f.following() {
		f.tail.drop()
		f.tail = tail{fs: f.FS, dir: f.Dir, store: st.Store, buffers: f.Buffers, open: f.openTable}
	}
	f.tail.cut(st)
	f.version, f.layers = st.Version, -1
	seen, err := f.look() // after the manifest: so it speaks of nothing that is not shown
	if err != nil {
		return err
	}
	if seen.Turn != was.Turn || !seen.Shown {
		return errLost
	}
	if err := f.tail.read(st, wal.Position(seen.End)); err != nil {
		f.tail.drop()
		return err
	}
	f.edits = was.Edits // there may have been more since the manifest was read
	return f.replace(seen, seen.Seq)
}

// readAll reads a store that nobody writes, or has written to yet, as it is.
func (f *Follower) readAll(st *manifest.State, seen shm.Seen) error {
	f.tail.drop()
	f.tail = tail{}
	last := st.LastSeq
	f.Recovery.DroppedBytes, f.Recovery.DroppedFrom = int64(st.Dropped.Bytes), st.Dropped.From
	if st.NoLog() {
		if err := f.checkNone(st); err != nil {
			return err
		}
	} else {
		log, err := f.replay(st)
		if err != nil {
			return err
		}
		last = log.NextSeq - 1
		for _, l := range slices.Backward(log.Layers) {
			f.tail.layers = append(f.tail.layers, numbered{0, l})
		}
		if err := f.unchanged(st); err != nil {
			f.tail.drop()
			return err
		}
	}
	now, err := f.look()
	if err != nil || now.Turn != seen.Turn || now.Shown != seen.Shown {
		f.tail.drop() // somebody has come who writes: there may be frames among them that must not be seen
		return cmp.Or(err, errLost)
	}
	f.version, f.layers = st.Version, -1
	return f.replace(now, last)
}

// unchanged returns errLost if the manifest is not st any more. Whoever opens the store to write, and shows nothing
// yet, makes tables of the log and removes it, and a segment that is provisional may be missing: the log would seem
// to end before it.
func (f *Follower) unchanged(st *manifest.State) error {
	now, err := manifest.Recover(f.FS, f.Dir, true)
	if err == nil && (now.Manifest != st.Manifest || now.NextFileNum != st.NextFileNum || now.LogStart != st.LogStart) {
		err = errLost
	}
	return err
}

// replay replays the log of a store that nobody writes.
func (f *Follower) replay(st *manifest.State) (*recovery.Log, error) {
	start := time.Now()
	emit := f.Emit
	if f.opened {
		emit = func(report.Event) {} // whoever is told could read, which waits for this
	}
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return nil, err
	}
	log := f.recoveryLog(st)
	log.Progress = func(done, total int64) { emit(report.Event{Kind: report.EventRecovery, Done: done, Total: total}) }
	err = log.Run(names)
	f.hold(log.Opened)
	if err != nil {
		return nil, err
	}
	dropped := log.Dropped()
	f.Recovery.DroppedBytes, f.Recovery.DroppedFrom = int64(dropped.Bytes), dropped.From
	f.Recovery.Duration = max(time.Since(start), 1)
	emit(report.Event{Kind: report.EventRecovery, Done: log.Total, Total: log.Total, Duration: f.Recovery.Duration})
	return log, nil
}

// checkNone is replay where the manifest says that there is no log.
func (f *Follower) checkNone(st *manifest.State) error {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return err
	}
	return f.recoveryLog(st).CheckNone(names)
}

func (f *Follower) recoveryLog(st *manifest.State) *recovery.Log {
	return &recovery.Log{
		FS: f.FS, Dir: f.Dir, Store: st.Store, ReadOnly: true, Arenas: f.Buffers.Pool, Tables: f.Tables,
		FreeMemory:  f.Buffers.Free,
		NextFileNum: func() uint64 { return st.NextFileNum },
		State:       st,
	}
}

// replace puts what has been read into the view, of which everything up to a sequence may be seen.
func (f *Follower) replace(seen shm.Seen, visible uint64) error {
	if now := f.View.Visible(); visible < now {
		return base.Corruptf(f.Dir, -1, "commits up to sequence %d were seen, and now there are only those up to %d", now, visible)
	}
	var rs *tree.State
	if len(f.tail.layers) != f.layers {
		rs = f.newState()
		f.layers = len(f.tail.layers)
	}
	f.View.Replace(rs, visible)
	f.turn.Store(seen.Turn)
	f.seq.Store(seen.Seq)
	if rs != nil {
		f.state = rs
		f.letGo(nil)
		f.Tell(rs)
	}
	return nil
}

func (f *Follower) newState() *tree.State {
	var layers []*tree.Layer
	for _, l := range slices.Backward(f.tail.layers) {
		layers = append(layers, l.Layer)
	}
	return tree.NewState(layers, f.version, f.handles.Of)
}

// letGo lets go of all tables but those of the State that was put into the view last, of the tail, and of a version that
// may come next, if that is not nil.
func (f *Follower) letGo(next *manifest.Version) {
	needed := map[uint64]bool{}
	if f.state != nil {
		for _, h := range f.state.Handles {
			needed[h.Meta.Num] = true
		}
	}
	if next != nil {
		for _, meta := range next.Tables() {
			needed[meta.Num] = true
		}
	}
	for _, l := range f.tail.layers {
		for _, h := range l.Tables() {
			needed[h.Meta.Num] = true
		}
	}
	for num, h := range f.handles {
		if !needed[num] {
			delete(f.handles, num)
			h.Unref()
		}
	}
}

// Close lets go of everything. The view has no State any more.
func (f *Follower) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tail.drop()
	f.state = nil
	f.letGo(nil)
	return f.end()
}
