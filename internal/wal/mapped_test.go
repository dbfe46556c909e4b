package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// mappable returns a file system whose files can be mapped.
func mappable() *memfs.FS {
	m := memfs.New()
	m.AllowMaps()
	return m
}

func noBuffer() ([]byte, error) { return nil, errors.New("asked for a buffer") }

func someBuffer() ([]byte, error) { return make([]byte, 64<<10), nil }

// mapped makes a segment that is mapped, and whose link is appended.
func mapped(t *testing.T, fsys vfs.FS, name string, size int) *Segment {
	t.Helper()
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	s, err := CreateMapped(fsys, name, 1, storeID, size, true, noBuffer)
	check(t, err)
	t.Cleanup(s.Drop)
	s.Link(0, 0, 0)
	return s
}

// onDisk makes a mapped segment in a real file.
func onDisk(t *testing.T, size int, provisional bool) (*Segment, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), base.FileName(base.FileLog, 1))
	s, err := CreateMapped(vfs.OS(), name, 1, storeID, size, provisional, func() ([]byte, error) { return make([]byte, size), nil })
	check(t, err)
	if !s.Mapped() {
		s.Close()
		t.Skip("SKIPPED: only reserved files on Linux are mapped, this one is not: ", name)
	}
	t.Cleanup(s.Drop)
	s.Link(0, 0, 0)
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

// What is appended to a mapped segment is in the file with that, for everybody who reads it,
// whether it is stored or, since it is long, written; and it is what was appended.
func TestMapped(t *testing.T) {
	for seed := range uint64(8) {
		s, name := onDisk(t, 4<<20, seed%2 == 0)
		r := rand.New(rand.NewPCG(seed, 1))
		var want [][]byte
		for i := 0; ; i++ {
			n := 1 + r.IntN(300)
			if i == 0 && seed > 1 || r.IntN(20) == 0 {
				n = r.IntN(3 * mostPiece)
			}
			value := bytes.Repeat([]byte{byte(i)}, n)
			parts := [][]byte{fmt.Append(nil, i), value, fmt.Append(nil, -i)}
			if !s.Room(n + 40) {
				break
			}
			at := s.Append(testHeader(uint64(i+1)), parts...)
			want = append(want, bytes.Join(parts, nil))
			if have := s.Buffer()[at:][:len(want[i])]; !bytes.Equal(have, want[i]) {
				t.Fatalf("seed %d, commit %d of %d bytes: the arena holds something else", seed, i, n)
			}
			if i%50 == 0 {
				same(t, s, name)
			}
			if r.IntN(10) == 0 {
				check(t, s.WriteOut())
			}
		}
		same(t, s, name)
		check(t, s.WriteOut())
		check(t, s.Sync())
		check(t, s.Intact())
		if tail, _ := s.Tail(); s.Synced() != tail || len(want) < 50 {
			t.Errorf("%d commits, synced to %v of %v", len(want), s.Synced(), tail)
		}
		check(t, s.Close())
		same(t, s, name) // readers go on
		check(t, os.Remove(name))
		if !bytes.Contains(s.Buffer(), want[len(want)-1]) {
			t.Error("what was in the file is gone with its name")
		}
	}
}

// Zeros are written ahead of what is stored, ever more of them at a time; not ahead of what is
// long, nor to the rest of the page it ends in. The first of them come when the segment is made.
func TestZerosGoAhead(t *testing.T) {
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	for i, c := range []struct {
		bytes []int
		fill  []int64
	}{
		{[]int{100, 17 << 10, 20 << 10, 100 << 10, 8 << 10}, []int64{16 << 10, 64 << 10, 64 << 10, 256 << 10, 256 << 10}},
		{[]int{20 << 10, 100, 100, 60 << 10}, []int64{64 << 10, 64 << 10, 64 << 10, 128 << 10}},
		{[]int{mostPiece, 100, 100, 5 << 10}, []int64{132 << 10, 132 << 10, 132 << 10, 144 << 10}},
		{[]int{100, mostPiece + 8<<10, 100, 5 << 10}, []int64{16 << 10, 140 << 10, 140 << 10, 144 << 10}},
	} {
		s, err := CreateMapped(mappable(), "000001.log", 1, storeID, 1<<20, true, noBuffer)
		check(t, err)
		t.Cleanup(s.Drop)
		check(t, s.Fill(false, func() bool { return true }))
		if s.fill != firstPiece {
			t.Errorf("filled to %d at first", s.fill)
		}
		for j, n := range c.bytes {
			s.Append(testHeader(1), make([]byte, n))
			if s.fill != c.fill[j] {
				t.Errorf("case %d, commit %d: filled to %d, want %d", i, j, s.fill, c.fill[j])
			}
		}
	}
}

