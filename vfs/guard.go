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

// Guarded is fsys for whoever holds a lock in the only directory that it changes: before a
// name is made, changed or removed there, or made durable, check is asked. So a store whose
// directory was renamed does not write into the one that has its name now.
func Guarded(fsys FS, check func() error) FS {
	g := &guarded{fsys, check}
	if u, ok := fsys.(Unlinker); ok {
		return &guardedUnlinker{g, u}
	}
	return g
}

type guarded struct {
	FS
	check func() error
}

// FreeSpace implements SpaceTeller where the file system does.
func (g *guarded) FreeSpace(dir string) (int64, error) {
	if t, ok := g.FS.(SpaceTeller); ok {
		return t.FreeSpace(dir)
	}
	return 0, errors.ErrUnsupported
}

func (g *guarded) Create(name string) (File, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return g.FS.Create(name)
}

func (g *guarded) OpenReadWrite(name string) (File, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return g.FS.OpenReadWrite(name)
}

func (g *guarded) Remove(name string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *guarded) Rename(oldname, newname string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.FS.Rename(oldname, newname)
}

func (g *guarded) Link(oldname, newname string) error {
	if err := g.check(); err != nil {
		return err
	}
	return g.FS.Link(oldname, newname)
}

func (g *guarded) SyncDir(dir string) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAttempted, err)
	}
	return g.FS.SyncDir(dir)
}

type guardedUnlinker struct {
	*guarded
	u Unlinker
}

func (g *guardedUnlinker) Unlink(name string) (free func(), err error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return g.u.Unlink(name)
}
