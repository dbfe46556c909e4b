package harness

import (
	"fmt"
	"path/filepath"

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

// readAhead says how far the kernel reads ahead on the block device under dir, which engines
// that map their files read with every miss; empty if dir is not on one such device. The queue
// of a partition is its disk's.
func readAhead(devices, dir string) string {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return ""
	}
	device, err := filepath.EvalSymlinks(filepath.Join(devices, fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))))
	if err != nil {
		return ""
	}
	for _, of := range []string{device, filepath.Dir(device)} {
		if kilobytes := firstLine(filepath.Join(of, "queue/read_ahead_kb")); kilobytes != "" {
			return kilobytes + " KiB"
		}
	}
	return ""
}