// Where files cannot be mapped the arena is a buffer of the caller's; if there is none, no file
// is left.
func TestNotMapped(t *testing.T) {
	for _, fsys := range []*memfs.FS{memfs.New(), mappable()} {
		faults := faultfs.New(fsys)
		faults.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Sticky: true, Do: faultfs.Fail(errors.ErrUnsupported)})
		buf := make([]byte, 64<<10)
		s, err := CreateMapped(faults, "000001.log", 1, storeID, len(buf), true, func() ([]byte, error) { return buf, nil })
		check(t, err)
		if s.Mapped() || &s.Buffer()[0] != &buf[0] || s.Capacity() != len(buf) {
			t.Error("mapped, or not the buffer")
		}
		s.Link(0, 0, 0)
		commit(s, 1, 0, "a")
		check(t, s.WriteOut())
		got, err := fsys.ReadFile("000001.log")
		check(t, err)
		tail, _ := s.Tail()
		if !bytes.Equal(got[:tail.Offset()], buf[:tail.Offset()]) || tail.Offset() < 100 {
			t.Error("the file differs from the arena")
		}
		s.Drop()
		want := errors.New("no memory")
		if _, err := CreateMapped(faults, "000002.log", 2, storeID, len(buf), true, func() ([]byte, error) { return nil, want }); !errors.Is(err, want) {
			t.Error(err)
		}
		if names, _ := fsys.List("/"); len(names) != 1 {
			t.Errorf("files are left: %q", names)
		}
	}
}

// A failure while a mapped segment is made leaves neither file nor mapping.
func TestCreateMappedFails(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.Create, faultfs.Preallocate, faultfs.Write} {
		fsys := mappable()
		faults := faultfs.New(fsys)
		faults.Add(faultfs.Rule{Kinds: kind, Do: faultfs.Fail(syscall.EIO)})
		if _, err := CreateMapped(faults, "000001.log", 1, storeID, 64<<10, true, someBuffer); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: %v", kind, err)
		}
		if names, _ := fsys.List("/"); len(names) != 0 {
			t.Errorf("%v: files are left: %q", kind, names)
		}
	}
}

// Intact finds each change of what was appended, and none of what stands behind it.
func TestIntact(t *testing.T) {
	fsys := mappable()
	s := mapped(t, fsys, "000001.log", 64<<10)
	s.Append(testHeader(1), make([]byte, 300))
	s.Append(testHeader(2), []byte("second"))
	check(t, s.WriteOut())
	tail, _ := s.Tail()
	for off := int64(base.FileHeaderBytes); off < tail.Offset()+20; off++ {
		check(t, s.Intact())
		check(t, fsys.Corrupt("000001.log", off, 0x40))
		if err := s.Intact(); off < tail.Offset() && !errors.Is(err, base.ErrCorrupt) || off >= tail.Offset() && err != nil {
			t.Fatalf("offset %d of %d: %v", off, tail.Offset(), err)
		}
		check(t, fsys.Corrupt("000001.log", off, 0x40))
	}
	// Frames that were given up are none of it.
	s.Append(testHeader(3), []byte("third"))
	s.Abandon()
	check(t, s.Intact())
	if got, _ := s.Tail(); got != tail {
		t.Errorf("abandoned: ends at %v, want %v", got, tail)
	}
}

// The file of a mapped segment is not used again: it may still be read.
func TestMappedIsNotRetired(t *testing.T) {
	s := mapped(t, mappable(), "000001.log", 64<<10)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut())
	check(t, s.Sync())
	if u := s.Retire(); u != nil {
		t.Error("the file may be used again")
	}
}

func testHeader(seq uint64) frame.Header {
	return frame.Header{Kind: frame.KindCommit, Seq: seq, Count: 1}
}

// Nothing is mapped any more of a segment that is dropped.
func TestDropUnmaps(t *testing.T) {
	before := arena.Mapped()
	s := mapped(t, mappable(), "000001.log", 64<<10)
	if arena.Mapped() == before {
		t.Fatal("not mapped")
	}
	for range 2 {
		s.Drop()
		if n := arena.Mapped() - before; n != 0 {
			t.Fatalf("%d bytes are mapped", n)
		}
	}
}

// fetches is a mapping that notes what is fetched of it.
type fetches struct {
	vfs.Mapping
	got [][2]int64
}

func (m *fetches) Fetch(from, to int64) { m.got = append(m.got, [2]int64{from, to}) }

