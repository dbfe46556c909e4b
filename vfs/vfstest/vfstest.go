package vfstest

import (
	"io"
	"path"
	"testing"

	"github.com/cairndb/cairn/vfs"
)

// NewFS returns an FS and an existing, empty directory in it for one test.
type NewFS func(t testing.TB) (fs vfs.FS, dir string)

// Run runs the suite against the implementation that newFS makes.
func Run(t *testing.T, newFS NewFS) {
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			fs, dir := newFS(t)
			c.test(&fixture{TB: t, fs: fs, dir: dir})
		})
	}
}

var suite = []struct {
	name string
	test func(*fixture)
}{
	{"CreateIsExclusive", createIsExclusive},
	{"OpenMissing", openMissing},
	{"OpenDirectory", openDirectory},
	{"ReadOnlyHandle", readOnlyHandle},
	{"ReadWrite", readWrite},
	{"ReadPastEnd", readPastEnd},
	{"WriteLeavesHole", writeLeavesHole},
	{"BadOffsets", badOffsets},
	{"ModelOfBytes", modelOfBytes},
	{"ParallelWrites", parallelWrites},
	{"Sync", syncFile},
	{"UseAfterClose", useAfterClose},
	{"Preallocate", preallocate},
	{"Shorten", shorten},
	{"Allocated", allocatedBytes},
	{"RemoveFile", removeFile},
	{"RemoveOpenFile", removeOpenFile},
	{"RemoveDirectory", removeDirectory},
	{"RenameReplaces", renameReplaces},
	{"RenameOntoItself", renameOntoItself},
	{"RenameMissing", renameMissing},
	{"RenameDirectory", renameDirectory},
	{"LinkSharesBytes", linkSharesBytes},
	{"LinkRefuses", linkRefuses},
	{"MkdirAll", mkdirAll},
	{"List", list},
	{"Stat", stat},
	{"SyncDir", syncDirectory},
	{"LockExcludes", lockExcludes},
	{"LockShared", lockShared},
	{"LockFollowsInode", lockFollowsInode},
	{"LockReleased", lockReleased},
	{"LockDirectory", lockDirectory},
	{"LockRace", lockRace},
	{"LockWatched", lockWatched},
}

// fixture is one test's FS with the steps that must succeed.
type fixture struct {
	testing.TB
	fs  vfs.FS
	dir string
}

func (x *fixture) path(elements ...string) string {
	return path.Join(append([]string{x.dir}, elements...)...)
}

func (x *fixture) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *fixture) closing(c io.Closer) {
	x.Cleanup(func() { c.Close() }) // often the second close, whose error says so
}

func (x *fixture) create(name, text string) vfs.File {
	x.Helper()
	f, err := x.fs.Create(x.path(name))
	x.ok(err)
	x.closing(f)
	if text != "" {
		x.write(f, text, 0)
	}
	return f
}

func (x *fixture) write(f vfs.File, text string, off int64) {
	x.Helper()
	n, err := f.WriteAt([]byte(text), off)
	x.ok(err)
	if n != len(text) {
		x.Fatalf("WriteAt wrote %d of %d bytes without an error", n, len(text))
	}
}

func (x *fixture) size(f vfs.File, want int64) {
	x.Helper()
	got, err := f.Size()
	x.ok(err)
	if got != want {
		x.Fatalf("size %d, want %d", got, want)
	}
}

func (x *fixture) bytes(f vfs.File) string {
	x.Helper()
	size, err := f.Size()
	x.ok(err)
	buf := make([]byte, size)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		x.Fatal(err)
	}
	return string(buf[:n])
}

// holds checks what a file holds, opened afresh by name.
func (x *fixture) holds(name, want string) {
	x.Helper()
	f, err := x.fs.Open(x.path(name))
	x.ok(err)
	defer f.Close()
	if got := x.bytes(f); got != want {
		x.Fatalf("%s holds %q, want %q", name, got, want)
	}
}

func (x *fixture) lock(name string, shared bool) io.Closer {
	x.Helper()
	l, err := x.fs.Lock(x.path(name), shared)
	x.ok(err)
	x.closing(l)
	return l
}
