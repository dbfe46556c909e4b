package vfstest

import (
	"bytes"
	"errors"
	"io/fs"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
)

// watchLock: whoever watches a lock file sees its holder come, share and go, and never is in the way.
func lockWatched(x *fixture) {
	w, ok := x.fs.(vfs.Watcher)
	if !ok {
		x.Skip("the file system is no vfs.Watcher")
	}
	name := x.path("LOCK")
	if _, err := w.Watch(name); !errors.Is(err, fs.ErrNotExist) {
		x.Fatalf("Watch of a missing file: %v", err)
	}
	first := x.lock("LOCK", false)
	watch, err := w.Watch(name)
	if errors.Is(err, errors.ErrUnsupported) {
		x.Skip(err)
	}
	x.ok(err)
	holder := func(want vfs.Holder, what string) {
		x.Helper()
		if h, err := watch.Holder(); err != nil || h != want {
			x.Fatalf("%s: holder %v, %v", what, h, err)
		}
	}
	turn := func() uint64 { return arena.Words(watch.Bytes())[0].Load() }
	zeros := make([]byte, vfs.SharedBytes-8)
	nothing := func(what string) {
		x.Helper()
		if got := watch.Bytes()[8:]; !bytes.Equal(got, zeros) {
			x.Fatalf("%s: %x is shared", what, got)
		}
	}
	holder(vfs.Holds, "held")
	nothing("held")
	was := turn()
	shared, err := first.(vfs.Sharer).Share()
	x.ok(err)
	arena.Words(shared)[1].Store(0x0102030405060708)
	arena.Words(shared)[vfs.SharedBytes/8-1].Store(9)
	if got := arena.Words(watch.Bytes()); turn() != was || got[1].Load() != 0x0102030405060708 || got[len(got)-1].Load() != 9 {
		x.Fatalf("shared words are seen as %x", watch.Bytes())
	}
	again, err := first.(vfs.Sharer).Share()
	x.ok(err)
	if !bytes.Equal(again, shared) {
		x.Fatal("the second Share is other memory")
	}
	x.ok(first.Close())
	holder(vfs.Nobody, "let go")
	if turn() != was {
		x.Fatalf("the first word was %x and is %x once the lock is let go", was, turn())
	}

	second := x.lock("LOCK", false)
	holder(vfs.Holds, "held again")
	nothing("held again")
	if turn() == was {
		x.Fatalf("two holders have the first word %x", was)
	}
	shared, err = second.(vfs.Sharer).Share()
	x.ok(err)
	arena.Words(shared)[1].Store(7)
	if arena.Words(watch.Bytes())[1].Load() != 7 {
		x.Fatal("what the next holder shares is not seen")
	}
	x.ok(second.Close())
	x.ok(watch.Close())
	x.lockUnwatched()
}

// lockUnwatched: nobody is in the way of the next holder, and a shared one shows nothing.
func (x *fixture) lockUnwatched() {
	x.Helper()
	third := x.lock("LOCK", false)
	x.ok(third.Close())
	reader := x.lock("LOCK", true)
	if s, ok := reader.(vfs.Sharer); ok {
		if _, err := s.Share(); err == nil {
			x.Fatal("a shared lock has shared memory")
		}
	}
}
