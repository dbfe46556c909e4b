package wal

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const fillSize = 600 << 10 // three pieces, the last one smaller

func never() bool { return false }

// Filling changes nothing that can be read, and syncs the first zeros if it is to.
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
		if want := map[bool]int64{true: 1, false: 3}[sync]; int64(writes.Seen()) != want || (syncs.Seen() == 1) != sync {
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
	check(t, s.Fill(false, func() bool { pieces++; return pieces > 2 }))
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
		fsys.Add(faultfs.Rule{Kinds: kind, At: 1, Do: faultfs.Fail(syscall.EIO)})
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
}

// zeroed makes a segment of fillSize bytes whose zeros go with its commits, as where somebody waits for it.
func zeroed(t *testing.T, fsys vfs.FS) *Segment {
	s, err := Create(fsys, "000001.log", 1, storeID, make([]byte, fillSize), true)
	check(t, err)
	check(t, s.Fill(true, func() bool { return true }))
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	return s
}

// The first zeros are synced with the header, the others go with commits that come to space where there are none,
// unless they are long; nothing of what is stored is lost to them.
func TestZerosGoWithCommits(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	syncs := fsys.Add(faultfs.Rule{Kinds: faultfs.Sync, Sticky: true})
	s, err := Create(fsys, "000001.log", 1, storeID, make([]byte, fillSize), true)
	check(t, err)
	if s.fill != firstZeros || syncs.Seen() != 1 {
		t.Errorf("%d bytes are filled, by %d syncs", s.fill, syncs.Seen())
	}
	check(t, s.Fill(true, never))
	s.Link(0, 0, 0)
	put := func(until int64, n int) {
		for s.tail.Load() < until && s.Room(n+100) {
			long(s, 1, n)
			check(t, s.WriteOut())
		}
		inFile(t, fsys, s)
	}
	for _, c := range []struct {
		until int64
		n     int
		fill  int64
	}{
		{firstZeros - 4000, 3000, firstZeros},
		{firstZeros, 3000, mostPiece},
		{mostPiece + 10_000, mostZeroed, mostPiece},
		{200_000, 300, 2 * mostPiece},
		{2*mostPiece + 50_000, 300, 3 * mostPiece},
		{fillSize, 300, fillSize},
	} {
		if put(c.until, c.n); s.fill != c.fill {
			t.Errorf("commits of %d bytes up to %d: filled up to %d, want %d", c.n, s.tail.Load(), s.fill, c.fill)
		}
	}
	if syncs.Seen() != 1 {
		t.Errorf("%d syncs", syncs.Seen())
	}
}

// Zeros spare what is on its way of a frame behind the one that they go with.
func TestZerosSpareFramesAhead(t *testing.T) {
	fsys := memfs.New()
	s := create(t, fsys, 1, aheadSize)
	check(t, s.Fill(true, func() bool { return true }))
	s.Link(0, 0, 0)
	for s.tail.Load() < firstZeros {
		long(s, 1, 3000)
		check(t, s.WriteOut())
		s.fill = min(s.fill, firstZeros) // the last one finds none
	}
	long(s, 2, 3000)
	from, to := s.written.Load(), s.tail.Load()
	long(s, 3, AheadBytes)
	check(t, s.write(from, to)) // whoever leads has not seen the long one
	s.written.Store(to)
	check(t, s.WriteOut())
	inFile(t, fsys, s)
}

// Zeros spare the frame that says where the log ends in a file that was used before.
func TestZerosSpareTheEnd(t *testing.T) {
	fsys := memfs.New()
	old := create(t, fsys, 1, fillSize)
	old.Link(0, 0, 0)
	long(old, 1, 3000)
	check(t, old.WriteOut())
	check(t, old.Sync())
	u := &Used{f: old.f, name: old.name, size: old.size, fill: old.written.Load(), ident: old.ident}
	s, err := Reuse(fsys, u, "000002.log", 2, storeID, make([]byte, fillSize))
	check(t, err)
	check(t, s.Fill(true, func() bool { return true }))
	s.Link(0, 0, 0)
	for fill := s.fill; s.fill == fill; { // until zeros have gone with one
		long(s, 1, 3000)
		check(t, s.WriteOut())
	}
	end := content(t, fsys, s)[s.tail.Load():][:frame.HeaderBytes]
	if bytes.Equal(end, make([]byte, len(end))) || !bytes.Equal(end, s.end[:]) {
		t.Errorf("behind the last frame is %x, want %x", end, s.end)
	}
}

// A commit is none the worse for zeros that could not be written.
func TestZerosMayFail(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	s := zeroed(t, fsys)
	for s.tail.Load() < firstZeros-3000 {
		long(s, 1, 3000)
		check(t, s.WriteOut())
	}
	rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, At: 2, Do: faultfs.Fail(syscall.EIO)})
	for range 2 {
		long(s, 1, 3000)
		check(t, s.WriteOut())
		check(t, s.Sync())
	}
	inFile(t, fsys, s)
	if rule.Fired() != 1 || !s.failed || s.Retire() != nil {
		t.Errorf("%d writes failed; the file may be used again: %v", rule.Fired(), !s.failed)
	}
}
