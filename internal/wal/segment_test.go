package wal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

var (
	storeID = base.ID{0x53, 0x54, 0x4F, 0x52, 0x45}
	fileID  = base.ID{0x46, 0x49, 0x4C, 0x45}
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, f vfs.FS, num uint64, size int) *Segment {
	t.Helper()
	s, err := Create(f, base.FileName(base.FileLog, num), num, storeID, make([]byte, size), false)
	check(t, err)
	return s
}

// commit appends a commit of the given keys, each put with its own name as value.
func commit(s *Segment, seq uint64, durable Position, keys ...string) {
	var payload []byte
	for _, k := range keys {
		payload = frame.AppendEntry(payload, base.KindPut, []byte("\x00"+k), []byte(k))
	}
	s.Append(frame.Header{Kind: frame.KindCommit, Seq: seq, Count: uint32(len(keys)), Durable: uint64(durable)}, payload)
}

// TestWorkedExample compares a segment with the hex dump in docs/format/log.md.
func TestWorkedExample(t *testing.T) {
	m := memfs.New()
	f, err := m.Create("000007.log")
	check(t, err)
	s := &Segment{Num: 7, File: fileID, f: f, name: "000007.log", size: 4096, buf: make([]byte, 4096), ident: frame.NewIdentity(fileID)}
	check(t, s.reserve(4096))
	check(t, s.begin(storeID, false))
	s.Link(At(5, 4096), At(5, 4096), 0xAABBCCDD)
	payload := frame.AppendEntry(nil, base.KindPut, []byte("\x00apple"), []byte("green"))
	payload = frame.AppendEntry(payload, base.KindDelete, []byte("\x00pear"), nil)
	s.Append(frame.Header{Kind: frame.KindCommit, Seq: 41, Count: 2, Durable: uint64(At(5, 4096))}, payload)
	check(t, s.WriteOut())
	got, err := m.ReadFile("000007.log")
	check(t, err)
	end, _ := s.Tail()
	if !bytes.Equal(got[end.Offset():], make([]byte, 4096-end.Offset())) {
		t.Error("something stands behind the last frame")
	}
	want := exampleBytes(t)
	if got = got[:end.Offset()]; !bytes.Equal(got, want) {
		t.Errorf("the document has %d bytes:\n%s\nthe segment has %d:\n%s", len(want), hex.Dump(want), len(got), hex.Dump(got))
	}
}

// exampleBytes reads the hex dump out of the document: the lines of its form
// "offset  bytes  | what they are".
func exampleBytes(t *testing.T) (b []byte) {
	doc, err := os.ReadFile("../../docs/format/log.md")
	check(t, err)
	_, doc, ok := bytes.Cut(doc, []byte("```hex\n"))
	if !ok {
		t.Fatal("no example in the document")
	}
	doc, _, _ = bytes.Cut(doc, []byte("```"))
	for line := range strings.Lines(string(doc)) {
		text, _, _ := strings.Cut(line, "|")
		offset, text, _ := strings.Cut(text, ": ")
		at, err := hex.DecodeString("0000" + strings.TrimSpace(offset))
		if err != nil || int(at[2])<<8|int(at[3]) != len(b) {
			t.Fatalf("line %q is not at offset %x", line, len(b))
		}
		bytes, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), " ", ""))
		check(t, err)
		b = append(b, bytes...)
	}
	return b
}

func TestPosition(t *testing.T) {
	p := At(7, 4096)
	if p.Segment() != 7 || p.Offset() != 4096 || p != 7<<32|4096 || p.String() != "segment 7 offset 4096" {
		t.Errorf("%v", p)
	}
	if !(At(7, 0xFFFFFFFF) < At(8, 0)) {
		t.Error("positions are not ordered like the log")
	}
}

// TestSegmentLife: what was appended, written and synced, and where.
func TestSegmentLife(t *testing.T) {
	m := memfs.New()
	s := create(t, m, 3, 4096)
	if s.Capacity() != 4096 || s.Written() != 64 || s.Synced() != At(3, 64) {
		t.Errorf("new: written %d, synced %v", s.Written(), s.Synced())
	}
	if info, err := m.Stat("000003.log"); err != nil || info.Size != 4096 {
		t.Errorf("%+v, %v: space is not reserved", info, err)
	}
	s.Link(0, 0, 0)
	commit(s, 1, 0, "a")
	end, sum := s.Tail()
	if s.Written() != 64 || sum == 0 || end.Offset() != 64+56+48 {
		t.Errorf("appended up to %v, written %d", end, s.Written())
	}
	check(t, s.Sync()) // nothing new is written, so nothing new is durable
	if s.Synced() != At(3, 64) {
		t.Errorf("synced %v", s.Synced())
	}
	check(t, s.WriteOut())
	check(t, s.WriteOut())
	check(t, s.Sync())
	if s.Written() != end.Offset() || s.Synced() != end {
		t.Errorf("written %d, synced %v, want %v", s.Written(), s.Synced(), end)
	}
	data, err := m.ReadFile("000003.log")
	check(t, err)
	if !bytes.Equal(data, append(bytes.Clone(s.Buffer()[:end.Offset()]), make([]byte, 4096-end.Offset())...)) {
		t.Error("file and arena differ")
	}
	check(t, s.Close())
	check(t, s.Close())
}

