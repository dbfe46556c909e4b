package memfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cairndb/cairn/vfs"
)

// Errors that package io/fs has no name for. They come wrapped in *fs.PathError.
var (
	errNotDir   = errors.New("not a directory")
	errNotEmpty = errors.New("directory not empty")
	errTooLarge = errors.New("file too large")
)

const rootID = 1

// FS is a file system in memory. The zero FS is not usable; see New.
type FS struct {
	mu       sync.RWMutex
	root     *node
	nextID   uint64
	capacity int64 // bytes; 0: unlimited
	used     int64 // bytes held by all inodes
	failSync func(name string) error
	journal  *Journal // nil: not recording
	maps     bool     // files can be mapped
	mappings []*mapping
}

var _ vfs.FS = (*FS)(nil)

// node is an inode: a file or a directory.
type node struct {
	id      uint64
	data    content          // of a file
	entries map[string]*node // of a directory; nil for a file
	names   int              // directory entries leading here
	handles int              // open files and locks
	lock    lockState
}

func (n *node) dir() bool { return n.entries != nil }

// New returns an empty file system of unlimited capacity, with only the root
// directory "/", which records its journal. Relative names start at the root.
func New() *FS {
	f := newImage(rootID + 1)
	f.journal = newJournal(f, f.settled())
	return f
}

func newImage(nextID uint64) *FS {
	return &FS{root: &node{id: rootID, entries: map[string]*node{}, names: 1}, nextID: nextID}
}

// clean splits name into its elements; the root has none.
func clean(name string) []string {
	p := path.Clean("/" + filepath.ToSlash(name))
	if p == "/" {
		return nil
	}
	return strings.Split(p[1:], "/")
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// walk follows elements from the root.
func (f *FS) walk(elements []string) (*node, error) {
	at := f.root
	for _, e := range elements {
		if !at.dir() {
			return nil, errNotDir
		}
		next, ok := at.entries[e]
		if !ok {
			return nil, fs.ErrNotExist
		}
		at = next
	}
	return at, nil
}

// place is a name that exists or could: a directory and an element in it.
type place struct {
	dir  *node
	name string
	node *node // nil if there is no such entry
}

func (f *FS) find(name string) (place, error) {
	elements := clean(name)
	if len(elements) == 0 {
		return place{}, fs.ErrInvalid // the root has no place
	}
	last := len(elements) - 1
	dir, err := f.walk(elements[:last])
	if err == nil && !dir.dir() {
		err = errNotDir
	}
	if err != nil {
		return place{}, err
	}
	return place{dir, elements[last], dir.entries[elements[last]]}, nil
}

// existing is find for a name that must be there.
func (f *FS) existing(name string) (place, error) {
	p, err := f.find(name)
	if err == nil && p.node == nil {
		err = fs.ErrNotExist
	}
	return p, err
}

// regular is existing for a name that must be a file.
func (f *FS) regular(name string) (*node, error) {
	n, err := f.walk(clean(name))
	if err == nil && n.dir() {
		err = fmt.Errorf("%w but a directory", vfs.ErrNotRegular)
	}
	return n, err
}

func (f *FS) newNode() *node {
	f.nextID++
	return &node{id: f.nextID - 1, names: 1}
}

// release gives the space of a file back that nobody can reach any more.
func (f *FS) release(n *node) {
	if n.names == 0 && n.handles == 0 {
		f.used -= n.data.held * chunkBytes
		n.data = content{}
	}
}

// Create makes a new file; see vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find(name)
	if err == nil && p.node != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return f.open(name, f.create(p, name), true), nil
}

func (f *FS) create(p place, name string) *node {
	n := f.newNode()
	f.record(mutation{kind: OpCreate, id: n.id, dir: p.dir.id, name: p.name, path: name})
	p.dir.entries[p.name] = n
	return n
}

// Open opens a file for reading; see vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return f.openExisting(name, false) }

// OpenReadWrite opens a file for reading and writing; see vfs.FS.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) { return f.openExisting(name, true) }

func (f *FS) openExisting(name string, writable bool) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.regular(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return f.open(name, n, writable), nil
}

