package memfs

import (
	"cmp"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/cairndb/cairn/vfs"
)

// file is an open file. It keeps its inode, so removing the name does not harm it.
type file struct {
	fs       *FS
	node     *node
	name     string
	writable bool
	closed   atomic.Bool
}

func (f *FS) open(name string, n *node, writable bool) *file {
	n.handles++
	return &file{fs: f, node: n, name: name, writable: writable}
}

func (h *file) err(op string, err error) error { return pathError(op, h.name, err) }

// check refuses calls that no operating system would let through.
func (h *file) check(writes bool, off, n int64) error {
	switch {
	case h.closed.Load():
		return fs.ErrClosed
	case writes && !h.writable:
		return fs.ErrPermission
	case off < 0 || n < 0:
		return fs.ErrInvalid
	case writes && (off > maxFileBytes || n > maxFileBytes-off):
		return errTooLarge
	}
	return nil
}

// Cached implements vfs.Cacher: everything is in memory.
func (h *file) Cached(int64) bool { return true }

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	defer h.fs.look()()
	if err := h.check(false, off, int64(len(p))); err != nil {
		return 0, h.err("read", err)
	}
	n := h.node.data.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes as much as the capacity allows; a full disk leaves a prefix.
func (h *file) WriteAt(p []byte, off int64) (int, error) {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.check(true, off, int64(len(p))); err != nil {
		return 0, h.err("write", err)
	}
	f.notice()
	n := f.take(h.node, off, int64(len(p)))
	if n > 0 {
		if f.journal != nil {
			f.record(mutation{kind: OpWrite, id: h.node.id, off: off, n: n, data: slices.Clone(p[:n]), path: h.name})
		}
		h.node.data.writeAt(p[:n], off)
		f.show(h.node, off, n)
	}
	if n < int64(len(p)) {
		return int(n), h.err("write", vfs.ErrNoSpace)
	}
	return len(p), nil
}

// take charges what a write of n bytes at off needs and returns how many bytes of
// it the capacity allows.
func (f *FS) take(to *node, off, n int64) int64 {
	bytes, chunks := to.data.fits(off, n, f.free())
	f.used += chunks * chunkBytes
	return bytes
}

func (f *FS) free() int64 {
	if f.capacity == 0 {
		return maxFileBytes
	}
	return max(f.capacity-f.used, 0) / chunkBytes
}

// Preallocate reserves all of the range or nothing.
func (h *file) Preallocate(off, n int64) error {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.check(true, off, n); err != nil || n == 0 {
		if err == nil {
			return nil
		}
		return h.err("preallocate", err)
	}
	bytes, chunks := h.node.data.fits(off, n, f.free())
	if bytes < n {
		return h.err("preallocate", vfs.ErrNoSpace)
	}
	f.used += chunks * chunkBytes
	f.record(mutation{kind: OpPreallocate, id: h.node.id, off: off, n: n, path: h.name})
	h.node.data.reserve(off, n)
	return nil
}

// Shorten implements vfs.Shortener. No state after a crash has it: what it took away is there again.
func (h *file) Shorten(n int64) error {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	err := h.check(true, n, 0)
	if data := &h.node.data; err == nil && n < data.size {
		held := data.held
		data.truncate(n)
		f.used -= (held - data.held) * chunkBytes
		return nil
	}
	return h.err("shorten", cmp.Or(err, fs.ErrInvalid))
}

func (h *file) Sync() error {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.check(false, 0, 0); err != nil {
		return h.err("sync", err)
	}
	m := mutation{kind: OpSync, id: h.node.id, path: h.name}
	var err error
	if f.failSync != nil {
		err = f.failSync(h.name)
	}
	if err != nil {
		m.kind = OpSyncFailed
		err = h.err("sync", err)
	}
	f.record(m)
	return err
}

func (h *file) Size() (int64, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	if err := h.check(false, 0, 0); err != nil {
		return 0, h.err("size", err)
	}
	return h.node.data.size, nil
}

func (h *file) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed.Swap(true) {
		return h.err("close", fs.ErrClosed)
	}
	h.node.handles--
	h.fs.release(h.node)
	return nil
}
