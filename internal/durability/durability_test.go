package durability

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

type store struct {
	Log
	commits  sync.Mutex
	ledger   ledger.Ledger
	faults   *faultfs.FS
	poisoned error
}

// newStore is the log of a store that has no segment yet.
func newStore(t *testing.T) *store {
	t.Helper()
	disk := memfs.New()
	if err := errors.Join(disk.MkdirAll("/db"), disk.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	s := &store{faults: faultfs.New(disk)}
	s.Commits, s.Ledger = &s.commits, &s.ledger
	s.Poison = func(err error) { s.poisoned = errors.Join(s.poisoned, err) }
	s.ledger.FS, s.ledger.Dir, s.ledger.Obsolete = s.faults, "/db", new(obsolete.Files)
	s.ledger.Poison, s.ledger.Edited = s.Poison, func() {}
	s.ledger.Start(manifest.NewState(base.NewID()), 1)
	t.Cleanup(func() { s.Close(); s.ledger.Close() })
	return s
}

// begin makes the next segment, records it and writes to it.
func (s *store) begin(t *testing.T, provisional bool) *wal.Segment {
	t.Helper()
	s.ledger.Lock()
	defer s.ledger.Unlock()
	num := s.ledger.NewNum()
	seg, err := wal.Create(s.faults, fmt.Sprintf("/db/%06d.log", num), num, s.ledger.Store, make([]byte, 1<<16), false)
	if err == nil {
		err = s.ledger.Record(manifest.Segment{Num: num, File: seg.File}, provisional)
	}
	if err != nil {
		t.Fatal(err)
	}
	end, sum := wal.Position(0), uint32(0)
	if all := s.Segments(nil); len(all) > 0 {
		end, sum = all[len(all)-1].Tail()
	}
	seg.Link(end, s.End(), sum)
	s.Add(seg)
	s.put(t, seg)
	return seg
}

func (s *store) put(t *testing.T, seg *wal.Segment) {
	t.Helper()
	entry := frame.AppendEntry(nil, base.KindPut, []byte("key"), []byte("value"))
	seg.Append(frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1, Durable: uint64(s.End())}, entry)
	if err := seg.WriteOut(); err != nil {
		t.Fatal(err)
	}
}

// want checks up to where the log is known durable, and how many segments are not as a whole.
func (s *store) want(t *testing.T, what string, end wal.Position, segments int) {
	t.Helper()
	if s.End() != end || len(s.Segments(nil)) != segments {
		t.Errorf("%s: durable up to %v, %d segments left; want %v, %d", what, s.End(), len(s.Segments(nil)), end, segments)
	}
}

func tail(s *wal.Segment) wal.Position { p, _ := s.Tail(); return p }

func TestAdvance(t *testing.T) {
	s := newStore(t)
	first, second := s.begin(t, false), s.begin(t, false)
	s.Advance()
	s.want(t, "nothing synced", 0, 2)
	if err := s.Sync([]*wal.Segment{first}); err != nil {
		t.Fatal(err)
	}
	s.want(t, "not advanced", 0, 2)
	s.Advance()
	s.want(t, "the first synced", tail(first), 1)
	if err := s.SyncWritten(); err != nil {
		t.Fatal(err)
	}
	s.want(t, "all synced", tail(second), 1)
	before := tail(second)
	s.put(t, second)
	third := s.begin(t, false)
	s.Advance()
	s.want(t, "written since", before, 2)
	if err := third.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Advance()
	s.want(t, "a gap in front", before, 2)
	if s.Drop(second); len(s.Segments(nil)) != 1 {
		t.Fatalf("%d segments left", len(s.Segments(nil)))
	}
	s.Advance()
	s.want(t, "what the gap held is in tables", tail(third), 1)
}

