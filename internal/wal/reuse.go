package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// Used is the file of a segment that is not needed any more. The next one that uses it
// needs no space, no zeros, and no fresh pages of the system's cache.
type Used struct {
	f     vfs.File
	name  string
	size  int
	fill  int64
	ident frame.Identity
}

// Retire is Close of a segment whose file may be used again, which it returns; or nil, the
// file being closed: if not all of the segment is synced, which would have to be written
// then, if a write to it has failed, if its file is somebody's arena, or if nobody knows what
// of the file is in the system's cache.
func (s *Segment) Retire() *Used {
	s.syncing.Lock()
	known := false
	if !s.closed && !s.failed && s.mapping == nil && s.synced.Load() == s.tail.Load() {
		_, known = s.f.(vfs.Cacher)
	}
	if !known {
		s.syncing.Unlock()
		s.Close()
		return nil
	}
	defer s.syncing.Unlock()
	s.closed = true
	return &Used{f: s.f, name: s.name, size: s.size, fill: max(s.fill, s.written.Load()), ident: s.ident}
}

// Size returns how long the file is.
func (u *Used) Size() int { return u.size }

// Cached reports whether all of the file is in the system's cache. If not, small writes
// would have to wait for the rest of their page to be read.
func (u *Used) Cached() bool { return u.f.(vfs.Cacher).Cached(int64(u.size)) }

// Name returns the file's name.
func (u *Used) Name() string { return u.name }

// Close closes the file.
func (u *Used) Close() error { return u.f.Close() }

// Reuse makes segment num of the file of another one, as long as buf, whose entries no
// manifest needs any more. The header of the new one is durable before its name is: a file
// with the old name is older than the log, whatever its header says. The caller syncs the
// directory. After an error the file is closed, and still has its old name, if it has not gone.
func Reuse(fsys vfs.FS, u *Used, name string, num uint64, store base.ID, buf []byte) (*Segment, error) {
	s := &Segment{Num: num, f: u.f, name: name, size: len(buf), buf: buf, fill: u.fill, reused: true}
	for s.ident = u.ident; s.ident == u.ident; { // else frames of the last use would pass for those of this one
		s.File = base.NewID()
		s.ident = frame.NewIdentity(s.File)
	}
	err := s.begin(store, false)
	if err == nil {
		err = takeName(fsys, u.name, name)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("use %s again as log segment %s: %w", u.name, name, err)
	}
	return s, nil
}

// takeName renames a file, and fails if there is anything with the new name, which stays: a file of somebody else's, or a
// link, which Open does not follow.
func takeName(fsys vfs.FS, old, name string) error {
	f, err := fsys.Open(name)
	if err == nil {
		f.Close()
	} else if !errors.Is(err, vfs.ErrNotRegular) { // of descriptors there may be none left
		_, err = fsys.Stat(name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	if err = fsys.Rename(old, name); err != nil {
		fsys.Remove(name) // if only what Rename returned was wrong
	}
	return err
}

// mostShelved is how many files may wait for the next segment.
const mostShelved = 2

// Shelf keeps files for the next segments. All methods may be called at once.
type Shelf struct {
	mu    sync.Mutex
	files []*Used
}

// Put keeps u, or reports false if it has enough.
func (s *Shelf) Put(u *Used) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == mostShelved {
		return false
	}
	s.files = append(s.files, u)
	return true
}

// Take returns a file of the given size that is in the system's cache, which is the
// caller's; nil if there is none.
func (s *Shelf) Take(size int) *Used {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.files, func(u *Used) bool { return u.size == size && u.Cached() })
	if i < 0 {
		return nil
	}
	u := s.files[i]
	s.files = slices.Delete(s.files, i, i+1)
	return u
}

// Clear takes all files away and calls each for their names, the files being closed.
func (s *Shelf) Clear(each func(name string)) {
	s.mu.Lock()
	files := s.files
	s.files = nil
	s.mu.Unlock()
	for _, u := range files {
		u.Close()
		each(u.name)
	}
}
