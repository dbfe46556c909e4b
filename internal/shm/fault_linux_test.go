//go:build !race

package shm

// The race detector stores in C, where a memory fault ends the process.

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cairndb/cairn/vfs"
)

// TestOwed: what a page does not take is stored when it does, edits included; until then a reader sees what it has seen.
func TestOwed(t *testing.T) {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	memory := page[:vfs.SharedBytes]
	protect := func(how int) {
		if err := unix.Mprotect(page, how); err != nil {
			t.Fatal(err)
		}
	}
	var w Writer
	want := func(settled bool, want Seen) {
		t.Helper()
		if got := w.Settle(); got != settled || !w.Showing() {
			t.Errorf("settled: %v, showing: %v", got, w.Showing())
		}
		if seen, ok := NewReader(memory).Look(); !ok || seen != want {
			t.Errorf("%+v, want %+v", seen, want)
		}
	}
	protect(unix.PROT_READ)
	w.Begin(memory, 1)
	want(false, Seen{})
	protect(unix.PROT_READ | unix.PROT_WRITE)
	want(true, Seen{Seq: 1, Shown: true})
	protect(unix.PROT_READ)
	if w.Show(2, 3) {
		t.Error("a store that failed is shown")
	}
	w.Edited()
	want(false, Seen{Seq: 1, Shown: true})
	protect(unix.PROT_READ | unix.PROT_WRITE)
	want(true, Seen{Seq: 2, End: 3, Edits: 1, Shown: true})
	if !w.Show(4, 5) {
		t.Error("not shown")
	}
	want(true, Seen{Seq: 4, End: 5, Edits: 1, Shown: true})
}

// TestCut: of a file that was cut readers find out by themselves, and nothing is owed.
func TestCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	lock, err := vfs.OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	s, ok := lock.(vfs.Sharer)
	if !ok {
		t.Skip("NOT TESTED: a lock file that is cut: nothing is shared")
	}
	memory, err := s.Share()
	if err != nil {
		t.Skip("NOT TESTED: a lock file that is cut:", err)
	}
	var w Writer
	w.Begin(memory, 1)
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if _, there := NewReader(memory).Look(); there {
		t.Error("a reader has not found out")
	}
	if shown, settled := w.Show(2, 3), w.Settle(); !shown || !settled || w.Showing() {
		t.Errorf("shown: %v, settled: %v, showing: %v", shown, settled, w.Showing())
	}
}
