// Package reserve puts space aside on a disk, in a file that nobody writes to, and names
// the errors of a full one.
//
// # Concurrency
//
// All methods may be called at once.
//
// # Lifetimes
//
// What one process puts aside another may find after a crash; Release gives it back.
package reserve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// Space is put aside in one file.
type Space struct {
	fs   vfs.FS
	name string

	given atomic.Bool  // to deletes; they get no more until it is held again
	lent  atomic.Int64 // bytes of it that the next segment may take

	mu    sync.Mutex
	bytes int64
	aside atomic.Int64 // bytes, or as many as anybody may need where none can be put aside. Written under mu
}

// New returns the space that the file name takes: none yet.
func New(fsys vfs.FS, name string) *Space { return &Space{fs: fsys, name: name} }

// Hold puts at least so many bytes aside and then calls use, during which they stay so:
// Release waits, and use must not call the methods of s. If that much cannot be put aside, what was
// still is, and use is not called.
func (s *Space) Hold(bytes int64, use func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.grow(bytes); err != nil {
		return err
	}
	return use()
}

func (s *Space) grow(bytes int64) error {
	if bytes <= s.bytes {
		return nil
	}
	f, err := s.fs.OpenReadWrite(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = s.fs.Create(s.name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if s.bytes == 0 && foreign(f) {
		return fmt.Errorf("%s: %w: it holds something", s.name, fs.ErrExist)
	}
	if err := f.Preallocate(0, bytes); err != nil {
		return err
	}
	s.bytes = bytes
	s.aside.Store(bytes)
	return nil
}

// Release gives the space back and returns how many bytes it was, what an earlier process
// left included.
func (s *Space) Release() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove()
}

// remove removes the file, unless it is not ours, and returns how many bytes that gave back.
func (s *Space) remove() int64 {
	bytes := s.bytes
	if bytes == 0 {
		s.aside.Store(0)
		f, err := s.fs.Open(s.name)
		if err != nil {
			return 0
		}
		defer f.Close()
		if foreign(f) {
			return 0
		}
		bytes, _ = f.Size()
	}
	s.bytes = 0
	s.aside.Store(0)
	if s.fs.Remove(s.name) != nil {
		return 0
	}
	return bytes
}

// foreign reports whether a file begins with something: what is put aside is never written.
func foreign(f vfs.File) bool {
	var head [8]byte
	n, err := f.ReadAt(head[:], 0)
	return err != nil && err != io.EOF || !base.MayBeOurs(base.FileReserve, head[:n])
}

// Shrink leaves no more than so many bytes aside, if more were. Where the file cannot be cut it is made anew, and others
// can come between; if even that fails, none are: Hold tries again.
func (s *Space) Shrink(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes <= bytes {
		return
	}
	if !s.cut(bytes) && s.remove() > 0 {
		_ = s.grow(bytes)
	}
}

// cut makes the file as short as that, and reports whether it could.
func (s *Space) cut(bytes int64) bool {
	f, err := s.fs.OpenReadWrite(s.name)
	if err != nil {
		return false
	}
	defer f.Close()
	size, err := f.Size()
	if short, ok := f.(vfs.Shortener); !ok || err != nil || size < s.bytes || short.Shorten(bytes) != nil {
		return false
	}
	s.bytes = bytes
	s.aside.Store(bytes)
	return true
}
