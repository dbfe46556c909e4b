package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSyncReachesTheSystem: procfs cannot sync and says so. A Sync or SyncDir that
// asked nobody would report success.
func TestSyncReachesTheSystem(t *testing.T) {
	f, err := OS().Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Sync: %v", err)
	}
	if err := OS().SyncDir("/proc"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("SyncDir: %v", err)
	}
}

func TestPreallocateUnsupported(t *testing.T) {
	f, err := OS().OpenReadWrite("/proc/self/comm")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := f.Preallocate(0, 4096); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
}

// TestReplacedLockFileIsNoticed: somebody removed the lock file after we opened it
// and before we locked it; a second store may hold the new one.
func TestReplacedLockFileIsNoticed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	f, err := openLock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	l := &osLock{f: f}
	defer l.Close()
	if err := l.check(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := l.check(name); !errors.Is(err, errReplaced) {
		t.Fatalf("removed: %v", err)
	}
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.check(name); !errors.Is(err, errReplaced) {
		t.Fatalf("replaced: %v", err)
	}
}

// TestLockWithRemovers: openers that remove the lock file before they
// let go never make two holders.
func TestLockWithRemovers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	holders := make(chan struct{}, 1)
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 200 {
				l, err := OS().Lock(name, false)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case holders <- struct{}{}:
				default:
					t.Error("two holders")
				}
				_ = os.Remove(name)
				<-holders
				_ = l.Close()
			}
		}()
	}
	for range 4 {
		<-done
	}
}

// TestCloseUnlocksCopies: a child forked while the lock was held has a copy of the
// descriptor until it executes its program.
func TestCloseUnlocksCopies(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	l, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	held := l.(*osLock)
	fd, err := unix.Dup(int(held.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestLockOnFullDisk: a full disk must not keep a store from being opened.
func TestLockOnFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := (&osLock{f: f}).sign(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := (&osLock{f: r}).sign(); err == nil {
		t.Fatal("an error other than a full disk is passed over")
	}
}
