package vfs

import (
	"errors"
	"fmt"
)

// Guard is what Lock returns on a file system where names can come to lead elsewhere. It is
// optional.
type Guard interface {
	// Check fails unless the lock file's name still leads to the file that is locked: its
	// directory may have been renamed, and another have taken its place.
	Check() error
}

// DirKeeper is what Lock returns where a directory can be made durable without its name. It is
// optional. Its methods may be called by any number of goroutines.
type DirKeeper interface {
	// KeepDir keeps the lock file's directory open until the lock is let go of, if that has the
	// name dir. Failing changes nothing, and keeping it twice is fine.
	KeepDir(dir string) error
	// SyncKept is FS.SyncDir of the directory that is kept, if dir was its name: it takes no
	// descriptor, and the name may lead elsewhere by now. If none is kept the error matches
	// ErrNotAttempted.
	SyncKept(dir string) error
}

// Guarded is fsys for whoever holds a lock in the only directory that it changes: before a
// name is made, changed or removed there, or made durable, the lock is asked. So a store whose
// directory was renamed does not write into the one that has its name now. It is a Guard, too: what is
// opened to be read is not asked about, but can be when it is not what was expected. If a DirKeeper has
// the lock, names that are there are made durable all the same, and where there is no
// descriptor left.
func Guarded(fsys FS, lock Guard) FS {
	g := &guarded{FS: fsys, lock: lock}
	g.keeper, _ = lock.(DirKeeper)
	if u, ok := fsys.(Unlinker); ok {
		return &guardedUnlinker{g, u}
	}
	return g
}

type guarded struct {
	FS
	lock   Guard
	keeper DirKeeper // or nil
}

// Check implements Guard.
func (g *guarded) Check() error { return g.lock.Check() }

// FreeSpace implements SpaceTeller where the file system does.
func (g *guarded) FreeSpace(dir string) (int64, error) {
	if t, ok := g.FS.(SpaceTeller); ok {
		return t.FreeSpace(dir)
	}
	return 0, errors.ErrUnsupported
}

func (g *guarded) Create(name string) (File, error) {
	if err := g.lock.Check(); err != nil {
		return nil, err
	}
	return g.FS.Create(name)
}

func (g *guarded) OpenReadWrite(name string) (File, error) {
	if err := g.lock.Check(); err != nil {
		return nil, err
	}
	return g.FS.OpenReadWrite(name)
}

func (g *guarded) Remove(name string) error {
	if err := g.lock.Check(); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *guarded) Rename(oldname, newname string) error {
	if err := g.lock.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAttempted, err)
	}
	return g.FS.Rename(oldname, newname)
}

func (g *guarded) Link(oldname, newname string) error {
	if err := g.lock.Check(); err != nil {
		return err
	}
	return g.FS.Link(oldname, newname)
}

func (g *guarded) SyncDir(dir string) error {
	err := g.lock.Check()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotAttempted, err)
	} else {
		err = g.FS.SyncDir(dir)
	}
	switch {
	case g.keeper == nil:
	case err == nil:
		_ = g.keeper.KeepDir(dir) // or the next time
	case errors.Is(err, ErrNotAttempted):
		if kept := g.keeper.SyncKept(dir); !errors.Is(kept, ErrNotAttempted) {
			return kept
		}
	}
	return err
}

type guardedUnlinker struct {
	*guarded
	u Unlinker
}

func (g *guardedUnlinker) Unlink(name string) (free func(), err error) {
	if err := g.lock.Check(); err != nil {
		return nil, err
	}
	return g.u.Unlink(name)
}
