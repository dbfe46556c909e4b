// Package ledger keeps the live manifest of an open store: what is recorded, and what of that is
// durable.
//
// # Invariants
//
// Of docs/INVARIANTS.md: E4 (a log segment is recorded before it is used, and either durable as a
// whole by then or provisional), E6 (a failed sync of the directory is never retried), E11 (a new store is named after its directory).
//
// # Concurrency
//
// Where it says so the caller holds the lock, which serialises edits and file numbers; all other
// methods may be called at once, and take it themselves if they need it.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/vfs"
)

// Ledger is the manifest of an open store and the numbers of its files. The exported fields are
// set before it is used.
type Ledger struct {
	FS       vfs.FS
	Dir      string
	Store    base.ID
	Opened   *manifest.State // as Open found it
	Parents  func() error    // waits until the name of a store that is being made is durable; nil: it is
	Poison   func(error)     // is told of an error after which nobody knows what the disk holds; with the lock held
	Obsolete *obsolete.Files // old manifests go there
	Edited   func()          // is told when a manifest has changed, or another taken its place

	sync.Mutex
	log         *manifest.Log // nil until the first log segment is recorded
	next        uint64        // number of the next file
	live        atomic.Bool   // log is not nil
	provisional atomic.Uint64 // number of the first provisional log segment, 0: none
	names       names
}

// names are those in the store's directory: whoever makes some durable, a manifest's included, does it here.
type names struct {
	sync.Mutex
	lost error // of a sync that failed: the next one may say nothing of what it has lost (E6)
}

// namesFS is the file system for manifests.
type namesFS struct {
	vfs.FS
	l *Ledger
}

// SyncDir is that of the store's directory, the only one where manifests are.
func (n namesFS) SyncDir(string) error { return n.l.syncNames() }

// syncNames is the only sync of the directory of an open store: none comes after one that failed, nor beside it.
func (l *Ledger) syncNames() error {
	l.names.Lock()
	defer l.names.Unlock()
	if l.names.lost != nil {
		return l.names.lost
	}
	err := l.FS.SyncDir(l.Dir)
	if !errors.Is(err, vfs.ErrNotAttempted) {
		l.names.lost = err
	}
	return err
}

// Start begins with what Open found, the next file's number being next.
func (l *Ledger) Start(opened *manifest.State, next uint64) {
	l.Store, l.Opened, l.next = opened.Store, opened, next
}

// Live reports whether there is a manifest to append to: there is none before the first log
// segment, so that a clean Open of a store that is there writes nothing at all.
func (l *Ledger) Live() bool { return l.live.Load() }

// New reports whether the store is being made: it has no manifest yet, and a log segment must hold no more than its
// header, by which an interrupted creation is known.
func (l *Ledger) New() bool { return l.Parents != nil && !l.Live() }

// State returns what the live manifest says.
func (l *Ledger) State() *manifest.State { return l.log.State() }

// Next returns the number that the next file will have. The lock is held.
func (l *Ledger) Next() uint64 { return l.next }

// NewNum returns an unused file number. The lock is held.
func (l *Ledger) NewNum() uint64 {
	num := l.next
	l.next++
	return num
}

// TakeNum is NewNum for those who do not hold the lock.
func (l *Ledger) TakeNum() uint64 {
	l.Lock()
	defer l.Unlock()
	return l.NewNum()
}

// GiveBack makes a number for whose file there was no space the next one again, unless another was taken since, or the
// manifest says that it is taken. The lock is held.
func (l *Ledger) GiveBack(num uint64) {
	recorded := l.Opened
	if l.log != nil {
		recorded = l.State()
	}
	if num+1 == l.next && num >= recorded.NextFileNum {
		l.next = num
	}
}

// PutBack is GiveBack for those who do not hold the lock.
func (l *Ledger) PutBack(num uint64) {
	l.Lock()
	defer l.Unlock()
	l.GiveBack(num)
}

// Append writes an edit, synced, and returns its ordinal. The lock is held.
func (l *Ledger) Append(edit *manifest.Edit) (uint64, error) {
	edit.NextFileNum = l.next
	ordinal, err := l.log.Append(edit)
	l.noteProvisional() // the log may begin behind it now
	l.Edited()
	return ordinal, l.note(err)
}

// note tells of an error if the outcome is unknown.
func (l *Ledger) note(err error) error {
	if errors.Is(err, base.ErrPoisoned) {
		l.Poison(err)
	}
	return err
}

// Record makes a new log segment known, without a sync if it is provisional. If it is not, those
// before it must have been confirmed. The first one begins a new manifest. The lock is held.
func (l *Ledger) Record(seg manifest.Segment, provisional bool) error {
	if seg.Num > manifest.MaxSegmentNum {
		return fmt.Errorf("%w: the numbers of log segments are used up: the store takes no more commits, but can be read and copied to a new one", base.ErrLimit)
	}
	if l.log == nil {
		return l.begin(seg, provisional)
	}
	edit := l.State().Record(seg, provisional)
	if !provisional {
		_, err := l.Append(edit)
		return err
	}
	edit.NextFileNum = l.next
	err := l.note(l.log.AppendUnsynced(edit))
	l.Edited()
	l.noteProvisional()
	return err
}

