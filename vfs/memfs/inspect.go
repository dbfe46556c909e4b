package memfs

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// SetCapacity limits the bytes that all files together may hold, counted in pieces
// of 4 KiB; 0 means no limit. Beyond it, writes leave the prefix that fits and fail
// with an error matching vfs.IsNoSpace. Space comes back once a file has neither a
// name nor an open handle. Images do not inherit the limit.
func (f *FS) SetCapacity(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity = bytes
}

// Used returns the bytes that count against the capacity.
func (f *FS) Used() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.used
}

// FreeSpace implements vfs.SpaceTeller: what is left of the capacity, if there is one.
func (f *FS) FreeSpace(string) (int64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.capacity == 0 {
		return 0, errors.ErrUnsupported
	}
	return f.free() * chunkBytes, nil
}

// FailSyncs makes Sync of a file fail with what fail returns for the name it was
// opened by, if that is not nil. The bytes pending then are not covered by any
// later Sync either, while reads go on showing them: the way of a page cache after
// a failed fsync. nil ends it. fail must not call the FS.
func (f *FS) FailSyncs(fail func(name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failSync = fail
}

// ReadFile returns a copy of the file's bytes.
func (f *FS) ReadFile(name string) ([]byte, error) {
	defer f.look()()
	n, err := f.regular(name)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return n.data.bytes(), nil
}

// WriteFile gives the file these bytes from outside, making it if need be, on the
// disk itself: they are durable, name and all, and nothing of the file is pending
// any more. Truncate, Corrupt and FlipBit work in the same way on a file's bytes.
func (f *FS) WriteFile(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	p, err := f.find(name)
	if err == nil && p.node != nil && p.node.dir() {
		err = fs.ErrExist
	}
	if err != nil {
		return pathError("write", name, err)
	}
	made := p.node == nil
	if made {
		p.node = f.newNode()
	}
	var c content
	c.writeAt(data, 0)
	f.tamper(p, name, c)
	if made {
		p.dir.entries[p.name] = p.node
	}
	return nil
}

// tamper replaces the bytes of the file at p, and makes them durable.
func (f *FS) tamper(p place, name string, c content) {
	after := c.snapshot()
	f.record(mutation{kind: OpTamper, id: p.node.id, dir: p.dir.id, name: p.name, path: name, after: after})
	f.used += (c.held - p.node.data.held) * chunkBytes
	p.node.data = c
	f.show(p.node, 0, c.size)
}

// change applies edit to a file's bytes from outside.
func (f *FS) change(name string, edit func(c *content) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	if _, err := f.regular(name); err != nil {
		return pathError("change", name, err)
	}
	p, err := f.existing(name)
	if err != nil {
		return pathError("change", name, err)
	}
	c := p.node.data.snapshot()
	if err := edit(&c); err != nil {
		return pathError("change", name, err)
	}
	f.tamper(p, name, c)
	return nil
}

// Truncate makes the file n bytes long, from outside; see WriteFile.
func (f *FS) Truncate(name string, n int64) error {
	return f.change(name, func(c *content) error {
		if n < 0 || n > maxFileBytes {
			return fs.ErrInvalid
		}
		c.truncate(n)
		return nil
	})
}

// Corrupt changes the byte at off by xor, from outside; see WriteFile.
func (f *FS) Corrupt(name string, off int64, xor byte) error {
	return f.change(name, func(c *content) error {
		var b [1]byte
		if off < 0 || c.readAt(b[:], off) == 0 {
			return fs.ErrInvalid
		}
		b[0] ^= xor
		c.writeAt(b[:], off)
		return nil
	})
}

// FlipBit flips one bit, counted from the lowest of the file's first byte, from
// outside; see WriteFile.
func (f *FS) FlipBit(name string, bit int64) error {
	return f.Corrupt(name, bit>>3, 1<<(bit&7))
}

// Files returns the paths of all files, sorted, starting with "/".
func (f *FS) Files() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var names []string
	f.root.visit("/", func(name string, _ *node) { names = append(names, name) })
	slices.Sort(names)
	return names
}

func (n *node) visit(at string, file func(name string, n *node)) {
	for name, child := range n.entries {
		if child.dir() {
			child.visit(path.Join(at, name), file)
		} else {
			file(path.Join(at, name), child)
		}
	}
}

// Hash returns a hash of all names and contents: equal images have equal hashes.
// Preallocation, open handles and locks do not count.
func (f *FS) Hash() uint64 {
	defer f.look()()
	return f.root.hash()
}

// hash adds the entries up, so that their order does not matter.
func (n *node) hash() uint64 {
	if !n.dir() {
		return n.data.hash()
	}
	sum := uint64(len(n.entries)) ^ 0xd1c
	for name, child := range n.entries {
		sum += mix(mix(1, xxhash.Sum64String(name)), child.hash())
	}
	return mix(2, sum)
}

// Clone returns a copy of what f shows now, in which all of it counts as durable.
// It has a journal of its own and no locks. It shares bytes with f until either
// side writes.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	d := f.settled()
	return d.image(nil)
}

// Equal reports whether the two hold the same names and bytes.
func (f *FS) Equal(other *FS) bool {
	mine, theirs := f.snapshotFiles(), other.snapshotFiles()
	return maps.EqualFunc(mine, theirs, func(a, b []byte) bool { return string(a) == string(b) })
}

func (f *FS) snapshotFiles() map[string][]byte {
	defer f.look()()
	files := map[string][]byte{}
	f.root.visit("/", func(name string, n *node) { files[name] = n.data.bytes() })
	return files
}
