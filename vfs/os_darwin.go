package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// datasync: os.File.Sync is F_FULLFSYNC here, which reaches the medium; fsync
// itself stops at the drive's cache.
func datasync(o *osFile) error { return o.f.Sync() }

// preallocate reserves space behind the end of the file, the only place where the
// system can, and then moves the end.
func preallocate(o *osFile, off, n int64) error {
	info, err := o.f.Stat()
	if err != nil {
		return err
	}
	grow := off + n - info.Size()
	if grow <= 0 {
		if allocated(info) >= off+n {
			return nil
		}
		return errors.ErrUnsupported
	}
	if err := o.control(func(fd int) error { return reserve(uintptr(fd), grow) }); err != nil {
		if err == unix.ENOTSUP {
			return errors.ErrUnsupported
		}
		return err
	}
	return o.f.Truncate(off + n)
}

// reserve prefers one piece and takes what it gets.
func reserve(fd uintptr, n int64) error {
	store := unix.Fstore_t{
		Flags:   unix.F_ALLOCATECONTIG | unix.F_ALLOCATEALL,
		Posmode: unix.F_PEOFPOSMODE,
		Length:  n,
	}
	err := unix.FcntlFstore(fd, unix.F_PREALLOCATE, &store)
	if err == nil || err == unix.ENOTSUP {
		return err
	}
	store.Flags = unix.F_ALLOCATEALL
	return unix.FcntlFstore(fd, unix.F_PREALLOCATE, &store)
}

// unitBytes returns what the counts of a file system's blocks are in.
func unitBytes(st *unix.Statfs_t) uint64 { return uint64(st.Bsize) }
