// Package directory finds, makes, locks and cleans the directory of a store.
//
// # Concurrency
//
// Functions without state, but for a goroutine of SyncParents; whoever has the lock may
// clean.
package directory

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs"
)

// Make makes the directory and its parents, unless it is there, and returns how many
// it made, or was about to make in one that was there, also if that has gone meanwhile; SyncParents makes them durable. Opened read-only it has to be there.
func Make(fsys vfs.FS, dir string, readOnly bool) (made int, err error) {
	info, err := fsys.Stat(dir)
	if err == nil && !info.Dir {
		return 0, fmt.Errorf("open store %s: %w: it is a file, not a directory", dir, fs.ErrInvalid)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) || readOnly {
		return 0, wrap(err, "open store")
	}
	parent := dir
	for ; errors.Is(err, fs.ErrNotExist) && filepath.Dir(parent) != parent; made++ {
		parent = filepath.Dir(parent)
		_, err = fsys.Stat(parent)
	}
	above := err == nil
	if above { // nothing is made where it could not be made durable: the next Open would not know whose it is
		if err := fsys.SyncDir(parent); err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // else it has gone since (Unmake)
				made = 0
			}
			return made, wrap(err, "make directory of the store "+dir)
		}
	}
	err = fsys.MkdirAll(dir)
	if errors.Is(err, fs.ErrExist) {
		return made, fmt.Errorf("make directory of the store: %w: something of that name leads nowhere, as a link does", err)
	}
	if err != nil && !above {
		made = 0
	}
	return made, wrap(err, "make directory of the store")
}

// SyncParents begins to make the entry of the store's directory durable, and those of
// its parents, beside whatever else is done, and returns what waits for the outcome. It
// does so for every store that is made, also where the directory was there: an Open
// that was killed may have made it, or the caller a moment ago, and those above it. Further up than what
// was made now, what we may not sync, or its file system cannot, is not ours.
func SyncParents(fsys vfs.FS, dir string, made int) (wait func() error) {
	outcome := make(chan error, 1)
	go func() { outcome <- syncParents(fsys, dir, made) }()
	return sync.OnceValue(func() error { return <-outcome })
}

func syncParents(fsys vfs.FS, dir string, made int) error {
	for i := 0; filepath.Dir(dir) != dir; i++ {
		dir = filepath.Dir(dir)
		err := fsys.SyncDir(dir)
		switch {
		case err == nil || i >= made && i > 0 && isUnsyncable(err) || made == 0 && errors.Is(err, fs.ErrPermission):
		default:
			return fmt.Errorf("make directory of the store: %w", err)
		}
	}
	return nil
}

// isUnsyncable reports whether err, of a sync, says that this directory cannot be synced, by us or at all. Any other may mean
// that its entries are lost.
func isUnsyncable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) ||
		slices.ContainsFunc(unsyncable, func(never error) bool { return errors.Is(err, never) })
}

// Unmake removes the directories that Make made when SyncParents has failed: the next Open makes them anew, and knows that they have
// to be synced. It could not trust a sync of what is there: after one that failed the next may say nothing. The lock is held; its file
// goes, too. Where there is anything else in the directory all stays, and where there is in one above, that and those above it.
// The directory is moved out of those above first, so that it goes in one step for whoever opens the store meanwhile. They are not: of
// theirs no lock is held, and a store that somebody has made in one would go with it.
func Unmake(fsys vfs.FS, dir string, made int, lock io.Closer) {
	file := base.FileName(base.FileLock, 0)
	if g, ok := lock.(vfs.Guard); made == 0 || ok && g.Check() != nil || !holdsOnly(fsys, dir, file) {
		return
	}
	top, above := dir, []string(nil)
	for range made - 1 {
		top = filepath.Dir(top)
		above = append(above, top)
	}
	gone := fmt.Sprintf("%s.%x", top, base.NewID())
	switch {
	case fsys.Rename(dir, gone) != nil: // as on Windows, where the lock file is open
		removeAll(fsys, append([]string{filepath.Join(dir, file), dir}, above...))
	case !holdsOnly(fsys, gone, file): // something has come into it
		_ = fsys.Rename(gone, dir)
	default:
		removeAll(fsys, above)
		removeAll(fsys, []string{filepath.Join(gone, file), gone})
	}
}

// removeAll removes files and empty directories up to the first that cannot be.
func removeAll(fsys vfs.FS, names []string) {
	for _, name := range names {
		if fsys.Remove(name) != nil {
			return
		}
	}
}

// holdsOnly reports whether there is just one name in a directory, that one.
func holdsOnly(fsys vfs.FS, dir, name string) bool {
	names, err := fsys.List(dir)
	return err == nil && len(names) == 1 && names[0] == name
}

