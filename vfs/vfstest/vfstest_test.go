package vfstest

import (
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// judge is a testing.TB that notes failure instead of failing.
type judge struct {
	testing.TB
	failed atomic.Bool
}

func (j *judge) Helper()               {}
func (j *judge) Error(...any)          { j.failed.Store(true) }
func (j *judge) Errorf(string, ...any) { j.failed.Store(true) }
func (j *judge) Fatal(...any)          { j.failed.Store(true); runtime.Goexit() }
func (j *judge) Fatalf(string, ...any) { j.failed.Store(true); runtime.Goexit() }

// broken is an FS with one promise broken.
type broken struct {
	vfs.FS
	create func(name string) (vfs.File, error)
	rename func(from, to string) error
	lock   func(name string, shared bool) (io.Closer, error)
	list   func(dir string) ([]string, error)
}

func (b broken) Create(name string) (vfs.File, error) {
	if b.create != nil {
		return b.create(name)
	}
	return b.FS.Create(name)
}

func (b broken) Rename(from, to string) error {
	if b.rename != nil {
		return b.rename(from, to)
	}
	return b.FS.Rename(from, to)
}

func (b broken) Lock(name string, shared bool) (io.Closer, error) {
	if b.lock != nil {
		return b.lock(name, shared)
	}
	return b.FS.Lock(name, shared)
}

func (b broken) List(dir string) ([]string, error) {
	if b.list != nil {
		return b.list(dir)
	}
	return b.FS.List(dir)
}

// stingy writes at most three bytes and does not say so.
type stingy struct{ vfs.File }

func (s stingy) WriteAt(p []byte, off int64) (int, error) {
	if _, err := s.File.WriteAt(p[:min(len(p), 3)], off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// TestSuiteCanFail: an implementation that breaks a promise does not pass.
func TestSuiteCanFail(t *testing.T) {
	for name, damage := range map[string]func(inner *memfs.FS) broken{
		"sound": func(m *memfs.FS) broken { return broken{FS: m} },
		"create truncates": func(m *memfs.FS) broken {
			return broken{FS: m, create: func(name string) (vfs.File, error) {
				_ = m.Remove(name)
				return m.Create(name)
			}}
		},
		"short writes": func(m *memfs.FS) broken {
			return broken{FS: m, create: func(name string) (vfs.File, error) {
				f, err := m.Create(name)
				return stingy{f}, err
			}}
		},
		"rename keeps the old name": func(m *memfs.FS) broken {
			return broken{FS: m, rename: func(from, to string) error {
				_ = m.Remove(to)
				return m.Link(from, to)
			}}
		},
		"every lock is granted": func(m *memfs.FS) broken {
			return broken{FS: m, lock: func(name string, _ bool) (io.Closer, error) { return m.Lock(name, true) }}
		},
		"unsorted list": func(m *memfs.FS) broken {
			return broken{FS: m, list: func(dir string) ([]string, error) {
				names, err := m.List(dir)
				for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
					names[i], names[j] = names[j], names[i]
				}
				return names, err
			}}
		},
	} {
		if failures := failuresOf(t, damage); (failures > 0) != (name != "sound") {
			t.Errorf("%s: %d tests of the suite fail", name, failures)
		}
	}
}

func failuresOf(t *testing.T, damage func(*memfs.FS) broken) (failures int) {
	for _, c := range suite {
		m := memfs.New()
		if err := m.MkdirAll("/store"); err != nil {
			t.Fatal(err)
		}
		j, done := &judge{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			c.test(&fixture{TB: j, fs: damage(m), dir: "/store"})
		}()
		<-done
		if j.failed.Load() {
			failures++
		}
	}
	return failures
}
