package wal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const aheadSize = 2 << 20

// linked makes a segment whose link is in the file.
func linked(t *testing.T, fsys vfs.FS) *Segment {
	t.Helper()
	s := create(t, fsys, 1, aheadSize)
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	return s
}

// long appends a commit of one put of n random bytes, in three parts as the engine gives them.
func long(s *Segment, seq uint64, n int) {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	entry := frame.AppendEntry(nil, base.KindPut, []byte("\x00long"), value)
	cut := len(entry) - n
	s.Append(frame.Header{Kind: frame.KindCommit, Seq: seq, Count: 1}, entry[:cut], entry[cut:cut+n/3], entry[cut+n/3:])
}

// content returns what is in the file of a segment.
func content(t *testing.T, fsys vfs.FS, s *Segment) []byte {
	t.Helper()
	f, err := fsys.Open(s.name)
	check(t, err)
	defer f.Close()
	data := make([]byte, len(s.buf))
	_, err = f.ReadAt(data, 0)
	check(t, err)
	return data
}

// inFile checks that all of the frames are in the file.
func inFile(t *testing.T, fsys vfs.FS, s *Segment) {
	t.Helper()
	tail := s.tail.Load()
	if !bytes.Equal(content(t, fsys, s)[:tail], s.buf[:tail]) {
		t.Error("the file is not what the arena is")
	}
}

// written counts the bytes of all writes.
type written struct {
	vfs.FS
	bytes int
}

type writtenFile struct {
	vfs.File
	w *written
}

func (w *written) Create(name string) (vfs.File, error) {
	f, err := w.FS.Create(name)
	return writtenFile{f, w}, err
}

func (f writtenFile) WriteAt(p []byte, off int64) (int, error) {
	f.w.bytes += len(p)
	return f.File.WriteAt(p, off)
}

// A long frame is in the file but for its first and last page when Append returns, and nothing
// of it is written twice.
func TestLongFramesGoAhead(t *testing.T) {
	w := &written{FS: memfs.New()}
	s := create(t, w, 1, aheadSize)
	made := w.bytes
	s.Link(0, 0, 0)
	commit(s, 1, 0, "a")
	long(s, 2, AheadBytes/2)
	if w.bytes > made {
		t.Errorf("%d bytes were written ahead of a short frame", w.bytes-made)
	}
	check(t, s.WriteOut())
	for round := range uint64(2) { // one WriteOut for both, and what is around them
		at, begun := w.bytes, int(s.tail.Load())
		long(s, 3+4*round, AheadBytes*3/2)
		if ahead := w.bytes - at; ahead < AheadBytes || ahead > AheadBytes*3/2 {
			t.Errorf("%d bytes were written ahead", ahead)
		}
		commit(s, 4+4*round, 0, "b")
		long(s, 5+4*round, AheadBytes)
		commit(s, 6+4*round, 0, "c")
		check(t, s.WriteOut())
		inFile(t, w, s)
		if n := w.bytes - at; n != int(s.tail.Load())-begun {
			t.Errorf("%d bytes were written, of %d", n, int(s.tail.Load())-begun)
		}
	}
	b := newBuilder(t)
	b.segs = []*Segment{s}
	keys, r, err := b.replay([][]byte{content(t, w, s)}, 0)
	if want := []string{"a", "long", "long", "b", "long", "c", "long", "b", "long", "c"}; err != nil || r.Dropped != 0 || !slices.Equal(keys, want) {
		t.Errorf("%v, %v", keys, err)
	}
}

// Until the frame is written out the log ends before it, and more so in a file that was used before.
func TestWhatWentAheadIsNoFrame(t *testing.T) {
	for _, again := range []bool{false, true} {
		fsys := memfs.New()
		s := create(t, fsys, 1, aheadSize)
		if again {
			long(s, 1, AheadBytes)
			check(t, s.WriteOut())
			check(t, s.Sync())
			var err error
			s, err = Reuse(fsys, s.Retire(), "000002.log", 2, storeID, make([]byte, aheadSize))
			check(t, err)
		}
		s.Link(0, 0, 0)
		commit(s, 1, 0, "a")
		check(t, s.WriteOut())
		long(s, 2, AheadBytes)
		b := newBuilder(t)
		b.segs = []*Segment{s}
		keys, r, err := b.replay([][]byte{content(t, fsys, s)}, 0)
		if err != nil || !slices.Equal(keys, []string{"a"}) || again && r.Dropped != 0 {
			t.Errorf("used again %v: %v, %d bytes dropped, %v", again, keys, r.Dropped, err)
		}
		check(t, s.WriteOut())
		inFile(t, fsys, s)
	}
}

// What cannot be written ahead is written by WriteOut, which tells if it cannot be written either.
func TestGoingAheadFails(t *testing.T) {
	for at := int64(1); at < 4; at++ {
		fsys := faultfs.New(memfs.New())
		s := linked(t, fsys)
		rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, At: at, Sticky: true, Do: faultfs.Short(faultfs.Half, syscall.EIO)})
		long(s, 1, 4*AheadBytes)
		if err := s.WriteOut(); !errors.Is(err, syscall.EIO) {
			t.Errorf("write %d fails: %v", at, err)
		}
		rule.Stop()
		check(t, s.WriteOut())
		inFile(t, fsys, s)
	}
}

// What was given up may stand in the file; what is appended in its place is written.
func TestWhatWentAheadIsGivenUp(t *testing.T) {
	fsys := memfs.New()
	s := linked(t, fsys)
	long(s, 1, 3*AheadBytes)
	s.Abandon()
	for seq := range uint64(5) {
		long(s, 1+seq, AheadBytes/2)
	}
	long(s, 6, AheadBytes)
	check(t, s.WriteOut())
	inFile(t, fsys, s)
}

// A round writes what was there when it began, though a frame goes ahead meanwhile.
func TestGoingAheadOfARound(t *testing.T) {
	fsys := memfs.New()
	s := linked(t, fsys)
	commit(s, 1, 0, "a")
	from, to := s.written.Load(), s.tail.Load()
	long(s, 2, 2*AheadBytes)
	check(t, s.write(from, to))
	s.written.Store(to)
	if header := content(t, fsys, s)[to : to+frame.HeaderBytes]; !bytes.Equal(header, make([]byte, frame.HeaderBytes)) {
		t.Error("the round has written a header appended after it began")
	}
	check(t, s.WriteOut())
	inFile(t, fsys, s)
}