// Remove deletes a file or an empty directory; see vfs.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.existing(name)
	if err == nil && p.node.dir() && len(p.node.entries) > 0 {
		err = errNotEmpty
	}
	if err != nil {
		return pathError("remove", name, err)
	}
	f.record(mutation{kind: OpRemove, id: p.node.id, dir: p.dir.id, name: p.name, path: name})
	f.unlink(p)
	return nil
}

func (f *FS) unlink(p place) {
	delete(p.dir.entries, p.name)
	p.node.names--
	f.release(p.node)
}

// Rename replaces newname by oldname in one step; see vfs.FS. A directory can be
// renamed to a new name only, not over another directory.
func (f *FS) Rename(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := f.existing(oldname)
	if err != nil {
		return pathError("rename", oldname, err)
	}
	to, err := f.find(newname)
	if err == nil && to.node == from.node {
		return nil // the same file already, perhaps under two names: nothing moves
	}
	if err == nil {
		err = renamable(from, to)
	}
	if err != nil {
		return pathError("rename", newname, err)
	}
	f.record(mutation{
		kind: OpRename, id: from.node.id, path: oldname, path2: newname,
		dir: from.dir.id, name: from.name, dir2: to.dir.id, name2: to.name,
	})
	if to.node != nil {
		f.unlink(to)
	}
	delete(from.dir.entries, from.name)
	to.dir.entries[to.name] = from.node
	return nil
}

func renamable(from, to place) error {
	if to.node != nil && (to.node.dir() || from.node.dir()) {
		return fs.ErrExist
	}
	if from.node.dir() && contains(from.node, to.dir) {
		return fs.ErrInvalid // a directory cannot move into itself
	}
	return nil
}

func contains(tree, n *node) bool {
	if tree == n {
		return true
	}
	for _, child := range tree.entries {
		if child.dir() && contains(child, n) {
			return true
		}
	}
	return false
}

// Link makes newname another name of the file oldname; see vfs.FS.
func (f *FS) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.regular(oldname)
	if err != nil {
		return pathError("link", oldname, err)
	}
	to, err := f.find(newname)
	if err == nil && to.node != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return pathError("link", newname, err)
	}
	f.record(mutation{
		kind: OpLink, id: n.id, dir: to.dir.id, name: to.name, path: newname, path2: oldname,
	})
	to.dir.entries[to.name] = n
	n.names++
	return nil
}

// MkdirAll makes a directory and its parents; see vfs.FS. Each new directory is a
// mutation of its own, and durable only with SyncDir of its parent.
func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	elements, at := clean(dir), f.root
	for i, e := range elements {
		next := at.entries[e]
		if next == nil {
			next = f.mkdir(at, e, "/"+path.Join(elements[:i+1]...))
		}
		if !next.dir() {
			return pathError("mkdir", dir, errNotDir)
		}
		at = next
	}
	return nil
}

func (f *FS) mkdir(parent *node, name, full string) *node {
	n := f.newNode()
	n.entries = map[string]*node{}
	f.record(mutation{kind: OpMkdir, id: n.id, dir: parent.id, name: name, path: full})
	parent.entries[name] = n
	return n
}

func (f *FS) directory(name string) (*node, error) {
	n, err := f.walk(clean(name))
	if err == nil && !n.dir() {
		err = errNotDir
	}
	return n, err
}

// List returns the sorted names of a directory's entries; see vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.directory(dir)
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	return slices.Sorted(maps.Keys(n.entries)), nil
}

// Stat describes a file or directory; see vfs.FS. Allocated counts 4 KiB pieces
// that were written or preallocated.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.walk(clean(name))
	if err != nil {
		return vfs.FileInfo{}, pathError("stat", name, err)
	}
	return vfs.FileInfo{Size: n.data.size, Allocated: n.data.held * chunkBytes, Dir: n.dir()}, nil
}

// SyncDir makes the entries of dir durable; see vfs.FS.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.directory(dir)
	if err != nil {
		return pathError("syncdir", dir, err)
	}
	f.record(mutation{kind: OpSyncDir, dir: n.id, path: dir})
	return nil
}
