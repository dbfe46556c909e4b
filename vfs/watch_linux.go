package vfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// What the holder of a lock shares begins at sharedAt in the file. Besides the lock itself it has locks on
// single bytes, of which others can ask whether they are held.
const (
	sharedAt   = holderBytes
	sharedPage = 4096

	heldByte   = 0 // locked by an exclusive holder
	hiddenByte = 1 // by one that could not Share
	watchByte  = 2 // by those who watch, shared

	madeWithin = 50 * time.Millisecond // a lock file, from when it has its name
)

// mayShare are the file systems where a page of a file that is there can be stored to at any time, and
// processes see the same page: not those of a network, nor those that write every page to a new place.
var mayShare = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
}

// shareable fails unless an open lock file is on one of those.
func shareable(fd int) error {
	var fsys unix.Statfs_t
	err := unix.Fstatfs(fd, &fsys)
	if err == nil && !(sharesWords && mayShare[int64(fsys.Type)]) {
		err = errors.ErrUnsupported
	}
	return err
}

// mapShared maps the page of a lock file.
func mapShared(f *os.File, prot int) (page []byte, err error) {
	err = control(f, func(fd int) error {
		if err := shareable(fd); err != nil {
			return err
		}
		page, err = unix.Mmap(fd, 0, sharedPage, prot, unix.MAP_SHARED)
		return err
	})
	return page, err
}

// holdByte locks a byte of a lock file, or lets go of several. The lock is that of the open file.
func holdByte(f *os.File, how int16, at, n int64) error {
	err := control(f, func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: how, Start: at, Len: n})
	})
	if err == unix.EINVAL || err == unix.EPERM { // a system that does not know such locks, or a sandbox that has none
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// byteHeld reports whether somebody else has a byte locked in such a way that f could not lock it so.
func byteHeld(f *os.File, how int16, at int64) (bool, error) {
	l := unix.Flock_t{Type: how, Start: at, Len: 1}
	err := control(f, func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l) })
	return l.Type != unix.F_UNLCK, err
}

// signed reports whether somebody holds a lock who has signed it, or will in a moment where there are no locks on bytes.
func signed(f *os.File) bool {
	held, err := byteHeld(f, unix.F_RDLCK, heldByte)
	return err == nil && held || err != nil && heldAlone(f)
}

// show lets Watch know that the lock is held.
func (l *osLock) show() error { return l.mark(heldByte) }

// mark locks a byte for Watch to find. Where that cannot be had by anybody Watch fails, too; but if somebody else has a
// lock there, as whoever may read the file can, or the system has none left, Watch would say what is not so.
func (l *osLock) mark(at int64) error {
	err := holdByte(l.f, unix.F_WRLCK, at, 1)
	switch {
	case err == nil || errors.Is(cmp.Or(control(l.f, shareable), err), errors.ErrUnsupported):
		return nil
	case err == unix.EAGAIN || err == unix.EACCES:
		return &LockedError{Path: l.name}
	}
	return &fs.PathError{Op: "lock a byte of", Path: l.name, Err: err}
}

// Share implements Sharer.
func (l *osLock) Share() ([]byte, error) {
	if l.shared {
		return nil, fs.ErrInvalid
	}
	if l.page == nil {
		page, err := l.share()
		if err != nil {
			hidden := errors.ErrUnsupported
			if err := l.conceal(); err != nil {
				hidden = err
			}
			return nil, fmt.Errorf("share memory through %s: %w: %w", l.name, hidden, err)
		}
		l.page = page
		_ = holdByte(l.f, unix.F_UNLCK, hiddenByte, 1) // an attempt before this one may have failed
	}
	return l.page[sharedAt : sharedAt+SharedBytes], nil
}

// conceal makes the holder Hidden, and then lets those know who watch.
func (l *osLock) conceal() error {
	err := l.mark(hiddenByte)
	if err == nil && control(l.f, shareable) == nil {
		turn := make([]byte, lockBytes)
		setTurn(turn)
		_, err = writeAll(l.f, turn[sharedAt:sharedAt+8], sharedAt)
	}
	return err
}