// Lock takes the lock, waiting up to timeout. A read-only Open shares it, where it cannot be watched (package follow); it does not
// make the file, without which nobody can be writing, and then returns nil.
func Lock(fsys vfs.FS, dir string, readOnly bool, timeout time.Duration) (io.Closer, error) {
	name := base.FilePath(dir, base.FileLock, 0)
	if readOnly {
		if _, err := fsys.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	deadline := time.Now().Add(timeout)
	for {
		lock, err := fsys.Lock(name, readOnly)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, vfs.ErrLocked) || !time.Now().Before(deadline) {
			return nil, wrap(err, "lock store")
		}
		time.Sleep(min(10*time.Millisecond, time.Until(deadline)))
	}
}

// claimTries bounds how often Claim begins anew, each time since somebody has made the directory and removed it again.
const claimTries = 100

// Claim makes the directory, unless it is there, as Make does, and takes its lock to write, waiting up to timeout. If the directory, or one
// above it, goes meanwhile, since whoever made it could not make it durable (Unmake), it is made anew.
func Claim(fsys vfs.FS, dir string, timeout time.Duration) (made int, lock io.Closer, err error) {
	deadline := time.Now().Add(timeout)
	for range claimTries {
		n := 0
		n, err = Make(fsys, dir, false)
		switch {
		case err == nil:
			made = max(made, n) // of those above some may have stayed
			lock, err = Lock(fsys, dir, false, time.Until(deadline))
		case n == 0:
			return 0, nil, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return made, lock, Strange(err)
}

// Clean removes what earlier runs left behind that the store, whose state is s, has no
// use for: files of interrupted flushes and edits. names are those in the directory
// when it was opened. Unknown ones are never touched, nor are files that something else
// has made under names like ours, nor what is needed all the same, if needed is not nil. The name of the
// manifest is durable, or needed is what an earlier state may need. What cannot be removed, as
// where another program has it open, stays, too: nothing depends on that it is gone, as a crash may leave all of it at any
// moment. If that is all that was amiss the error is a *LeftError, or nil where more is removed after what is needed.
func Clean(fsys vfs.FS, dir string, s *manifest.State, names []string, needed func(t base.FileType, num uint64) bool) error {
	garbage := manifest.Obsolete(names, s, needed)
	for _, name := range names {
		if t, _ := base.ParseFileName(name); t == base.FileReserve {
			garbage = append(garbage, name)
		}
	}
	left := new(LeftError)
	for _, name := range garbage {
		name = filepath.Join(dir, name)
		if !mayBeOurs(fsys, name, s.Store) {
			continue
		}
		if err := left.remove(fsys, name); err != nil {
			return err
		}
	}
	if left.Err == nil || needed != nil {
		return nil
	}
	return left
}

// Confirm makes the name of the manifest durable, whose state is s, where that is not known: until then
// nothing of the store may be shown, since a power cut could take all of it back. That takes
// a file, num being an unused number; what even an earlier state has no use for makes room for it.
func Confirm(fsys vfs.FS, dir string, s *manifest.State, names []string, num uint64) error {
	if !manifest.Unconfirmed(names, s) {
		return nil
	}
	if err := Clean(fsys, dir, s, names, manifest.EarlierNeeds(names, s)); err != nil {
		return err
	}
	return manifest.Confirm(fsys, dir, num)
}

// LeftError says which files could not be removed. Their names are not used again.
type LeftError struct {
	Paths []string
	Err   error // of the first
}

func (e *LeftError) Error() string { return "remove what an earlier run has left: " + e.Err.Error() }

func (e *LeftError) Unwrap() error { return e.Err }

// remove removes a file, or notes that it cannot be, unless that is because the directory has gone.
func (e *LeftError) remove(fsys vfs.FS, name string) error {
	err := fsys.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if g, ok := fsys.(vfs.Guard); ok {
		if moved := g.Check(); moved != nil {
			return moved
		}
	}
	if e.Err = cmp.Or(e.Err, err); filepath.Base(name) != base.FileName(base.FileReserve, 0) { // which is used as it is
		e.Paths = append(e.Paths, name)
	}
	return nil
}

// Later hands what a Clean that err is the error of could not remove to again, if nothing else was amiss, and returns err if
// something was.
func Later(err error, again func(path string)) error {
	left, ok := err.(*LeftError)
	if !ok {
		return err
	}
	for _, path := range left.Paths {
		again(path)
	}
	return nil
}

// mayBeOurs looks at the beginning of a file with a name of the store's.
func mayBeOurs(fsys vfs.FS, name string, store base.ID) bool {
	f, err := fsys.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [base.HeadBytes]byte
	n, err := f.ReadAt(head[:], 0)
	t, _ := base.ParseFileName(filepath.Base(name))
	return (err == nil || err == io.EOF) && base.MayBeOurs(t, head[:n]) && !base.OfAnotherStore(t, head[:n], store)
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Strange says of a directory, a link or the like in the place of a file that the store is damaged, or, in the place of
// the lock file, that something else is there.
func Strange(err error) error {
	at := (*fs.PathError)(nil)
	switch {
	case !errors.Is(err, vfs.ErrNotRegular) || !errors.As(err, &at):
		return err
	case filepath.Base(at.Path) == base.FileName(base.FileLock, 0):
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	}
	return base.Corruptf(at.Path, -1, "%v", at.Err)
}
