package wal

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/vfs"
)

// Where commits pause, the zeros that go ahead of those to a mapped segment (zerosAhead) are written beside them, by a goroutine
// of their own: a commit that wrote a piece of them took twenty to fifty times as long as others. It is started behind the
// second commit in the second half of a piece, if that came smallPause after the first one. Where commits follow each other
// nothing would be gained: who comes to the end of the piece would wait.
//
// While a piece is written beside, nothing is stored behind fill, and no other zeros are written: all that would waits first.
// A piece that nobody has begun to write is not waited for, for the scheduler may come to that late: it is called off.

// smallPause is the least pause between commits that have zeros written beside them: about what it takes to start that.
const smallPause = 10 * time.Microsecond

// beside has zeros written beside the commits to a segment. Its methods but settle are for who appends.
type beside struct {
	piece  atomic.Pointer[piece] // what is being written, or was and fill does not say so yet; nil if nothing
	timed  bool                  // last was taken for this piece
	last   time.Time             // when the first frame in its second half was stored; zero when the next one has come
	pauses bool                  // that was smallPause later
}

// piece is zeros from one offset of a segment's file to another, which are written beside its commits.
type piece struct {
	from, to int64
	taken    atomic.Bool // by who writes it, or who calls it off
	writing  sync.Mutex  // held while it is written
	end      int64       // where it ends when it was; of whoever holds writing
}

// begin is told that a frame is about to be stored.
func (b *beside) begin() {
	if !b.last.IsZero() {
		b.pauses, b.last = time.Since(b.last) > smallPause, time.Time{}
	}
}

// end is told that a frame was stored, up to end, by whoever appends to s.
func (b *beside) end(s *Segment, end int64) {
	if s.fill-end >= s.piece/2 || b.piece.Load() != nil {
		return
	}
	if !b.timed {
		b.timed, b.last = true, time.Now()
		return
	}
	from := max(s.fill, end) // behind fill something is stored only where zeros could not be written
	if t, ok := s.mapping.(vfs.Toucher); ok && b.pauses && s.provisional && from < int64(s.size) && runtime.GOMAXPROCS(0) > 1 {
		p := &piece{from: from, to: pieceEnd(from, nextPiece(s.piece), int64(s.size))}
		b.piece.Store(p)
		go p.write(s.f, t)
	}
}

// write writes the zeros, and makes the pages they are in, unless the piece was called off.
func (p *piece) write(f vfs.File, t vfs.Toucher) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if !p.taken.CompareAndSwap(false, true) {
		return
	}
	if _, err := f.WriteAt(zeros[:p.to-p.from], p.from); err != nil {
		return // who comes to it will tell
	}
	t.Touch(p.from, p.to)
	p.end = p.to
}

// settle calls the piece off, or waits until it is written, and returns where it ends then, or 0. Nothing is written beside
// from then on, unless something is appended. Anybody may call it when nothing is.
func (b *beside) settle() (end int64) {
	p := b.piece.Load()
	if p == nil || p.taken.CompareAndSwap(false, true) {
		return 0
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.end
}

// wait is settle, and returns where there are zeros up to. Whoever writes it, the next piece is another one.
func (b *beside) wait(s *Segment) (fill int64) {
	end := b.settle()
	if end > 0 {
		s.piece = nextPiece(s.piece)
	}
	b.timed, b.pauses, b.last = false, false, time.Time{}
	b.piece.Store(nil)
	return max(s.fill, end)
}
