//go:build linux || darwin

package vfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// FreeSpace implements SpaceTeller: what is put aside for the system's administrator does not count.
func (osFS) FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(min(uint64(st.Bavail), math.MaxInt64/max(uint64(st.Bsize), 1)) * uint64(st.Bsize)), nil
}
