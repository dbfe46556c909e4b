//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openNoFollow looks before it opens; between the two a name can change, which
// openRegular notices unless it is a symbolic link.
func openNoFollow(name string, flag int) (*os.File, error) {
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() && flag&os.O_EXCL == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.OpenFile(name, flag, fileMode)
}

func openDir(name string) (*os.File, error) { return os.Open(name) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAttempted, err)
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

func datasync(o *osFile) error { return o.f.Sync() }

func preallocate(*osFile, int64, int64) error { return errors.ErrUnsupported }

func allocated(info fs.FileInfo) int64 { return info.Size() }

func systemNoSpace(error) bool { return false }

func transient(error) bool { return false }

func inUse(error) bool { return false }

func lockHandle(*os.File, bool) error { return errors.ErrUnsupported }

func unlockHandle(*os.File) error { return nil }

// lastCall has no use here.
type lastCall struct{}
