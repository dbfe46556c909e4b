package harness

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// full reports whether the file system of dir has less than a twentieth left. Not every
// engine says so when that is why it failed.
func full(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Blocks > 0 && st.Bavail < st.Blocks/20
}

// filesystem names the file system of dir and says whether it is only memory.
func filesystem(dir string) (name string, volatile bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", false
	case unix.XFS_SUPER_MAGIC:
		return "xfs", false
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", false
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs", false
	case unix.TMPFS_MAGIC:
		return "tmpfs", true
	case unix.RAMFS_MAGIC:
		return "ramfs", true
	}
	return fmt.Sprintf("type 0x%x", uint32(st.Type)), false
}
