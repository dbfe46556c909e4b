package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRefusedTriesAgain: what kept an opener from the lock was somebody else who was refused it, and shared it for an instant
// to find out whom to name. The lock is free, and the opener gets it.
func TestRefusedTriesAgain(t *testing.T) {
	for _, shared := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "LOCK")
		f, asks := openLocks(t, name)
		if err := lockHandle(asks, !shared); err != nil {
			t.Fatal(err)
		}
		if err := lockHandle(f, shared); !errors.Is(err, errHeld) {
			t.Fatal(err)
		}
		if err := unlockHandle(asks); err != nil {
			t.Fatal(err)
		}
		if err := lockRefused(f, name, shared); err != nil {
			t.Fatalf("shared %v: nobody holds it: %v", shared, err)
		}
		if err := lockHandle(asks, false); !errors.Is(err, errHeld) {
			t.Fatalf("shared %v: it was not taken: %v", shared, err)
		}
	}
}

// TestRefusedWhileHeld: whoever tries again does not get what is held, by one who signs or by those who share it.
func TestRefusedWhileHeld(t *testing.T) {
	for _, c := range []struct {
		shared bool
		pid    int
	}{{false, os.Getpid()}, {true, 0}} {
		name := filepath.Join(t.TempDir(), "LOCK")
		f, _ := openLocks(t, name)
		held, err := OS().Lock(name, c.shared)
		if err != nil {
			t.Fatal(err)
		}
		e := (*LockedError)(nil)
		if err := lockRefused(f, name, false); !errors.As(err, &e) || e.PID != c.pid {
			t.Errorf("shared %v: %v, want process %d", c.shared, err, c.pid)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// openLocks opens a lock file twice.
func openLocks(t *testing.T, name string) (first, second *os.File) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		f, err := openLock(name, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i] = f
	}
	return files[0], files[1]
}
