package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// onDisk makes a segment in a real file.
func onDisk(t *testing.T, size int) (*Segment, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), base.FileName(base.FileLog, 1))
	s, err := Create(vfs.OS(), name, 1, storeID, make([]byte, size))
	check(t, err)
	t.Cleanup(func() { s.Close() })
	s.Link(0, 0, 0)
	switch {
	case s.win.file != nil:
	case runtime.GOOS == "linux" && s.fill == 0:
		t.Fatal("a segment whose space is reserved is not mapped: ", name)
	default:
		t.Skip("SKIPPED: only reserved segments on Linux are mapped, this one is not: ", name)
	}
	return s, name
}

// same fails unless the file has what was appended, and zeros behind it.
func same(t *testing.T, s *Segment, name string) {
	t.Helper()
	got, err := os.ReadFile(name)
	check(t, err)
	tail, _ := s.Tail()
	if !bytes.Equal(got[:tail.Offset()], s.Buffer()[:tail.Offset()]) {
		t.Fatal("the file differs from the arena")
	}
	if len(bytes.TrimRight(got[tail.Offset():], "\x00")) > 0 || len(got) != s.Capacity() {
		t.Fatalf("a file of %d bytes, want %d, zero from %d on", len(got), s.Capacity(), tail.Offset())
	}
}

// Writes through the mapping, in place of it and across its ends are in the file when
// WriteOut returns, for everybody who reads it.
func TestMappedWrites(t *testing.T) {
	s, name := onDisk(t, 3*windowBytes+4096)
	r := rand.New(rand.NewPCG(1, 1))
	mapped, windows, last := 0, 0, int64(-1)
	for i := 0; ; i++ {
		n := 1 + r.IntN(300)
		if r.IntN(20) == 0 {
			n = r.IntN(3 * mostMapped)
		}
		key := fmt.Sprintf("%0*d", n, i)
		if !s.Room(len(key)*2 + 64) {
			break
		}
		commit(s, uint64(i+1), 0, key)
		check(t, s.WriteOut(r.IntN(10) == 0))
		if s.win.b != nil {
			mapped++
			if s.win.at != last {
				windows, last = windows+1, s.win.at
			}
		}
		if i%500 == 0 {
			same(t, s, name)
		}
	}
	same(t, s, name)
	if mapped < 1000 || windows < 3 {
		t.Errorf("%d times there was a mapping, %d different ones", mapped, windows)
	}
	check(t, s.Sync())
	check(t, s.Close())
	if s.win.b != nil || s.win.file != nil {
		t.Error("still mapped")
	}
}

// Zeros are written ahead of what is stored, ever more of them at a time, and only of that.
func TestZerosGoAhead(t *testing.T) {
	s, name := onDisk(t, 600<<10)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut(true))
	if s.fill != 0 {
		t.Errorf("filled to %d by a write that is not mapped", s.fill)
	}
	for i, want := range []int64{16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 384 << 10, 512 << 10, 600 << 10} {
		for last := int64(0); s.Room(2 << 10); last = s.fill {
			if tail, _ := s.Tail(); tail.Offset() > want-4<<10 {
				break
			}
			commit(s, 2, 0, "b")
			check(t, s.WriteOut(false))
			if s.fill != want || last != 0 && last != want {
				t.Fatalf("piece %d: filled to %d, then %d, want %d", i, last, s.fill, want)
			}
		}
		for i := 0; i < 2 && s.Room(2*mostMapped+64); i++ { // written across the end of the piece
			commit(s, 3, 0, string(make([]byte, mostMapped)))
		}
		check(t, s.WriteOut(false))
		same(t, s, name)
	}
}

