package memfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
)

// lockState of an inode. The holder is kept here and not in the file: a process
// id and a time in the bytes would make equal images differ.
type lockState struct {
	exclusive bool
	shared    int
	host      string
	since     time.Time
	words     []byte // what the holder shares; of the heap, where so many bytes are aligned for words
}

// Lock takes the lock file name, creating it if needed; see vfs.FS. A power cut
// frees every lock: images have none.
func (f *FS) Lock(name string, shared bool) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find(name)
	if err == nil && p.node != nil && p.node.dir() {
		err = fmt.Errorf("%w but a directory", vfs.ErrNotRegular)
	}
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	if p.node == nil {
		p.node = f.create(p, name)
	}
	l := &p.node.lock
	if l.exclusive || l.shared > 0 && !shared {
		return nil, &vfs.LockedError{Path: name, PID: os.Getpid(), Host: l.host, Since: l.since}
	}
	l.take(shared)
	p.node.handles++
	return &held{fs: f, node: p.node, shared: shared}, nil
}

func (l *lockState) take(shared bool) {
	l.host, _ = os.Hostname()
	l.since = time.Now()
	if shared {
		l.shared++
	} else {
		l.exclusive = true
		words := arena.Words(l.shares())
		for i := range words[1:] {
			words[1+i].Store(0)
		}
		words[0].Add(1)
	}
}

type held struct {
	fs     *FS
	node   *node
	shared bool
	once   sync.Once
}

func (h *held) Close() error {
	h.once.Do(func() {
		h.fs.mu.Lock()
		defer h.fs.mu.Unlock()
		if h.shared {
			h.node.lock.shared--
		} else {
			h.node.lock.exclusive = false
		}
		h.node.handles--
		h.fs.release(h.node)
	})
	return nil
}

// Share implements vfs.Sharer.
func (h *held) Share() ([]byte, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.shared {
		return nil, fs.ErrInvalid
	}
	return h.node.lock.shares(), nil
}

func (l *lockState) shares() []byte {
	if l.words == nil {
		l.words = make([]byte, vfs.SharedBytes)
	}
	return l.words
}

// Watch implements vfs.Watcher. A power cut does not end it: it goes on to show the lock of this file system, and
// not of an image.
func (f *FS) Watch(name string) (vfs.Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find(name)
	if err == nil && p.node == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, pathError("watch", name, err)
	}
	p.node.handles++
	return &watch{held{fs: f, node: p.node}, name, p.node.lock.shares()}, nil
}

type watch struct {
	held  held
	name  string
	words []byte
}

// Bytes implements vfs.Watch.
func (w *watch) Bytes() []byte { return w.words }

// Holder implements vfs.Watch.
func (w *watch) Holder() (vfs.Holder, error) {
	f := w.held.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.held.node.lock.exclusive {
		return vfs.Holds, nil
	}
	return vfs.Nobody, nil
}

// Check implements vfs.Watch.
func (w *watch) Check() error {
	f := w.held.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, err := f.find(w.name); err != nil || p.node != w.held.node {
		return pathError("watch", w.name, fs.ErrNotExist)
	}
	return nil
}

// Close implements io.Closer.
func (w *watch) Close() error {
	f := w.held.fs
	w.held.once.Do(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.held.node.handles--
		f.release(w.held.node)
	})
	return nil
}
