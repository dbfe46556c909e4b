package vfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// datasync: fdatasync writes the size too when it changed, but not the times.
func datasync(o *osFile) error { return o.control(unix.Fdatasync) }

// Map implements Mapper. A store to a page that is not in memory brings in that page alone:
// reading ahead would take as much memory as the device is set to read ahead, and as long as
// to clear it, which is 3 ms for 8 MiB.
func (o *osFile) Map(off int64, n int) (Mapping, error) {
	var b []byte
	err := o.control(func(fd int) (err error) {
		if b, err = unix.Mmap(fd, off, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			_ = unix.Madvise(b, unix.MADV_RANDOM)
		}
		return err
	})
	if err != nil {
		return nil, o.wrap("map", err)
	}
	return mapping(b), nil
}

// View implements Viewer.
func (o *osFile) View(n int) (Mapping, error) {
	var b []byte
	err := o.control(func(fd int) (err error) {
		b, err = unix.Mmap(fd, 0, n, unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, o.wrap("map", err)
	}
	return mapping(b), nil
}

// mapping implements Mapping.
type mapping []byte

func (m mapping) Bytes() []byte { return m }

func (m mapping) LetGo(from, to int64) {
	page := int64(os.Getpagesize())
	from, to = from&^(page-1), min((to+page-1)&^(page-1), int64(len(m)))
	if from < to {
		_ = unix.Madvise(m[from:to], unix.MADV_DONTNEED)
	}
}

// Touch implements Toucher.
func (m mapping) Touch(from, to int64) {
	page := int64(os.Getpagesize())
	if from, to = from&^(page-1), min(to, int64(len(m))); from < to {
		_ = unix.Madvise(m[from:to], unix.MADV_POPULATE_WRITE)
	}
}

// Fetch implements Fetcher. Since a Map brings in single pages, to come to many that the system has dropped would
// take a read of the device for each. One piece is what any device is set to read ahead.
func (m mapping) Fetch(from, to int64) {
	const piece = 128 << 10
	page := int64(os.Getpagesize())
	for from, to = from&^(page-1), min(to, int64(len(m))); from < to; from += piece {
		_ = unix.Madvise(m[from:min(from+piece, to)], unix.MADV_WILLNEED)
	}
}

// Unmap takes the pages out of the process piece by piece first: while a mapping ends, nobody else in the process
// can begin or end one, which for 64 MiB are milliseconds.
func (m mapping) Unmap() error {
	const piece = 1 << 20
	for from := int64(0); from < int64(len(m))-piece; from += piece {
		m.LetGo(from, from+piece)
	}
	return unix.Munmap(m)
}

// Cached implements Cacher.
func (o *osFile) Cached(n int64) bool {
	one := [][]byte{make([]byte, 1)}
	return nil == o.control(func(fd int) error {
		for off := int64(0); off < n; off += MapUnit {
			if _, err := unix.Preadv2(fd, one, off, unix.RWF_NOWAIT); err != nil {
				return err
			}
		}
		return nil
	})
}

// StartWriteback implements WriteStarter. Without a flag to wait, sync_file_range leaves an
// error of the device to be told by fdatasync.
func (o *osFile) StartWriteback(off, n int64) {
	_ = o.control(func(fd int) error { return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE) })
}

// Scattered implements Scatterer. How a file is read is a property of what open returns, so
// it is opened anew, by the name the system has for the descriptor.
func (o *osFile) Scattered() (File, error) {
	var again *os.File
	err := o.control(func(fd int) (err error) {
		again, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
		return err
	})
	if err != nil {
		return nil, err
	}
	conn, err := again.SyscallConn()
	if err == nil {
		f := &osFile{f: again, conn: conn}
		if err = f.control(func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM) }); err == nil {
			return f, nil
		}
	}
	return nil, errors.Join(err, again.Close())
}

// preallocate reserves all of the range or nothing: where there is not enough, ext4 leaves the file with what
// there was, and the disk without.
func preallocate(o *osFile, off, n int64) error {
	err := o.control(func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		err := unix.Fallocate(fd, 0, off, n)
		if IsNoSpace(err) {
			_ = unix.Ftruncate(fd, st.Size)
		}
		return err
	})
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return errors.ErrUnsupported
	}
	return err
}

// unitBytes returns what the counts of a file system's blocks are in.
func unitBytes(st *unix.Statfs_t) uint64 {
	if st.Frsize > 0 {
		return uint64(st.Frsize)
	}
	return uint64(st.Bsize)
}