// TestRoom: frames fit up to the last byte.
func TestRoom(t *testing.T) {
	size := OverheadBytes + frame.PaddedBytes(100)
	s := create(t, memfs.New(), 1, size)
	s.Link(0, 0, 0)
	if !s.Room(104) || s.Room(105) {
		t.Errorf("room for 104: %v, for 105: %v", s.Room(104), s.Room(105))
	}
	if at := s.Append(frame.Header{Kind: frame.KindCommit}, make([]byte, 100)); at != int64(OverheadBytes+frame.HeaderBytes) {
		t.Errorf("payload at %d", at)
	}
	if s.Room(0) {
		t.Error("room in a full segment")
	}
}

// TestOneWritePerGroup: whatever was appended since goes out as one write.
func TestOneWritePerGroup(t *testing.T) {
	f := faultfs.New(memfs.New())
	s := create(t, f, 1, 4096)
	s.Link(0, 0, 0)
	f.StartTrace()
	for i := range 5 {
		commit(s, uint64(i+1), 0, "k")
	}
	check(t, s.WriteOut())
	if n := len(f.Trace(faultfs.Write)); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// TestHeaderIsSynced: a segment that Create returned has a durable header, and
// what Sync covered is there after a power cut, whatever else is lost.
func TestHeaderIsSynced(t *testing.T) {
	m := memfs.New()
	s := create(t, m, 1, 4096)
	check(t, m.SyncDir("/"))
	afterPowerCut := func() []byte {
		j := m.Journal()
		data, err := j.State(j.Len(), memfs.Choice{}).ReadFile("000001.log")
		check(t, err)
		return data
	}
	if _, err := base.DecodeFileHeader(afterPowerCut(), base.FileLog, "1"); err != nil {
		t.Error(err)
	}
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	if bytes.Contains(afterPowerCut(), s.Buffer()[64:120]) {
		t.Error("survives without a sync; the test shows nothing")
	}
	check(t, s.Sync())
	if !bytes.Contains(afterPowerCut(), s.Buffer()[64:120]) {
		t.Error("Sync did not make the link durable")
	}
}

// TestFailedSyncIsFinal: a later Sync must not report success, as a kernel would.
func TestFailedSyncIsFinal(t *testing.T) {
	f := faultfs.New(memfs.New())
	s := create(t, f, 1, 4096)
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	rule := f.Add(faultfs.Rule{Kinds: faultfs.Sync, Do: faultfs.Fail(syscall.EIO)})
	for range 3 {
		if err := s.Sync(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "000001.log") {
			t.Errorf("%v", err)
		}
	}
	if rule.Seen() != 1 || s.Synced() != At(1, 64) {
		t.Errorf("%d syncs reached the file, synced %v", rule.Seen(), s.Synced())
	}
}

func TestFailedWrite(t *testing.T) {
	f := faultfs.New(memfs.New())
	s := create(t, f, 1, 4096)
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	end, _ := s.Tail()
	commit(s, 1, 0, "lost")
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Short(faultfs.Half, syscall.EIO)})
	if err := s.WriteOut(); !errors.Is(err, syscall.EIO) || s.Written() != end.Offset() {
		t.Errorf("%v, written %d", err, s.Written())
	}
	s.Abandon()
	if tail, _ := s.Tail(); tail != end {
		t.Errorf("abandoned: ends at %v, want %v", tail, end)
	}
}

// TestCreateFails and leaves no file, whatever goes wrong.
func TestCreateFails(t *testing.T) {
	m := memfs.New()
	m.SetCapacity(8 << 10)
	if _, err := Create(m, "1.log", 1, storeID, make([]byte, 1<<20), false); !vfs.IsNoSpace(err) {
		t.Errorf("full disk: %v", err)
	}
	if len(m.Files()) != 0 {
		t.Errorf("left behind: %v", m.Files())
	}
	count := faultfs.New(memfs.New())
	every := count.Add(faultfs.Rule{Kinds: faultfs.Mutations})
	create(t, count, 1, 4096)
	for n := int64(1); n <= every.Seen(); n++ {
		m := memfs.New()
		f := faultfs.New(m)
		f.Add(faultfs.Rule{Kinds: faultfs.Mutations, At: n, Do: faultfs.Fail(syscall.EIO)})
		if _, err := Create(f, "1.log", 1, storeID, make([]byte, 4096), false); !errors.Is(err, syscall.EIO) || len(m.Files()) != 0 {
			t.Errorf("operation %d fails: %v, files %v", n, err, m.Files())
		}
	}
	_, err := Create(count, "000001.log", 1, storeID, make([]byte, 4096), false)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("twice: %v", err)
	}
}

// TestReserveWithoutPreallocation writes zeros.
func TestReserveWithoutPreallocation(t *testing.T) {
	m := memfs.New()
	f := faultfs.New(m)
	f.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Sticky: true, Do: faultfs.Fail(errors.ErrUnsupported)})
	create(t, f, 1, 600_000)
	if used := m.Used(); used < 600_000 {
		t.Errorf("%d bytes reserved", used)
	}
}

// TestConcurrentUse: one goroutine appends, one writes, some sync. Meant for -race.
func TestConcurrentUse(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	s := create(t, m, 1, 1<<20)
	s.Link(0, 0, 0)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := uint64(1); s.Room(100); i++ {
			commit(s, i, s.Synced(), "key")
		}
	})
	loop := func(call func() error) {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := call(); err != nil {
						t.Error(err)
						return
					}
					if s.Synced().Offset() > s.Written() {
						t.Error("synced more than was written")
					}
				}
			}
		})
	}
	loop(func() error { return s.WriteOut() })
	loop(s.Sync)
	loop(s.Sync)
	wg.Wait()
	check(t, s.WriteOut())
	check(t, s.Sync())
	end, _ := s.Tail()
	if s.Synced() != end {
		t.Errorf("synced %v of %v", s.Synced(), end)
	}
}
