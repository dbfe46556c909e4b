package wal

import (
	"hash/crc32"
	"runtime"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// A long frame is on its way to the device while it is still being copied to the arena: a piece
// of its payload is written as soon as it is there, and the device asked to begin with it. So the
// sync that the commit waits for has only the last piece to wait for. The rest is written by
// WriteOut, the header last: until then the bytes are what a torn tail leaves behind.

// AheadBytes is how long a payload is at least that goes ahead, in pieces half as long at least. Only
// tests that want short ones to do so change it, before they make a segment.
var AheadBytes = 256 << 10

// Of a longer payload pieces are one part in aheadShare, up to mostAhead bytes.
const (
	aheadShare = 16
	mostAhead  = 1 << 20
)

// pageBytes: pieces end where pages do, so that none is written twice.
const pageBytes = 4 << 10

// ahead is what of a segment stands in the file beyond what WriteOut has written.
type ahead struct {
	mu    sync.Mutex
	spans []span // in order, none empty
	end   int64  // of the last frame of which something is written, or about to be
}

type span struct{ from, to int64 }

// claim notes that something of a frame that ends at end is about to be written.
func (a *ahead) claim(end int64) {
	a.mu.Lock()
	a.end = end
	a.mu.Unlock()
}

// beside calls write, which writes to the file from offset to on, unless something may stand there, or come there
// meanwhile.
func (a *ahead) beside(to int64, write func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end <= to {
		write()
	}
}

// put notes that s is in the file, or will be left to WriteOut if it is empty.
func (a *ahead) put(s span) {
	if s.from < s.to {
		a.mu.Lock()
		a.spans = append(a.spans, s)
		a.mu.Unlock()
	}
}

// drop forgets what is in the file.
func (a *ahead) drop() {
	a.mu.Lock()
	a.spans = nil
	a.mu.Unlock()
}

// next takes out the first span that ends before to; an empty one at to if there is none.
func (a *ahead) next(to int64) span {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.spans) == 0 || a.spans[0].to > to {
		return span{to, to}
	}
	s := a.spans[0]
	a.spans = a.spans[1:]
	return s
}

// copyAhead copies the parts of a payload of n bytes to offset at of the arena, and writes what it
// can of it to the file. What cannot be written is left to WriteOut, which says why.
func (s *Segment) copyAhead(parts [][]byte, n int, at int64) {
	device, _ := s.f.(vfs.WriteStarter)
	s.ahead.claim(at + int64(n))
	ok := true
	most := max(AheadBytes/2, min(n/aheadShare, mostAhead))
	sent := span{from: (at + pageBytes - 1) &^ (pageBytes - 1)}
	sent.to = sent.from
	for _, part := range parts {
		for len(part) > 0 {
			copied := copy(s.buf[at:], part[:min(len(part), most)])
			at, part = at+int64(copied), part[copied:]
			if piece := at&^(pageBytes-1) - sent.to; ok && piece >= int64(most) {
				if _, err := s.f.WriteAt(s.buf[sent.to:sent.to+piece], sent.to); err != nil {
					ok = false
					continue
				}
				if device != nil {
					device.StartWriteback(sent.to, piece)
				}
				sent.to += piece
			}
		}
	}
	s.ahead.put(sent)
}

// besideBytes is how long a payload is that is summed up on another processor, if there is one, while
// it is copied.
const besideBytes = 256 << 10

// sumBeside returns what waits for the checksum of a payload of n bytes: of the parts, since to
// read a mapped arena would bring its pages into the process first.
func sumBeside(parts [][]byte, n int) func() uint32 {
	sum := sync.OnceValue(func() (sum uint32) {
		for _, part := range parts {
			sum = crc32.Update(sum, base.Castagnoli, part)
		}
		return sum
	})
	if n >= besideBytes && runtime.GOMAXPROCS(0) > 1 {
		go sum()
	}
	return sum
}

// writeRest writes what lies between two offsets, but for what is in the file already: from the
// end, so that the header of a frame comes after all that it vouches for.
func (s *Segment) writeRest(from, to int64) error {
	sent := s.ahead.next(to)
	if sent.to < to {
		if err := s.writeRest(sent.to, to); err != nil {
			return err
		}
	}
	if from == sent.from {
		return nil
	}
	_, err := s.f.WriteAt(s.buf[from:sent.from], from)
	return err
}