func (l *osLock) share() ([]byte, error) {
	if !l.signed { // the disk was full
		if err := control(l.f, func(fd int) error { return unix.Fallocate(fd, 0, 0, lockBytes) }); err != nil {
			return nil, err
		}
		if err := l.sign(); err != nil {
			return nil, err
		}
		if !l.signed { // its block is another file's, too: to store there would be a memory fault
			return nil, unix.ENOSPC
		}
	}
	return mapShared(l.f, unix.PROT_READ|unix.PROT_WRITE)
}

// hide ends what Share and show began, and what the file says of its holder. It is not made shorter: that
// would be a memory fault to whoever watches. If nobody does it takes no space, but on tmpfs, where a hole
// that is read through a mapping takes a page: a full one would have none.
func (l *osLock) hide() error {
	watched, err := byteHeld(l.f, unix.F_WRLCK, watchByte)
	if err == nil && !watched {
		err = control(l.f, func(fd int) error {
			var fsys unix.Statfs_t
			if err := unix.Fstatfs(fd, &fsys); err != nil || fsys.Type == unix.TMPFS_MAGIC {
				return cmp.Or(err, errors.ErrUnsupported)
			}
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, sharedPage)
		})
	}
	if err != nil || watched {
		_, err = writeAll(l.f, make([]byte, holderBytes), 0)
	}
	if l.page != nil {
		err = errors.Join(err, unix.Munmap(l.page))
		l.page = nil
	}
	_ = holdByte(l.f, unix.F_UNLCK, 0, 2)
	return err
}

// Watch implements Watcher.
func (osFS) Watch(name string) (Watch, error) {
	f, err := openRegular(name, os.O_RDONLY)
	if err == nil {
		f, err = writableLayer(f, name)
	}
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &osWatch{f: f, name: name}
	err = whole(f, madeWithin)
	if err == nil {
		err = control(f, shareable) // what fails elsewhere may be that there are no such locks
	}
	if err == nil {
		err = holdByte(f, unix.F_RDLCK, watchByte, 1)
	}
	if err == nil {
		w.page, err = mapShared(f, unix.PROT_READ)
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "watch", Path: name, Err: err}
	}
	return w, nil
}

// whole fails unless an open lock file has its length, for which it waits: one that is being made is empty until its holder
// has signed it. One that stays short was never held, or by a version that left it so.
func whole(f *os.File, wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		info, err := f.Stat()
		if err != nil || info.Size() >= lockBytes {
			return err
		}
		if !time.Now().Before(deadline) {
			return errors.ErrUnsupported
		}
	}
}

// writableLayer returns f, or on overlayfs the file that a writer has: of one in a lower layer it would be another
// one, a copy, which is made when the file is opened for writing. Where there can be none readers and a writer exclude each other.
func writableLayer(f *os.File, name string) (*os.File, error) {
	var fsys unix.Statfs_t
	err := control(f, func(fd int) error { return unix.Fstatfs(fd, &fsys) })
	if err != nil || int64(fsys.Type) != unix.OVERLAYFS_SUPER_MAGIC {
		return f, err
	}
	f.Close()
	f, err = openRegular(name, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) || IsNoSpace(err) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return f, err
}

type osWatch struct {
	f    *os.File
	name string
	page []byte
}

func (w *osWatch) Bytes() []byte { return w.page[sharedAt : sharedAt+SharedBytes] }

func (w *osWatch) Holder() (Holder, error) {
	hidden, err := byteHeld(w.f, unix.F_RDLCK, hiddenByte)
	if err != nil || hidden {
		return Hidden, err
	}
	held, err := byteHeld(w.f, unix.F_RDLCK, heldByte)
	if err != nil || held {
		return Holds, err
	}
	return Nobody, nil
}

func (w *osWatch) Check() error {
	if _, err := stillNamed(w.f, w.name); err != nil {
		return fmt.Errorf("the directory is no longer the one whose lock is watched, was it renamed? %w", err)
	}
	return nil
}

func (w *osWatch) Close() error { return errors.Join(unix.Munmap(w.page), w.f.Close()) }