// begin makes the manifest, whose snapshot names the first log segment.
func (l *Ledger) begin(seg manifest.Segment, provisional bool) error {
	edit := l.Opened.Record(seg, provisional)
	edit.LogStart, edit.NextFileNum = seg.Num, l.next+1
	first, err := l.Opened.Apply(edit)
	if err != nil {
		return base.Locate(err, base.FilePath(l.Dir, base.FileManifest, l.Opened.Manifest), -1)
	}
	num := l.NewNum()
	log, err := manifest.CreateWhen(l.Parents, namesFS{l.FS, l}, l.Dir, l.Store, num, first.Snapshot())
	if err != nil {
		l.notMade(num, err)
		return l.note(err)
	}
	l.log = log
	l.Edited()
	l.noteProvisional()
	l.live.Store(true)
	if l.Opened.Manifest != 0 { // else the store is being made
		l.retire(l.Opened.Manifest)
	}
	return nil
}

// notMade gives back the number of a manifest that could not be made because of err, if there was no space for it and nothing of it is
// left: what a power cut may bring back under its names is gone once those of the next one are durable, which is before CURRENT
// names that.
func (l *Ledger) notMade(num uint64, err error) {
	if !vfs.IsNoSpace(err) || errors.Is(err, base.ErrPoisoned) {
		return
	}
	for _, kind := range []base.FileType{base.FileManifest, base.FileTemp} {
		if _, err := l.FS.Stat(base.FilePath(l.Dir, kind, num)); !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	l.GiveBack(num)
}

func (l *Ledger) retire(manifest uint64) {
	l.Obsolete.Add(obsolete.File{Path: base.FilePath(l.Dir, base.FileManifest, manifest)})
}

// FirstProvisional returns the number of the first provisional log segment, 0 if there is none: a
// power cut may take it away, with all of the log behind it, whatever of that was synced.
func (l *Ledger) FirstProvisional() uint64 { return l.provisional.Load() }

func (l *Ledger) noteProvisional() { l.provisional.Store(l.State().FirstProvisional()) }

// Confirm records that segments up to last, all of whose files are synced, are not provisional any
// more, once their names and records are durable, too: the edit that says so proves then that those
// before it were. The lock is held.
func (l *Ledger) Confirm(last uint64) error {
	defer l.noteProvisional()
	if first := l.State().FirstProvisional(); first == 0 || first > last {
		return nil
	}
	if err := l.SyncDir(); err != nil {
		return err
	}
	if err := l.log.Sync(); err != nil {
		return l.note(err)
	}
	all := l.State().Segments
	_, err := l.Append(&manifest.Edit{Provisional: min(last, all[len(all)-1].Num) + 1})
	return err
}

// SyncDir makes the entries of the store's directory durable, wherever that is by now. A failure is final,
// like that of a file's sync, whoever has met it, unless the sync was not even attempted.
func (l *Ledger) SyncDir() error {
	err := l.syncNames()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNotAttempted):
		return fmt.Errorf("sync of directory %s: %w", l.Dir, err)
	}
	return l.note(fmt.Errorf("%w: sync of directory %s: %w", base.ErrPoisoned, l.Dir, err))
}

// Roll begins a new manifest when the old one has grown. A full disk leaves the old one in use;
// worse poisons the store, but does not undo the last edit. The lock is held.
func (l *Ledger) Roll() {
	if !l.log.Bloated() {
		return
	}
	old := l.log
	num := l.NewNum()
	next, err := old.Rotate(num)
	if next == nil { // else only closing the old one failed, all of which is synced
		l.notMade(num, err)
		l.note(err)
		return
	}
	l.log = next
	l.Edited()
	l.retire(old.State().Manifest)
}

// MarkIfWaiting writes a mark behind the last edit if files wait for one.
func (l *Ledger) MarkIfWaiting() {
	l.Lock()
	defer l.Unlock()
	if l.log != nil && l.Obsolete.Waiting(l.log.SealedThrough()) {
		l.note(l.log.Mark())
	}
}

// TakeObsolete returns the files whose time has come to be removed.
func (l *Ledger) TakeObsolete() []obsolete.File {
	l.Lock()
	through := ^uint64(0)
	if l.log != nil {
		through = l.log.SealedThrough()
	}
	l.Unlock()
	return l.Obsolete.Take(through)
}

// Seal ends the manifest of a store that needs no log any more, and returns where its log would start: with a new one, if that
// can be had, where damage to the end of this one might not be seen. The report of what was dropped of the log is forgotten
// with it if there were commits since Open.
func (l *Ledger) Seal(lastSeq uint64) (logStart uint64, err error) {
	l.Lock()
	defer l.Unlock()
	final := func() *manifest.Edit {
		e := &manifest.Edit{LogStart: manifest.NoLog(l.next), NextFileNum: l.next, LastSeq: lastSeq}
		if lastSeq > l.Opened.LastSeq {
			e.Dropped = &manifest.Dropped{}
		}
		return e
	}
	defer l.Edited()
	if l.log.Rested() {
		old := l.State().Manifest
		err = l.log.SealAnew(l.NewNum(), final())
		if err == nil {
			l.retire(old)
		}
		if err == nil || errors.Is(err, base.ErrPoisoned) {
			return manifest.NoLog(l.next), err
		}
	}
	return manifest.NoLog(l.next), l.log.Seal(final())
}

// Close gives up the manifest's file.
func (l *Ledger) Close() error {
	if l.log == nil {
		return nil
	}
	return l.log.Close()
}
