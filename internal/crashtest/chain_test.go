package crashtest

import (
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs/memfs"
)

// put appends a commit frame to a file in memory and returns its checksum.
func put(b []byte, id frame.Identity, prev uint32, seq uint64, payload string) ([]byte, uint32) {
	off := int64(len(b))
	dst := make([]byte, frame.PaddedBytes(len(payload)))
	copy(dst[frame.HeaderBytes:], payload)
	h := frame.Put(dst, id, off, len(payload), frame.Header{Kind: frame.KindCommit, Prev: prev, Seq: seq, Durable: 77, Count: 1})
	return append(b, dst...), h.Sum
}

// TestFrames flips every bit of a frame, and puts it where it does not belong.
func TestFrames(t *testing.T) {
	id := frame.NewIdentity(base.NewID())
	good, _ := put(nil, id, 5, 9, "thirteen bytes")
	if _, _, ok := frame.Decode(good, id, 0); !ok {
		t.Fatal("a good frame is refused")
	}
	for bit := range 8 * len(good) {
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, ok := frame.Decode(bad, id, 0); ok {
			t.Errorf("bit %d flipped: accepted", bit)
		}
		if _, ok := frame.DecodeHeader(bad, id, 0); ok && bit < 8*frame.HeaderBytes {
			t.Errorf("bit %d flipped: header accepted", bit)
		}
	}
	if _, _, ok := frame.Decode(good, id, 8); ok {
		t.Error("accepted at another offset")
	}
	if _, _, ok := frame.Decode(good, frame.NewIdentity(base.NewID()), 0); ok {
		t.Error("accepted in another file")
	}
}

// TestChain puts an intact frame behind one that it was not written after.
func TestChain(t *testing.T) {
	id := frame.NewIdentity(base.NewID())
	one, sum := put(nil, id, 0, 1, "one")
	other, otherSum := put(nil, id, 0, 1, "two")
	if len(one) != len(other) || sum == otherSum {
		t.Fatal("the frames have to differ in content only")
	}
	behind, _ := put(one, id, sum, 2, "behind one")
	for name, c := range map[string]struct {
		first  []byte
		frames int
	}{"its own": {one, 2}, "another": {other, 1}} {
		w := frame.Walker{ID: id, Buf: append(append([]byte(nil), c.first...), behind[len(one):]...)}
		n := 0
		for _, _, ok := w.Next(); ok; _, _, ok = w.Next() {
			n++
		}
		if n != c.frames {
			t.Errorf("behind %s: %d frames, want %d", name, n, c.frames)
		}
	}
}

// segment makes a segment with one commit and returns it with its bytes.
func segment(t *testing.T, disk *memfs.FS, num uint64, store base.ID, end wal.Position, prev uint32) (*wal.Segment, []byte) {
	t.Helper()
	buf := make([]byte, 4096)
	s, err := wal.Create(disk, base.FileName(base.FileLog, num), num, store, buf, false)
	if err != nil {
		t.Fatal(err)
	}
	s.Link(end, 0, prev)
	s.Append(frame.Header{Kind: frame.KindCommit, Seq: num, Count: 1}, []byte("payload"))
	if err := s.WriteOut(); err != nil {
		t.Fatal(err)
	}
	return s, buf
}

func load(t *testing.T, disk *memfs.FS, rec wal.Recorded, store base.ID) (*wal.Loaded, error) {
	t.Helper()
	f, err := disk.Open(base.FileName(base.FileLog, 1))
	if rec.Num == 2 {
		f, err = disk.Open(base.FileName(base.FileLog, 2))
	}
	if err != nil {
		t.Fatal(err)
	}
	return wal.Load(f, "segment", rec, store, make([]byte, 4096))
}

// TestSegmentIdentity loads a segment as one that it is not.
func TestSegmentIdentity(t *testing.T) {
	disk, store := memfs.New(), base.NewID()
	s, _ := segment(t, disk, 1, store, 0, 0)
	for name, c := range map[string]struct {
		rec   wal.Recorded
		store base.ID
		ok    bool
	}{
		"itself":        {wal.Recorded{Num: 1, File: s.File}, store, true},
		"other number":  {wal.Recorded{Num: 3, File: s.File}, store, false},
		"other file id": {wal.Recorded{Num: 1, File: base.NewID()}, store, false},
		"other store":   {wal.Recorded{Num: 1, File: s.File}, base.NewID(), false},
	} {
		if _, err := load(t, disk, c.rec, c.store); (err == nil) != c.ok || err != nil && !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinks replays two segments of which the second claims to follow the first.
func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		move  wal.Position
		xor   uint32
		found int
	}{"right": {0, 0, 2}, "other end": {8, 0, 1}, "other checksum": {0, 1, 1}} {
		disk, store := memfs.New(), base.NewID()
		one, _ := segment(t, disk, 1, store, 0, 0)
		end, sum := one.Tail()
		two, _ := segment(t, disk, 2, store, end+c.move, sum^c.xor)
		var all []*wal.Loaded
		for _, s := range []*wal.Segment{one, two} {
			l, err := load(t, disk, wal.Recorded{Num: s.Num, File: s.File}, store)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		var r wal.Replay
		n := 0
		each := func(frame.Header, int64, []byte) error { n++; return nil }
		err := errors.Join(r.Segment(all[0], all[1], each), r.Segment(all[1], nil, each))
		if err != nil || n != c.found || (r.Dropped > 0) != (c.found < 2) {
			t.Errorf("%s: %d frames, want %d; %d bytes dropped; %v", name, n, c.found, r.Dropped, err)
		}
	}
}
