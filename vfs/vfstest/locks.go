package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/vfs"
)

// locked checks that a lock is refused, at once and saying by whom.
func (x *fixture) locked(name string, shared bool) *vfs.LockedError {
	x.Helper()
	begin := time.Now()
	l, err := x.fs.Lock(x.path(name), shared)
	if err == nil {
		l.Close()
		x.Fatal("the lock was granted twice")
	}
	x.fails(err, vfs.ErrLocked, "Lock")
	e := (*vfs.LockedError)(nil)
	if !errors.As(err, &e) || e.Path != x.path(name) {
		x.Fatalf("%#v is not a LockedError with the path", err)
	}
	if waited := time.Since(begin); waited > time.Second {
		x.Fatalf("the refusal took %v", waited)
	}
	return e
}

func lockExcludes(x *fixture) {
	x.lock("LOCK", false)
	e := x.locked("LOCK", false)
	host, _ := os.Hostname()
	if e.PID != os.Getpid() || e.Host != host || time.Since(e.Since) > time.Minute || time.Until(e.Since) > time.Minute {
		x.Fatalf("%+v", e)
	}
	x.locked("LOCK", true)
}

func lockShared(x *fixture) {
	first, second := x.lock("LOCK", true), x.lock("LOCK", true)
	x.locked("LOCK", false)
	x.ok(first.Close())
	x.locked("LOCK", false)
	x.ok(second.Close())
	x.ok(x.lock("LOCK", false).Close())
	x.lock("LOCK", true)
}

func lockFollowsInode(x *fixture) {
	x.ok(x.fs.MkdirAll(x.path("d")))
	x.lock("d/LOCK", false)
	x.ok(x.fs.Link(x.path("d", "LOCK"), x.path("other")))
	x.locked("other", false)
	x.ok(x.fs.Rename(x.path("d"), x.path("e")))
	x.locked("e/LOCK", false)
}

func lockReleased(x *fixture) {
	l := x.lock("LOCK", false)
	x.ok(l.Close())
	x.ok(l.Close()) // letting go twice must not let go of the next holder's
	x.lock("LOCK", false)
	x.ok(l.Close())
	x.locked("LOCK", false)
}

func lockDirectory(x *fixture) {
	x.ok(x.fs.MkdirAll(x.path("LOCK")))
	for _, shared := range []bool{false, true} {
		_, err := x.fs.Lock(x.path("LOCK"), shared)
		x.fails(err, vfs.ErrNotRegular, "Lock of a directory")
		x.named(err, x.path("LOCK"))
	}
	_, err := x.fs.Lock(x.path("none", "LOCK"), false)
	x.fails(err, fs.ErrNotExist, "Lock in a missing directory")
}

// lockRace: of many openers at once exactly one wins.
func lockRace(x *fixture) {
	for range 10 {
		var won, other atomic.Int32
		var winner atomic.Pointer[io.Closer]
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				l, err := x.fs.Lock(x.path("LOCK"), false)
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(&l)
				case !errors.Is(err, vfs.ErrLocked):
					other.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || other.Load() != 0 {
			x.Fatalf("%d winners, %d other errors", won.Load(), other.Load())
		}
		x.ok((*winner.Load()).Close())
	}
}
