package memfs

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
)

// mapping is a part of a file that somebody stores to. It implements vfs.Mapping.
type mapping struct {
	fs   *FS
	node *node
	name string // for Op
	off  int64
	mem  []byte
	n    int // bytes of mem that are the file's
}

// AllowMaps makes files implement vfs.Mapper from now on. What was stored is noticed by the next
// call that changes the file system or looks at the file or the journal: then it becomes
// writes, one for each page of 4 KiB, which a power cut may lose, tear and reorder as any others.
func (f *FS) AllowMaps() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.maps = true
}

// Map implements vfs.Mapper. Without AllowMaps it returns errors.ErrUnsupported.
func (h *file) Map(off int64, n int) (vfs.Mapping, error) {
	f := h.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.maps {
		return nil, h.err("map", errors.ErrUnsupported)
	}
	err := h.check(true, off, int64(n))
	if err == nil && (n == 0 || off+int64(n) > h.node.data.size) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, h.err("map", err)
	}
	mem, err := arena.Map(n)
	if err != nil {
		return nil, h.err("map", err)
	}
	m := &mapping{fs: f, node: h.node, name: h.name, off: off, mem: mem, n: n}
	h.node.data.readAt(mem[:n], off)
	h.node.handles++
	f.mappings = append(f.mappings, m)
	return m, nil
}

// Bytes implements vfs.Mapping.
func (m *mapping) Bytes() []byte { return m.mem[:m.n] }

// LetGo implements vfs.Mapping: there is nothing to let go of.
func (m *mapping) LetGo(int64, int64) {}

// Unmap implements vfs.Mapping.
func (m *mapping) Unmap() error {
	f := m.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	f.mappings = slices.DeleteFunc(f.mappings, func(o *mapping) bool { return o == m })
	m.node.handles--
	f.release(m.node)
	return arena.Unmap(m.mem)
}

// notice makes writes of what was stored since the last time. f.mu is held.
func (f *FS) notice() {
	for _, m := range f.mappings {
		var now [chunkBytes]byte
		for at := int64(0); at < int64(len(m.mem)); at += chunkBytes {
			i := (m.off + at) / chunkBytes
			if m.off+at >= m.node.data.size {
				break
			}
			old := zeroChunk
			if c := m.node.data.chunks[i]; c != nil {
				old = c
			}
			page := m.mem[at:min(at+chunkBytes, int64(len(m.mem)))]
			if bytes.Equal(page, old.data[:len(page)]) {
				continue
			}
			n := copy(now[:], page) // somebody may be storing
			lo, hi := 0, n
			for lo < hi && now[lo] == old.data[lo] {
				lo++
			}
			for hi > lo && now[hi-1] == old.data[hi-1] {
				hi--
			}
			off, data := m.off+at+int64(lo), slices.Clone(now[lo:hi])
			f.note(mutation{kind: OpWrite, id: m.node.id, off: off, n: int64(len(data)), data: data, path: m.name})
			m.node.data.writeAt(data, off)
		}
	}
}

// show shows in the mappings of a file what n bytes of it at off are now. f.mu is held.
func (f *FS) show(n *node, off, length int64) {
	for _, m := range f.mappings {
		from, to := max(off, m.off), min(off+length, m.off+int64(len(m.mem)))
		if m.node == n && from < to {
			n.data.readAt(m.mem[from-m.off:to-m.off], from)
		}
	}
}

// look locks f for reading, with everything noticed that was stored, and returns what unlocks it.
func (f *FS) look() (unlock func()) {
	f.mu.RLock()
	if len(f.mappings) == 0 {
		return f.mu.RUnlock
	}
	f.mu.RUnlock()
	f.mu.Lock()
	f.notice()
	return f.mu.Unlock
}
