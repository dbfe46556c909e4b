package vfs

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// openNoFollow opens a reparse point itself instead of what it leads to, and
// shares deletion, so that a file can be removed or replaced while it is open.
func openNoFollow(name string, flag int) (*os.File, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	access, disposition := openMode(flag)
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const attrs = windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_OPEN_REPARSE_POINT
	h, err := windows.CreateFile(path, access, share, nil, disposition, attrs, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

func openMode(flag int) (access, disposition uint32) {
	access, disposition = windows.GENERIC_READ, windows.OPEN_EXISTING
	if flag&os.O_RDWR != 0 {
		access |= windows.GENERIC_WRITE
	}
	switch {
	case flag&os.O_EXCL != 0:
		disposition = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		disposition = windows.OPEN_ALWAYS
	}
	return access, disposition
}

func datasync(o *osFile) error { return o.f.Sync() }

func preallocate(*osFile, int64, int64) error { return errors.ErrUnsupported }

// syncDir cannot do anything: the system has no flush of a directory. It reports
// a directory that is not there, as elsewhere.
func openDir(name string) (*os.File, error) { return os.Open(name) }

func syncDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "sync", Path: dir, Err: windows.ERROR_DIRECTORY}
	}
	return err
}

func allocated(info fs.FileInfo) int64 { return info.Size() }

func systemNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

func transient(error) bool { return false }

// inUse reports whether a name could not be changed, or taken away, because somebody has the file open without FILE_SHARE_DELETE,
// or, in place of which a file should come, at all.
func inUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// lockOffset lies beyond any content: a Windows lock also forbids reading the
// bytes it covers, and losers want to read who holds it.
const lockOffset = 0x7fffffff

func lockHandle(f *os.File, shared bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	over := windows.Overlapped{OffsetHigh: lockOffset}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &over)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

func unlockHandle(f *os.File) error {
	over := windows.Overlapped{OffsetHigh: lockOffset}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &over)
}

// lastCall has no use here.
type lastCall struct{}

// FreeSpace implements SpaceTeller.
func (osFS) FreeSpace(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(free, math.MaxInt64)), nil
}
