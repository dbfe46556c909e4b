package vfs

import "golang.org/x/sys/unix"

// noCOW is FS_NOCOW_FL of linux/fs.h.
const noCOW = 0x00800000

// WriteInPlace implements Overwriter. Only btrfs knows how, and only while the file is empty. It writes to new space otherwise,
// even what was reserved, from the second time on: the last page of a log, which is written with each commit, and zeros.
func (o *osFile) WriteInPlace() {
	_ = o.control(func(fd int) error {
		var st unix.Statfs_t
		if err := unix.Fstatfs(fd, &st); err != nil || uint32(st.Type) != unix.BTRFS_SUPER_MAGIC {
			return err
		}
		flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|noCOW))
	})
}