// Zeros go ahead of what is too long for the mapping, too, in several pieces if need be, but
// not of the first commit, nor of what is longer than a piece or synced next.
func TestZerosGoAheadOfLongerWrites(t *testing.T) {
	s, name := onDisk(t, 1<<20)
	for i, step := range []struct {
		bytes int
		sync  bool
		fill  int64
	}{
		{10 << 10, false, 0},
		{10 << 10, false, 32 << 10},
		{80 << 10, false, 128 << 10},
		{mostPiece + 1<<10, false, 128 << 10},
		{30 << 10, true, 128 << 10},
		{5 << 10, false, 384 << 10},
	} {
		commit(s, uint64(i+1), 0, string(bytes.Repeat([]byte("v"), step.bytes/2-100)))
		check(t, s.WriteOut(step.sync))
		if s.fill != step.fill {
			t.Errorf("step %d: filled to %d, want %d", i, s.fill, step.fill)
		}
		same(t, s, name)
	}
}

// What is to be synced is not mapped: a sync protects the pages again.
func TestSyncedWritesAreNotMapped(t *testing.T) {
	s, name := onDisk(t, 64<<10)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut(true))
	if s.win.b != nil {
		t.Error("mapped")
	}
	same(t, s, name)
}

// To store in a file that somebody has cut is a memory fault. It is survived, and the
// bytes are written.
func TestFaultsAreSurvived(t *testing.T) {
	s, name := onDisk(t, 256<<10)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut(false))
	if s.win.b == nil {
		t.Fatal("not mapped")
	}
	check(t, os.Truncate(name, 0))
	before := s.Written()
	commit(s, 2, 0, "b")
	check(t, s.WriteOut(false))
	if s.win.b != nil || s.win.file != nil {
		t.Error("still mapped")
	}
	got, err := os.ReadFile(name)
	check(t, err)
	tail, _ := s.Tail()
	if int64(len(got)) != tail.Offset() || !bytes.Equal(got[before:], s.Buffer()[before:tail.Offset()]) {
		t.Errorf("%d bytes in the file, want %d", len(got), tail.Offset())
	}
	commit(s, 3, 0, "c")
	check(t, s.WriteOut(false))
}

// TestReusedMapped: a file that was used before, and not filled to its end, is stored to
// through the mapping, with zeros going ahead where it was never written. Behind every write
// stands the frame that says that the log ends there.
func TestReusedMapped(t *testing.T) {
	for _, filled := range []int{0, 1, 100} { // commits that filled it before
		s, _ := onDisk(t, 600<<10)
		for i := range filled {
			commit(s, uint64(i+1), 0, "old"+string(make([]byte, 1500)))
			check(t, s.WriteOut(false))
		}
		check(t, s.WriteOut(true))
		check(t, s.Sync())
		u := s.Retire()
		if u == nil || !u.Cached() {
			t.Skip("the file system does not say that the file is in memory")
		}
		name := filepath.Join(filepath.Dir(u.Name()), "000009.log")
		s, err := Reuse(vfs.OS(), u, name, 9, storeID, make([]byte, 600<<10))
		check(t, err)
		t.Cleanup(func() { s.Close() })
		s.Link(0, 0, 0)
		mapped := false
		for seq := uint64(1); s.Room(4 << 10); seq++ {
			size := []int{1, 20, 500, 1900, 3000}[seq%5]
			commit(s, seq, 0, string(make([]byte, size)))
			check(t, s.WriteOut(false))
			mapped = mapped || s.win.b != nil
			got, err := os.ReadFile(name)
			check(t, err)
			at := s.Written()
			if h, ok := frame.DecodeHeader(got[at:], s.ident, at); !ok || h.Kind != frame.KindEnd {
				t.Fatalf("filled by %d, commit %d of %d bytes, filled to %d: no end at %d: % x", filled, seq, size, s.fill, at, got[at:at+frame.HeaderBytes])
			}
			if !bytes.Equal(got[base.FileHeaderBytes:at], s.Buffer()[base.FileHeaderBytes:at]) {
				t.Fatalf("filled by %d, commit %d: the file holds something else", filled, seq)
			}
		}
		if !mapped {
			t.Error("never mapped")
		}
	}
}
