package reserve

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func nothing() error { return nil }

// TestReleaseWaits: a segment was made while the space put aside for its flush was given
// away; it took that space, and the flush never got it back.
func TestReleaseWaits(t *testing.T) {
	m := memfs.New()
	m.MkdirAll("d")
	s := New(m, "d/RESERVE")
	released := make(chan int64, 1)
	err := s.Hold(1<<20, func() error {
		go func() { released <- s.Release() }()
		select {
		case was := <-released:
			t.Error("released while it was in use")
			released <- was
		case <-time.After(20 * time.Millisecond):
		}
		return nil
	})
	if err != nil || <-released != 1<<20 {
		t.Error(err, "or not released afterwards")
	}
}

func TestSpace(t *testing.T) {
	m := memfs.New()
	m.MkdirAll("d")
	m.SetCapacity(1 << 20)
	s := New(m, "d/RESERVE")
	if s.Release() != 0 {
		t.Error("released what was never held")
	}
	if err := s.Hold(300_000, nothing); err != nil {
		t.Fatal(err)
	}
	before := m.Used()
	if err := s.Hold(2<<20, nothing); !vfs.IsNoSpace(err) {
		t.Errorf("more than the disk has: %v", err)
	}
	if m.Used() != before || before < 300_000 {
		t.Errorf("%d bytes held, %d after a failure", before, m.Used())
	}
	if err := s.Hold(100_000, nothing); err != nil || m.Used() != before {
		t.Errorf("less than is held: %v, %d bytes", err, m.Used())
	}
	if err := s.Hold(600_000, nothing); err != nil || m.Used() < 600_000 {
		t.Errorf("more: %v, %d bytes", err, m.Used())
	}
	if New(m, "d/RESERVE").Release() != 600_000 || m.Used() >= 100_000 {
		t.Errorf("%d bytes left", m.Used())
	}
}

// TestLend: a part of what was put aside serves the next segment, once, until as much is put aside again, or as the flush of the
// largest memtable takes could be.
func TestLend(t *testing.T) {
	m := memfs.New()
	m.MkdirAll("d")
	m.SetCapacity(4 << 20)
	s := New(m, "d/RESERVE")
	held := func() int64 { return m.Used() }
	made := 0
	create := func() error { made++; return nil }
	segment := func(size int, little bool) error {
		if little {
			return s.ForSegment(int64(size), 1<<20, 256<<10, create)
		}
		return s.ForSegment(int64(size), 1<<20, 0, create)
	}
	if err := segment(4096, true); err != nil || held() >= ForFlush(4096) {
		t.Errorf("%d bytes put aside for a store of little: %v", held(), err)
	}
	if err := segment(4096, false); err != nil || held() < ForFlush(1<<20) {
		t.Errorf("%d bytes put aside, not for the largest: %v", held(), err)
	}
	if err := segment(8<<20, false); !vfs.IsNoSpace(err) {
		t.Errorf("a segment for whose flush there is no space: %v", err)
	}
	if !s.Lend(4096, 1<<20) || s.Lent() != ForFlush(1<<20)/5&^4095 || held() >= 4096 {
		t.Errorf("lent %d bytes, %d still put aside", s.Lent(), held())
	}
	if err := segment(int(s.Lent()), false); err != nil || held() >= 4096 || s.Lent() != 0 {
		t.Errorf("a segment of what was lent put %d bytes aside, %d are still lent: %v", held(), s.Lent(), err)
	}
	m.SetCapacity(m.Used() + ForFlush(1<<20) - 1)
	if s.Lend(4096, 1<<20) {
		t.Error("lent twice, though what is left is for a flush")
	}
	if !s.Lend(4096, 0) || s.Lent() != ForFlush(4096)/5&^4095 || held() >= 4096 {
		t.Errorf("behind a flush: lent %d bytes, %d still put aside", s.Lent(), held())
	}
	m.SetCapacity(4 << 20)
	if err := segment(int(s.Lent())+4096, false); err != nil || held() < ForFlush(1<<20) || !s.Lend(4096, 1<<20) {
		t.Errorf("%d bytes put aside again, and not lent: %v", held(), err)
	}
	if made != 4 {
		t.Errorf("%d segments were made", made)
	}
}

