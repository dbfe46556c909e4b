package vfs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// errHeld is what lockHandle returns if somebody else holds the lock.
var errHeld = errors.New("lock is held")

// errReplaced: the lock file was removed or replaced between open and lock.
var errReplaced = errors.New("lock file is being replaced")

// errForeign: who holds a lock would be written over something else.
var errForeign = foreignError{}

type foreignError struct{}

func (foreignError) Error() string {
	return "it is no lock file of a store, or a damaged one: it holds something else. Move it away, if nobody has the store open"
}

// Is reports whether target is fs.ErrExist.
func (foreignError) Is(target error) bool { return target == fs.ErrExist }

const (
	lockTries = 100
	// A winner signs the lock file right after it took the lock; a loser who finds
	// it still empty looks again so often, so long apart.
	holderTries = 3
	holderPause = 2 * time.Millisecond
	// lockBytes is the length of a lock file that was held: the first part is for its holder's line, the
	// rest for what that shares.
	lockBytes   = 512
	holderBytes = lockBytes - SharedBytes
)

// Lock takes the lock file name. The lock belongs to the inode: hard links and
// renamed or bind-mounted directories lead to the same lock.
func (osFS) Lock(name string, shared bool) (io.Closer, error) {
	var l io.Closer
	err := errReplaced
	for try := 0; try < lockTries && errors.Is(err, errReplaced); try++ {
		l, err = tryLock(name, shared)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func tryLock(name string, shared bool) (io.Closer, error) {
	f, err := openLock(name, shared)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return lockOpen(f, name, shared)
}

// lockOpen takes the lock of an open lock file, which it closes if it cannot.
func lockOpen(f *os.File, name string, shared bool) (io.Closer, error) {
	err := lockHandle(f, shared)
	if errors.Is(err, errHeld) {
		err = lockRefused(f, name, shared)
	} else if err != nil {
		err = &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	l := &osLock{f: f, name: name, shared: shared}
	size, err := stillNamed(f, name)
	if err == nil && !shared && size > 0 && foreign(f, size) {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: errForeign}, unlockHandle(f), f.Close())
	}
	if err == nil && !shared {
		// In this order: who is seen to hold the lock has nothing of an earlier holder's in the file.
		if err = l.sign(); err == nil {
			err = l.show()
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// openLock opens the lock file, creating it if it does not exist. A shared lock
// needs no right to write.
func openLock(name string, shared bool) (*os.File, error) {
	if shared {
		f, err := openRegular(name, os.O_RDONLY)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return openRegular(name, os.O_RDWR|os.O_CREATE)
}

type osLock struct {
	f      *os.File
	name   string
	shared bool
	signed bool   // the file says who holds it
	page   []byte // of Share; nil: it has not been called, or failed
	once   sync.Once
	err    error

	mu struct {
		sync.Mutex
		dir    *os.File // of KeepDir; nil: none is kept
		closed bool
	}
}

// Check implements Guard.
func (l *osLock) Check() error {
	if _, err := stillNamed(l.f, l.name); err != nil {
		return fmt.Errorf("the directory is no longer the one whose lock is held, was it renamed? %w", err)
	}
	return nil
}

// stillNamed makes sure that an open lock file is still the one the name leads to:
// whoever removes a lock file must not leave two holders behind. It returns the
// file's size in bytes.
func stillNamed(f *os.File, name string) (size int64, err error) {
	mine, err := f.Stat()
	if err != nil {
		return 0, err
	}
	named, err := os.Lstat(name)
	if err == nil && os.SameFile(mine, named) {
		return mine.Size(), nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return 0, &fs.PathError{Op: "lock", Path: name, Err: errReplaced}
	}
	return 0, err
}

// sign writes who holds the lock over all of the file. A full disk must not
// keep a store from being opened (deleting is the way out), so that one error is passed
// over.
func (l *osLock) sign() error {
	host, _ := os.Hostname() // unknown is written as "?"
	all := make([]byte, lockBytes)
	copy(all, encodeHolder(os.Getpid(), host, time.Now()))
	setTurn(all)
	_, err := writeAll(l.f, all, 0)
	l.signed = err == nil
	if IsNoSpace(err) {
		return nil
	}
	return err
}

// Close lets the lock go. It unlocks before it closes: a child process forked at
// this moment still has a copy of the descriptor, and would prolong the lock.
func (l *osLock) Close() error {
	l.once.Do(func() {
		if !l.shared {
			_ = l.hide() // what it says is for messages only, but for what Share has shared
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mu.closed = true; l.mu.dir != nil {
			l.mu.dir.Close()
		}
		l.err = errors.Join(unlockHandle(l.f), l.f.Close())
	})
	return l.err
}

// setTurn makes the first shared word of a lock file one that no other holder has.
func setTurn(file []byte) { _, _ = rand.Read(file[holderBytes : holderBytes+8]) }

// lockRefused returns why an open lock file cannot be locked, or takes its lock after all: who is refused it, and looks for
// whom to name, may share it for an instant (heldAlone), and so keep others from a lock that nobody holds. Whoever has found
// nobody to name therefore tries once more. Nobody looks after that, so the last of those who try gets a lock that is free.
func lockRefused(f *os.File, name string, shared bool) error {
	e := lockedError(name, f)
	if e.PID == 0 && lockHandle(f, shared) == nil {
		return nil
	}
	return e
}

// lockedError says who holds a lock, if it is known who has signed it: where those hold it who share it, what stands in
// the file is left from somebody who was killed.
func lockedError(name string, f *os.File) *LockedError {
	e := &LockedError{Path: name}
	for try := 0; try < holderTries && e.PID == 0; try++ {
		if try > 0 {
			time.Sleep(holderPause)
		}
		if !signed(f) {
			continue
		}
		buf := make([]byte, holderBytes)
		n, _ := readAll(f, buf, 0) // what cannot be read stays unknown
		e.PID, e.Host, e.Since = decodeHolder(buf[:n])
	}
	return e
}

// heldAlone reports whether somebody holds a lock exclusively: f, which has no lock, cannot share it. Others may be refused
// the lock meanwhile.
func heldAlone(f *os.File) bool {
	err := lockHandle(f, true)
	if err == nil {
		_ = unlockHandle(f)
	}
	return err != nil
}

func encodeHolder(pid int, host string, since time.Time) []byte {
	if !plainWord(host) {
		host = "?"
	}
	line := append(strconv.AppendInt(nil, int64(pid), 10), ' ')
	line = append(append(line, host...), ' ')
	return append(since.AppendFormat(line, time.RFC3339), '\n')
}

// foreign reports whether a lock file of so many bytes holds what encodeHolder cannot have
// written, nor left when it was interrupted: it begins with a holder's line, or a part of one, or zeros.
func foreign(f *os.File, size int64) bool {
	if size > lockBytes {
		return true
	}
	buf := make([]byte, min(size, holderBytes))
	n, err := readAll(f, buf, 0)
	text := bytes.TrimLeft(buf[:n], "\x00")
	if err != nil || len(text) == 0 {
		return false
	}
	if bytes.IndexByte(text, '\n') < 0 {
		return !partOfHolder(text)
	}
	pid, _, _ := decodeHolder(text)
	return pid == 0
}

// partOfHolder reports whether a text may be how a holder's line begins, with zeros behind it.
func partOfHolder(text []byte) bool {
	text, _, _ = bytes.Cut(text, []byte{0})
	fields := strings.Split(string(text), " ")
	return len(fields) <= 3 && fields[0] != "" && fields[0][0] != '0' && strings.Trim(fields[0], "0123456789") == "" &&
		(len(fields) < 2 || fields[1] == "" || plainWord(fields[1])) &&
		(len(fields) < 3 || strings.Trim(fields[2], "0123456789-T:+Z") == "")
}

// decodeHolder returns zeros for anything that encodeHolder did not write: the
// line goes into error messages and may come from a hostile file.
func decodeHolder(line []byte) (pid int, host string, since time.Time) {
	text, _, whole := strings.Cut(string(line), "\n")
	fields := strings.Split(text, " ")
	if !whole || len(fields) != 3 || !plainWord(fields[1]) {
		return 0, "", time.Time{}
	}
	since, err := time.Parse(time.RFC3339, fields[2])
	if err != nil {
		return 0, "", time.Time{}
	}
	if pid, err = strconv.Atoi(fields[0]); err != nil || pid <= 0 {
		return 0, "", time.Time{}
	}
	return pid, fields[1], since
}

// plainWord reports whether s is safe to show on a terminal and has no space.
func plainWord(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 255
}
