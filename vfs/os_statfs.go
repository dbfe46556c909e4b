//go:build linux || darwin

package vfs

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// FreeSpace implements SpaceTeller: what is put aside for the system's administrator does not count.
func (osFS) FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	if st.Blocks == 0 { // a file system without a limit, as tmpfs can be, says nothing
		return 0, errors.ErrUnsupported
	}
	unit := unitBytes(&st)
	return int64(min(uint64(st.Bavail), math.MaxInt64/max(unit, 1)) * unit), nil
}
