package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// datasync: fdatasync writes the size too when it changed, but not the times.
func datasync(o *osFile) error { return o.control(unix.Fdatasync) }

func preallocate(o *osFile, off, n int64) error {
	err := o.control(func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return errors.ErrUnsupported
	}
	return err
}
