//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNoFollow: O_NONBLOCK keeps open from waiting for the other end of a FIFO; it
// means nothing for regular files. Package os adds O_CLOEXEC.
func openNoFollow(name string, flag int) (*os.File, error) {
	return os.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, fileMode)
}

// Unlink implements Unlinker: an open file keeps its space.
func (osFS) Unlink(name string) (free func(), err error) {
	f, err := openNoFollow(name, os.O_RDONLY)
	if err != nil {
		return func() {}, os.Remove(name)
	}
	if err := os.Remove(name); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func syncDir(dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAttempted, err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// openDir opens a directory to be read or synced. Package os would offer its descriptor to the runtime's
// poller, which takes none of directories: five calls of the system more.
func openDir(name string) (*os.File, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case unix.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// KeepDir implements DirKeeper.
func (l *osLock) KeepDir(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.dir != nil || l.mu.closed || filepath.Clean(dir) != filepath.Dir(l.name) {
		return nil
	}
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	if !l.isIn(d) {
		return errors.Join(&fs.PathError{Op: "keep", Path: dir, Err: errReplaced}, d.Close())
	}
	l.mu.dir = d
	return nil
}

// isIn reports whether the lock file is in the directory d under its name.
func (l *osLock) isIn(d *os.File) bool {
	var named, mine unix.Stat_t
	err := errors.Join(
		control(d, func(fd int) error { return unix.Fstatat(fd, filepath.Base(l.name), &named, unix.AT_SYMLINK_NOFOLLOW) }),
		control(l.f, func(fd int) error { return unix.Fstat(fd, &mine) }))
	return err == nil && named.Dev == mine.Dev && named.Ino == mine.Ino
}

// SyncKept implements DirKeeper.
func (l *osLock) SyncKept(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.dir == nil || filepath.Clean(dir) != filepath.Dir(l.name) {
		return ErrNotAttempted
	}
	return l.mu.dir.Sync()
}

// lastCall is the call that a file made last: the next one uses it again, so that a sync
// allocates nothing.
type lastCall struct{ atomic.Pointer[descriptorCall] }

// descriptorCall is a call that has a descriptor as its argument.
type descriptorCall struct {
	call func(fd int) error
	err  error
	run  func(fd uintptr) // do, bound once
}

// do calls, and again when a signal interrupts it.
func (c *descriptorCall) do(fd uintptr) {
	for c.err = c.call(int(fd)); c.err == unix.EINTR; {
		c.err = c.call(int(fd))
	}
}

// control runs call with the descriptor, which cannot be closed meanwhile.
func (o *osFile) control(call func(fd int) error) error {
	c := o.calls.Swap(nil)
	if c == nil { // or others are under way
		c = new(descriptorCall)
		c.run = c.do
	}
	c.call, c.err = call, nil
	err := fs.ErrClosed
	if o.conn.Control(c.run) == nil {
		err = c.err
	}
	c.call = nil
	o.calls.Store(c)
	return err
}

func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

func systemNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func transient(err error) bool {
	return errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN)
}

// inUse: names do not depend on who has a file open.
func inUse(error) bool { return false }

func lockHandle(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := flock(f, how|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	return err
}

func unlockHandle(f *os.File) error { return flock(f, unix.LOCK_UN) }

// flock, not fcntl: a record lock belongs to the process, so it would not exclude
// a second opener in this one, and closing any descriptor of the file drops it.
func flock(f *os.File, how int) error {
	return control(f, func(fd int) error { return unix.Flock(fd, how) })
}

// control runs call with the descriptor of a file that is no osFile.
func control(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	o := osFile{f: f, conn: conn}
	return o.control(call)
}
