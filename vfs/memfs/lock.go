package memfs

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cairndb/cairn/vfs"
)

// lockState of an inode. The holder is kept here and not in the file: a process
// id and a time in the bytes would make equal images differ.
type lockState struct {
	exclusive bool
	shared    int
	host      string
	since     time.Time
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
