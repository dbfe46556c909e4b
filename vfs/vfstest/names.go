package vfstest

import (
	"io/fs"
	"slices"
)

func removeFile(x *fixture) {
	f := x.create("a", "abc")
	x.ok(f.Close())
	x.ok(x.fs.Remove(x.path("a")))
	_, err := x.fs.Open(x.path("a"))
	x.fails(err, fs.ErrNotExist, "Open after Remove")
	err = x.fs.Remove(x.path("a"))
	x.fails(err, fs.ErrNotExist, "Remove again")
	x.named(err, x.path("a"))
	x.create("a", "new")
	x.holds("a", "new")
}

func removeOpenFile(x *fixture) {
	f := x.create("a", "abc")
	x.ok(x.fs.Remove(x.path("a")))
	if got := x.bytes(f); got != "abc" {
		x.Fatalf("removed file reads %q", got)
	}
	x.write(f, "X", 1)
	x.ok(f.Sync())
	if got := x.bytes(f); got != "aXc" {
		x.Fatalf("removed file reads %q", got)
	}
	if names, err := x.fs.List(x.dir); err != nil || len(names) != 0 {
		x.Fatalf("%v, %v", names, err)
	}
}

func removeDirectory(x *fixture) {
	x.ok(x.fs.MkdirAll(x.path("d")))
	f := x.create("d/a", "")
	x.ok(f.Close())
	if x.fs.Remove(x.path("d")) == nil {
		x.Fatal("removed a directory that is not empty")
	}
	x.ok(x.fs.Remove(x.path("d", "a")))
	x.ok(x.fs.Remove(x.path("d")))
	_, err := x.fs.Stat(x.path("d"))
	x.fails(err, fs.ErrNotExist, "Stat")
}

func renameReplaces(x *fixture) {
	f := x.create("a", "new")
	old := x.create("b", "old")
	x.ok(x.fs.Rename(x.path("a"), x.path("b")))
	x.holds("b", "new")
	_, err := x.fs.Open(x.path("a"))
	x.fails(err, fs.ErrNotExist, "Open of the old name")
	if got := x.bytes(old); got != "old" {
		x.Fatalf("the replaced file reads %q", got)
	}
	x.write(f, "N", 0)
	x.holds("b", "New")
}

func renameOntoItself(x *fixture) {
	x.create("a", "abc")
	x.ok(x.fs.Rename(x.path("a"), x.path("a")))
	x.holds("a", "abc")
	x.ok(x.fs.Link(x.path("a"), x.path("b")))
	x.ok(x.fs.Rename(x.path("a"), x.path("b")))
	x.holds("b", "abc")
}

func renameMissing(x *fixture) {
	x.create("b", "b")
	x.fails(x.fs.Rename(x.path("a"), x.path("b")), fs.ErrNotExist, "Rename of a missing file")
	x.fails(x.fs.Rename(x.path("b"), x.path("none", "b")), fs.ErrNotExist, "Rename into a missing directory")
	x.holds("b", "b")
}

func renameDirectory(x *fixture) {
	x.ok(x.fs.MkdirAll(x.path("d", "e")))
	f := x.create("d/e/a", "abc")
	x.ok(f.Close())
	x.ok(x.fs.Rename(x.path("d"), x.path("z")))
	x.holds("z/e/a", "abc")
	if x.fs.Rename(x.path("z"), x.path("z", "e", "z")) == nil {
		x.Fatal("a directory moved into itself")
	}
	x.create("f", "")
	if x.fs.Rename(x.path("f"), x.path("z")) == nil {
		x.Fatal("a file replaced a directory")
	}
}

func linkSharesBytes(x *fixture) {
	f := x.create("a", "abc")
	x.ok(x.fs.Link(x.path("a"), x.path("b")))
	x.write(f, "X", 0)
	x.holds("b", "Xbc")
	x.ok(x.fs.Remove(x.path("a")))
	x.holds("b", "Xbc")
}

func linkRefuses(x *fixture) {
	x.create("a", "a")
	x.create("b", "b")
	x.fails(x.fs.Link(x.path("a"), x.path("b")), fs.ErrExist, "Link over a file")
	x.fails(x.fs.Link(x.path("none"), x.path("c")), fs.ErrNotExist, "Link of a missing file")
	x.holds("b", "b")
	x.ok(x.fs.MkdirAll(x.path("d")))
	if x.fs.Link(x.path("d"), x.path("e")) == nil {
		x.Fatal("linked a directory")
	}
}

func mkdirAll(x *fixture) {
	x.ok(x.fs.MkdirAll(x.path("d", "e", "f")))
	x.ok(x.fs.MkdirAll(x.path("d", "e")))
	info, err := x.fs.Stat(x.path("d", "e", "f"))
	x.ok(err)
	if !info.Dir {
		x.Fatalf("%+v", info)
	}
	x.create("a", "")
	if x.fs.MkdirAll(x.path("a")) == nil || x.fs.MkdirAll(x.path("a", "b")) == nil {
		x.Fatal("made a directory in the place of a file")
	}
}

func list(x *fixture) {
	for _, name := range []string{"b", "a", "c"} {
		x.create(name, "")
	}
	x.ok(x.fs.MkdirAll(x.path("bb", "inner")))
	names, err := x.fs.List(x.dir)
	x.ok(err)
	if !slices.Equal(names, []string{"a", "b", "bb", "c"}) {
		x.Fatalf("%q", names)
	}
	_, err = x.fs.List(x.path("none"))
	x.fails(err, fs.ErrNotExist, "List of a missing directory")
	if _, err := x.fs.List(x.path("a")); err == nil {
		x.Fatal("listed a file")
	}
}

func stat(x *fixture) {
	x.create("a", "abc")
	info, err := x.fs.Stat(x.path("a"))
	x.ok(err)
	if info.Size != 3 || info.Dir {
		x.Fatalf("%+v", info)
	}
	info, err = x.fs.Stat(x.dir)
	x.ok(err)
	if !info.Dir {
		x.Fatalf("%+v", info)
	}
	_, err = x.fs.Stat(x.path("none"))
	x.fails(err, fs.ErrNotExist, "Stat")
	x.named(err, x.path("none"))
}

func syncDirectory(x *fixture) {
	x.create("a", "")
	x.ok(x.fs.SyncDir(x.dir))
	x.fails(x.fs.SyncDir(x.path("none")), fs.ErrNotExist, "SyncDir of a missing directory")
	if x.fs.SyncDir(x.path("a")) == nil {
		x.Fatal("SyncDir of a file")
	}
}