// TestSpaceError: a full disk has its name, but for one that space does not help: the store is poisoned, or the outcome of a
// commit unknown. All else that such an error matches it still does.
func TestSpaceError(t *testing.T) {
	full := fmt.Errorf("write: %w", vfs.ErrNoSpace)
	named := SpaceError(full)
	if !errors.Is(named, base.ErrNoSpace) || SpaceError(named) != named || SpaceError(nil) != nil {
		t.Error(named)
	}
	damage := &base.CorruptionError{File: "f"}
	for _, why := range []error{base.ErrPoisoned, base.ErrCommitUnknown} {
		for _, err := range []error{fmt.Errorf("%w: %w", why, full), fmt.Errorf("%w: %w", why, named), errors.Join(named, why)} {
			err = SpaceError(errors.Join(err, syscall.EIO, damage))
			var found *base.CorruptionError
			if errors.Is(err, base.ErrNoSpace) || !errors.Is(err, why) || !vfs.IsNoSpace(err) || !errors.Is(err, syscall.EIO) || !errors.As(err, &found) || found != damage {
				t.Error(err)
			}
		}
	}
}

// TestNoneCanBePutAside: only where the file system cannot put space aside, or the file is somebody else's, segments are made
// without. An error that passes is told, and nothing counts as put aside.
func TestNoneCanBePutAside(t *testing.T) {
	for _, c := range []struct {
		kind  faultfs.Kind
		err   error
		other string // what the file holds
		told  bool
	}{
		{faultfs.Preallocate, errors.ErrUnsupported, "", false},
		{0, nil, "somebody else's", false},
		{faultfs.Open | faultfs.Create, syscall.EMFILE, "", true},
	} {
		m := memfs.New()
		m.MkdirAll("d")
		if c.other != "" {
			f, err := m.Create("d/RESERVE")
			if err == nil {
				_, err = f.WriteAt([]byte(c.other), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		f := faultfs.New(m)
		if c.err != nil {
			f.Add(faultfs.Rule{Kinds: c.kind, Sticky: true, Do: faultfs.Fail(c.err)})
		}
		s := New(f, "d/RESERVE")
		if s.Lend(4096, 1<<20); s.Lent() == 0 {
			t.Error("nothing was lent")
		}
		err := s.ForMade(1 << 20)
		if told := errors.Is(err, c.err) && err != nil; told != c.told || s.Holds(64<<20) == told {
			t.Errorf("%v: %v; as if space was put aside: %v", c.err, err, s.Holds(64<<20))
		}
		if lends := s.Lend(4096, 1<<20); lends == c.told {
			t.Errorf("%v: lent once more: %v", c.err, lends)
		}
	}
}

// takesAll is a file system where somebody takes all that is free when a file is removed.
type takesAll struct{ *memfs.FS }

func (f takesAll) Remove(name string) error {
	err := f.FS.Remove(name)
	f.SetCapacity(f.Used() + 1)
	return err
}

// TestShrinkKeepsItsPart: what stays put aside is never let go of.
func TestShrinkKeepsItsPart(t *testing.T) {
	m := memfs.New()
	m.MkdirAll("d")
	s := New(takesAll{m}, "d/RESERVE")
	if err := s.Hold(1<<20, nothing); err != nil {
		t.Fatal(err)
	}
	before := m.Used()
	s.Shrink(300_000)
	if gave := before - m.Used(); s.aside.Load() != 300_000 || gave < 700_000 || s.Release() != 300_000 {
		t.Errorf("%d bytes were given back, %d are said to be aside", gave, s.aside.Load())
	}
	f := faultfs.New(m)
	m.SetCapacity(0)
	s = New(f, "d/RESERVE")
	if err := s.Hold(1<<20, nothing); err != nil {
		t.Fatal(err)
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Do: faultfs.Fail(errors.ErrUnsupported)})
	if s.Shrink(300_000); s.aside.Load() != 300_000 || s.Release() != 300_000 {
		t.Errorf("where it cannot be cut: %d bytes are aside", s.aside.Load())
	}
}
