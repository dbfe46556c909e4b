package wal

import (
	"bytes"
	"cmp"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
)

// touches is a mapping that counts how often it was touched, which takes a while.
type touches struct {
	vfs.Mapping
	n     atomic.Int64
	takes time.Duration
}

func (m *touches) Touch(from, to int64) {
	time.Sleep(m.takes)
	m.n.Add(1)
}

// beside makes a mapped segment whose mapping can be touched.
func besideSegment(t *testing.T, fsys vfs.FS, size int) (*Segment, *touches) {
	t.Helper()
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("SKIPPED: on one processor nothing is made beside commits")
	}
	s := mapped(t, fsys, "000001.log", size)
	m := &touches{Mapping: s.mapping}
	s.mapping = m
	return s, m
}

// appendSlowly appends n frames of 1 KB, with pauses, and returns their payloads.
func appendSlowly(s *Segment, n int, pause time.Duration) (payloads [][]byte) {
	for i := range n {
		p := bytes.Repeat([]byte{byte(i%255 + 1)}, 1000)
		s.Append(testHeader(uint64(i+1)), p)
		payloads = append(payloads, p)
		time.Sleep(pause)
	}
	return payloads
}

// wantPayloads fails unless the arena has these payloads of 1 KB behind the link, and zeros behind them.
func wantPayloads(t *testing.T, s *Segment, payloads [][]byte) {
	t.Helper()
	check(t, s.Intact())
	buf := s.Buffer()[:s.tail.Load()]
	for i, p := range payloads {
		at := bytes.Index(buf, p)
		if at < 0 {
			t.Fatalf("frame %d has been written to", i)
		}
		buf = buf[at+len(p):]
	}
	if rest := s.Buffer()[s.tail.Load():]; len(bytes.TrimRight(rest, "\x00")) > 0 {
		t.Fatal("something is stored behind the last frame")
	}
}

// TestZerosBesidePauses: zeros are made beside commits that pause; beside others they are not.
func TestZerosBesidePauses(t *testing.T) {
	s, _ := besideSegment(t, mappable(), 1<<20)
	begun := map[*piece]bool{nil: true}
	var payloads [][]byte
	for range 600 {
		payloads = append(payloads, appendSlowly(s, 1, 3*smallPause)...)
		begun[s.beside.piece.Load()] = true
	}
	wantPayloads(t, s, payloads)
	if n := len(begun) - 1; n < 3 { // 16, 64 and 128 KiB, and so on; whoever comes to one before a processor does calls it off
		t.Errorf("%d pieces were begun beside 600 commits of 1 KB", n)
	}
	s, m := besideSegment(t, mappable(), 8<<20)
	for i := range 1000 {
		s.beside.last = time.Now().Add(time.Hour) // as where commits follow each other, which no test can promise
		s.Append(testHeader(uint64(i+1)), make([]byte, 1000))
	}
	if n := m.n.Load(); n != 0 {
		t.Errorf("%d pieces were made beside commits that follow each other", n)
	}
}

// TestZerosBesideAreWaitedFor: what comes behind a piece that is being made, of whatever length, waits for it, and so do those
// that end the segment. What was stored is not overwritten.
func TestZerosBesideAreWaitedFor(t *testing.T) {
	for name, next := range map[string]func(s *Segment){
		"short":  func(s *Segment) { s.Append(testHeader(99), bytes.Repeat([]byte{99}, 60<<10)) },
		"long":   func(s *Segment) { s.Append(testHeader(99), bytes.Repeat([]byte{99}, mostPiece+100)) },
		"detach": func(s *Segment) { s.detach() },
		"close":  func(s *Segment) { check(t, s.Close()) },
		"unmap":  func(s *Segment) { s.Unmap() },
	} {
		t.Run(name, func(t *testing.T) {
			s, m := besideSegment(t, mappable(), 1<<20)
			m.takes = 50 * time.Millisecond
			var payloads [][]byte
			for s.beside.piece.Load() == nil {
				payloads = append(payloads, appendSlowly(s, 1, 3*smallPause)...)
			}
			for !s.beside.piece.Load().taken.Load() {
				time.Sleep(time.Millisecond)
			}
			next(s)
			if m.n.Load() != 1 {
				t.Error("was not waited for")
			}
			if name == "short" || name == "long" {
				payloads = append(payloads, bytes.Repeat([]byte{99}, 1000))
				wantPayloads(t, s, payloads)
			}
		})
	}
}

// TestZerosBesideFail: where zeros cannot be written beside commits, or at all, what is stored is there.
func TestZerosBesideFail(t *testing.T) {
	for at := range 4 {
		fs := faultfs.New(mappable())
		s, _ := besideSegment(t, fs, 1<<20)
		rule := fs.Add(faultfs.Rule{Kinds: faultfs.Write, At: int64(at + 1), Sticky: at == 3, Do: faultfs.Fail(errors.New("no zeros"))})
		wantPayloads(t, s, appendSlowly(s, 300, 3*smallPause))
		if rule.Fired() == 0 {
			t.Errorf("write %d: has not failed", at)
		}
	}
}

// TestZerosBesideOnDisk appends to real files, mapped by the system, while others read and sync them.
func TestZerosBesideOnDisk(t *testing.T) {
	s, name := onDisk(t, 4<<20, true)
	if _, ok := s.mapping.(vfs.Toucher); !ok {
		t.Fatal("what the system maps cannot be touched")
	}
	var others sync.WaitGroup
	var stop atomic.Bool
	others.Go(func() {
		for !stop.Load() {
			if err := cmp.Or(s.WriteOut(), s.Sync()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	payloads := appendSlowly(s, 2000, 2*smallPause)
	stop.Store(true)
	others.Wait()
	wantPayloads(t, s, payloads)
	same(t, s, name)
}

// TestZerosBesideAreCalledOff: a piece that nobody has begun to write is not waited for, and is not written later, over what was
// stored there meanwhile.
func TestZerosBesideAreCalledOff(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	s, name := onDisk(t, 1<<20, true)
	var stop atomic.Bool
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop.Store(true)
	for range 8 { // which have the processors for 10 ms at a time
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	calledOff := 0
	for i := 0; i < 200 && calledOff < 3; i++ {
		p := &piece{from: s.fill, to: min(s.fill+4096, int64(s.size))}
		s.beside.piece.Store(p)
		done := make(chan struct{})
		go func() {
			p.write(s.f, s.mapping.(vfs.Toucher))
			close(done)
		}()
		s.Append(testHeader(uint64(i+1)), bytes.Repeat([]byte{byte(i + 1)}, 4096))
		<-done
		if p.end == 0 {
			calledOff++
		}
	}
	if calledOff == 0 {
		t.Error("none of 200 pieces was called off")
	}
	check(t, s.WriteOut())
	check(t, s.Intact())
	same(t, s, name)
}
