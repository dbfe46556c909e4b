package wal

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const fillSize = 600 << 10 // three pieces, the last one smaller

func never() bool { return false }

// Filling changes nothing that can be read, and syncs each piece if it is to.
func TestFill(t *testing.T) {
	for _, sync := range []bool{true, false} {
		disk := memfs.New()
		fsys := faultfs.New(disk)
		s := create(t, fsys, 1, fillSize)
		before, err := disk.ReadFile("000001.log")
		check(t, err)
		writes := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Sticky: true})
		syncs := fsys.Add(faultfs.Rule{Kinds: faultfs.Sync, Sticky: true})
		check(t, s.Fill(sync, never))
		after, err := disk.ReadFile("000001.log")
		check(t, err)
		if !bytes.Equal(before, after) || len(after) != fillSize {
			t.Errorf("the file has changed: %d bytes, then %d", len(before), len(after))
		}
		if want := map[bool]int64{true: 3}[sync]; int64(writes.Seen()) != 3 || int64(syncs.Seen()) != want {
			t.Errorf("sync %v: %d writes, %d syncs", sync, writes.Seen(), syncs.Seen())
		}
		s.Link(0, 0, 0)
		commit(s, 1, 0, "a", "b")
		check(t, s.WriteOut())
		check(t, s.Sync())
		if tail, _ := s.Tail(); s.Synced() != tail {
			t.Errorf("synced to %v of %v", s.Synced(), tail)
		}
	}
}

// Whoever waits for the segment does not wait for the zeros.
func TestFillStops(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	s := create(t, fsys, 1, fillSize)
	writes := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Sticky: true})
	pieces := 0
	check(t, s.Fill(true, func() bool { pieces++; return pieces > 2 }))
	if writes.Seen() != 2 {
		t.Errorf("%d pieces written, want 2", writes.Seen())
	}
}

// Where space cannot be reserved the file is zeros already.
func TestNothingIsFilledTwice(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	fsys.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Sticky: true, Do: faultfs.Fail(errors.ErrUnsupported)})
	s := create(t, fsys, 1, fillSize)
	writes := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Sticky: true})
	check(t, s.Fill(true, never))
	if writes.Seen() != 0 {
		t.Errorf("%d writes", writes.Seen())
	}
}

func TestFillReportsFailures(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.Write, faultfs.Sync} {
		fsys := faultfs.New(memfs.New())
		s := create(t, fsys, 1, fillSize)
		fsys.Add(faultfs.Rule{Kinds: kind, At: 2, Do: faultfs.Fail(syscall.EIO)})
		if err := s.Fill(true, never); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// Where nothing is synced only the beginning is filled: the rest may never be used.
func TestFillWithoutSyncIsShort(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	s := create(t, fsys, 1, 4*firstFill)
	writes := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Sticky: true})
	for range 2 {
		check(t, s.Fill(false, never))
	}
	if want := firstFill / len(zeros); int(writes.Seen()) != want {
		t.Errorf("%d pieces written, want %d", writes.Seen(), want)
	}
	check(t, s.Fill(true, never))
	if want := 4 * firstFill / len(zeros); int(writes.Seen()) != want {
		t.Errorf("%d pieces written with syncs, want %d", writes.Seen(), want)
	}
}
