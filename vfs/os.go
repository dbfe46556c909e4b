package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// ErrNotRegular is matched by the error of Open, OpenReadWrite and Lock when the
// name is something other than a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Permissions before the umask.
const (
	fileMode = 0o644
	dirMode  = 0o755
)

type osFS struct{}

// OS returns the operating system's file system. Errors are *fs.PathError,
// *os.LinkError or *LockedError, naming the operation and the path.
func OS() FS { return osFS{} }

func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openFile(name, os.O_RDONLY) }

func (osFS) OpenReadWrite(name string) (File, error) { return openFile(name, os.O_RDWR) }

func (osFS) Remove(name string) error {
	return patiently(inUse, func() error { return os.Remove(name) })
}

func (osFS) Rename(oldname, newname string) error {
	return patiently(inUse, func() error { return os.Rename(oldname, newname) })
}

func (osFS) Link(oldname, newname string) error { return os.Link(oldname, newname) }

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, dirMode) }

func (osFS) List(dir string) ([]string, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	// Not os.ReadDir: it may stat every entry.
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (osFS) Stat(name string) (FileInfo, error) {
	info, err := os.Stat(name)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{Size: info.Size(), Allocated: allocated(info), Dir: info.IsDir()}, nil
}

func (osFS) SyncDir(dir string) error { return syncDir(dir) }

// openRegular opens name without following a symbolic link and refuses anything
// but a regular file. flag is of package os.
func openRegular(name string, flag int) (*os.File, error) {
	f, err := openNoFollow(name, flag)
	if err != nil {
		return nil, explainOpen(name, flag, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info.Mode(), nil)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// explainOpen replaces an error such as "too many levels of symbolic links" by
// one that says what stands in the place of the file. It still matches err.
func explainOpen(name string, flag int, err error) error {
	if flag&os.O_EXCL != 0 {
		return err
	}
	info, statErr := os.Lstat(name)
	if statErr != nil || info.Mode().IsRegular() {
		return err
	}
	return notRegular(name, info.Mode(), err)
}

func notRegular(name string, mode fs.FileMode, cause error) error {
	err := fmt.Errorf("%w but a %s", ErrNotRegular, describe(mode))
	if pathErr := (*fs.PathError)(nil); errors.As(cause, &pathErr) {
		err = fmt.Errorf("%w: %w", err, pathErr.Err)
	}
	return &fs.PathError{Op: "open", Path: name, Err: err}
}

func describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// osFile is an open regular file. f keeps the descriptor alive during each call,
// so Close cannot pull it away under a system call; conn is the same descriptor
// for the calls package os does not know.
type osFile struct {
	f     *os.File
	conn  syscall.RawConn
	calls lastCall
}

func openFile(name string, flag int) (File, error) {
	f, err := openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &osFile{f: f, conn: conn}, nil
}

func (o *osFile) ReadAt(p []byte, off int64) (int, error) { return readAll(o.f, p, off) }

func (o *osFile) WriteAt(p []byte, off int64) (int, error) { return writeAll(o.f, p, off) }

func (o *osFile) Close() error { return o.f.Close() }

func (o *osFile) Sync() error { return o.wrap("sync", datasync(o)) }

// Shorten implements Shortener.
func (o *osFile) Shorten(n int64) error { return o.f.Truncate(n) }

func (o *osFile) Preallocate(off, n int64) error {
	if off < 0 || n < 0 || off+n < off {
		return o.wrap("preallocate", fs.ErrInvalid)
	}
	if n == 0 {
		return nil
	}
	return o.wrap("preallocate", preallocate(o, off, n))
}

// Size asks for the end: package os keeps the descriptor alive for that on every system, and for Stat not on Windows. Nobody else
// uses the place that this moves.
func (o *osFile) Size() (int64, error) { return o.f.Seek(0, io.SeekEnd) }

func (o *osFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return err
	}
	return &fs.PathError{Op: op, Path: o.f.Name(), Err: err}
}

// An interrupted call, or one that would block, is tried again for about a tenth
// of a second without progress before its error is believed.
const (
	transientTries = 100
	transientPause = time.Millisecond
)

// Where a file that another program has open keeps its name, as a scanner has on Windows whatever is written, a change of names
// is tried again after a millisecond, two, four and so on, for two seconds in all.
const longestPause = 1024 * time.Millisecond

// patiently returns the error of change, which is tried again for as long as its errors pass.
func patiently(passes func(error) bool, change func() error) error {
	err := change()
	for pause := time.Millisecond; err != nil && pause <= longestPause && passes(err); pause *= 2 {
		time.Sleep(pause)
		err = change()
	}
	return err
}

// writeAll writes all of p or returns how much it wrote and why not more.
func writeAll(w io.WriterAt, p []byte, off int64) (int, error) {
	done, tries := 0, 0
	for {
		n, err := w.WriteAt(p[done:], off+int64(done))
		done += n
		switch {
		case done == len(p):
			return done, err
		case err == nil && n == 0:
			return done, io.ErrShortWrite
		case err != nil && (!transient(err) || tries == transientTries):
			return done, err
		}
		tries = pauseUnlessProgress(n, tries)
	}
}

// readAll fills p or returns how much it read and why not more (io.EOF at the end).
func readAll(r io.ReaderAt, p []byte, off int64) (int, error) {
	done, tries := 0, 0
	for {
		n, err := r.ReadAt(p[done:], off+int64(done))
		done += n
		switch {
		case done == len(p):
			return done, nil
		case err == nil && n == 0:
			return done, io.ErrNoProgress
		case err != nil && (!transient(err) || tries == transientTries):
			return done, err
		}
		tries = pauseUnlessProgress(n, tries)
	}
}

func pauseUnlessProgress(n, tries int) int {
	if n > 0 {
		return 0
	}
	time.Sleep(transientPause)
	return tries + 1
}