// TestHeaderIsNoMark: a segment of which the header alone is synced has no durable link to the one before.
func TestHeaderIsNoMark(t *testing.T) {
	s := newStore(t)
	first := s.begin(t, false)
	s.SyncWritten()
	seg, err := wal.Create(s.faults, "/db/next.log", 9, s.ledger.Store, make([]byte, 1<<16), false)
	if err == nil {
		err = seg.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Add(seg)
	s.Advance()
	s.want(t, "a header", tail(first), 1)
}

// TestProvisional: what is synced in a segment that a power cut may take away, or behind one, is no more durable for it.
func TestProvisional(t *testing.T) {
	s := newStore(t)
	first, second := s.begin(t, true), s.begin(t, true)
	if err := wal.SyncAll(s.Segments(nil)); err != nil {
		t.Fatal(err)
	}
	s.Advance()
	s.want(t, "synced", 0, 2)
	if err := s.Sync([]*wal.Segment{first}); err != nil {
		t.Fatal(err)
	}
	s.Advance()
	s.want(t, "the first confirmed", tail(first), 1)
	s.ledger.Lock()
	err := s.SyncForSegment()
	s.ledger.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	s.Advance()
	s.want(t, "all confirmed", tail(second), 1)
	if n := s.ledger.FirstProvisional(); n != 0 {
		t.Errorf("first provisional is %d", n)
	}
}

// TestSyncFails: with an error that matches base.ErrPoisoned, and nothing counts as durable.
func TestSyncFails(t *testing.T) {
	fails := func(what, name string, provisional bool, sync func(s *store, seg *wal.Segment) error) {
		s := newStore(t)
		seg := s.begin(t, provisional)
		s.faults.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.SyncDir, Name: name, Do: faultfs.Fail(syscall.EIO)})
		if err := sync(s, seg); !errors.Is(err, base.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s of %s: %v", what, name, err)
		}
		s.Advance()
		s.want(t, what+" of "+name, 0, 1)
	}
	all := func(sync func(s *store, seg []*wal.Segment) error) func(*store, *wal.Segment) error {
		return func(s *store, seg *wal.Segment) error { return sync(s, []*wal.Segment{seg}) }
	}
	forSegment := func(s *store, _ *wal.Segment) error {
		s.ledger.Lock()
		defer s.ledger.Unlock()
		err := s.SyncForSegment()
		if !errors.Is(s.poisoned, base.ErrPoisoned) && !errors.Is(s.poisoned, syscall.EIO) {
			t.Errorf("SyncForSegment: told %v", s.poisoned)
		}
		return err
	}
	for _, name := range []string{"*.log", "db", "MANIFEST-*"} {
		fails("Sync", name, true, all((*store).sync))
		fails("MustSync", name, true, all(func(s *store, seg []*wal.Segment) error { return s.MustSync(seg) }))
		fails("SyncForSegment", name, true, forSegment)
	}
	fails("SyncWritten", "*.log", false, func(s *store, _ *wal.Segment) error { return s.SyncWritten() })
	fails("SyncUnused", "*.log", false, func(s *store, seg *wal.Segment) error {
		s.SyncUnused(seg)
		return fmt.Errorf("%w: %w", base.ErrPoisoned, s.poisoned)
	})
}

func (s *store) sync(segments []*wal.Segment) error { return s.Sync(segments) }

// TestNotAttempted: a confirmation that was not tried is tried again where commits wait for it.
func TestNotAttempted(t *testing.T) {
	s := newStore(t)
	seg := s.begin(t, true)
	rule := s.faults.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Sticky: true, Do: faultfs.Fail(vfs.ErrNotAttempted)})
	if err := s.Sync([]*wal.Segment{seg}); !errors.Is(err, vfs.ErrNotAttempted) || errors.Is(err, base.ErrPoisoned) {
		t.Errorf("Sync: %v", err)
	}
	s.Advance()
	s.want(t, "not tried", 0, 1)
	done := make(chan error)
	go func() { done <- s.MustSync([]*wal.Segment{seg}) }()
	for rule.Seen() < 3 {
		select {
		case err := <-done:
			t.Fatalf("MustSync gave up after %d attempts: %v", rule.Seen(), err)
		default:
		}
	}
	s.faults.Heal()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.Advance()
	s.want(t, "tried again", tail(seg), 1)
}