// TestFetch: what was appended to a mapped segment is fetched, also by who looks whether it is intact; not what is
// no mapping any more.
func TestFetch(t *testing.T) {
	s := mapped(t, mappable(), "1.log", 64<<10)
	s.Fetch() // of a mapping that cannot, nothing is
	m := &fetches{Mapping: s.mapping}
	s.mapping = m
	tail, _ := s.Tail()
	for range 2 {
		s.Fetch()
	}
	check(t, s.Intact())
	if n := tail.Offset(); len(m.got) != 3 || m.got[0] != [2]int64{0, n} || m.got[2] != [2]int64{0, n} {
		t.Errorf("of %d bytes fetched: %v", n, m.got)
	}
	s.detach()
	if s.Fetch(); len(m.got) != 3 {
		t.Errorf("fetched what is ordinary memory: %v", m.got)
	}
}

// starting is a file that notes what the device is asked to begin with.
type starting struct {
	vfs.File
	begun [][2]int64
}

func (f *starting) StartWriteback(off, n int64) { f.begun = append(f.begun, [2]int64{off, off + n}) }

func (f *starting) Map(off int64, n int) (vfs.Mapping, error) { return f.File.(vfs.Mapper).Map(off, n) }

type startingFS struct {
	vfs.FS
	file *starting
}

func (f *startingFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	f.file = &starting{File: file}
	return f.file, err
}

// TestMappedAndSynced: a mapped segment that is not provisional is whole after a power cut as soon as there is its name,
// and the device begins with what is long of it before it is synced: each page once. With one that is, it waits.
func TestMappedAndSynced(t *testing.T) {
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	const size, name = 4 << 20, "/000001.log"
	for _, provisional := range []bool{true, false} {
		disk := mappable()
		disk.StartJournal()
		f := &startingFS{FS: disk}
		s, err := CreateMapped(f, name, 1, storeID, size, provisional, noBuffer)
		check(t, err)
		check(t, disk.SyncDir("/"))
		if s.Provisional() != provisional || !s.Mapped() {
			t.Errorf("provisional %v, mapped %v", s.Provisional(), s.Mapped())
		}
		if h := headerAfterCrash(t, disk, name); (h == nil) != provisional || h != nil && h.Provisional {
			t.Errorf("provisional %v: the header after a power cut is %+v", provisional, h)
		}
		s.Link(0, 0, 0)
		part := bytes.Repeat([]byte("x"), 300<<10)
		s.Append(testHeader(1), part, part, part, part)
		end := int64(0)
		for i, b := range f.file.begun {
			if b[0]%pageBytes != 0 || b[1]%pageBytes != 0 || b[0] >= b[1] || i > 0 && b[0] != end {
				t.Errorf("the device begins with %v", f.file.begun)
			}
			end = b[1]
		}
		if tail, _ := s.Tail(); provisional != (len(f.file.begun) == 0) || end > tail.Offset() || !provisional && end < tail.Offset()-300<<10 {
			t.Errorf("provisional %v: the device begins with %v of %v", provisional, f.file.begun, tail)
		}
		check(t, s.WriteOut())
		check(t, s.Sync())
		check(t, s.Intact())
		s.Drop()
	}
}

// headerAfterCrash returns the header that a file has after a power cut that leaves what was synced, nil if it has none.
func headerAfterCrash(t *testing.T, disk *memfs.FS, name string) *base.FileHeader {
	t.Helper()
	f, err := disk.Crash(memfs.SyncedOnly()).Open(name)
	check(t, err)
	defer f.Close()
	head := make([]byte, base.FileHeaderBytes)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil
	}
	h, err := base.DecodeFileHeader(head, base.FileLog, name)
	if err != nil {
		return nil
	}
	return &h
}

// TestShortFramesOfSyncedLogs are written, and stored only where that fails: then they are there all the same.
func TestShortFramesOfSyncedLogs(t *testing.T) {
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	faults := faultfs.New(mappable())
	s, err := CreateMapped(faults, "000001.log", 1, storeID, 64<<10, false, noBuffer)
	check(t, err)
	defer s.Drop()
	s.Link(0, 0, 0)
	writes := faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Sticky: true})
	for i := range 20 {
		if i == 10 {
			faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
		}
		at := s.Append(testHeader(uint64(i+1)), []byte("some"), fmt.Append(nil, i))
		if have, want := s.Buffer()[at:], fmt.Sprint("some", i); string(have[:len(want)]) != want {
			t.Errorf("%q in place of %q", have[:len(want)], want)
		}
	}
	if n := writes.Seen(); n < 20 {
		t.Errorf("%d writes of 20 commits", n)
	}
	check(t, s.WriteOut())
	check(t, s.Sync())
	check(t, s.Intact())
}
