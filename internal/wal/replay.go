package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// Recorded is a segment as the manifest knows it.
type Recorded struct {
	Num         uint64
	File        base.ID
	Provisional bool // it was never synced as a whole: it may be missing, or without its header
}

// Loaded is a segment read back into memory.
type Loaded struct {
	Recorded
	Name string
	Buf  []byte // the file's bytes

	walk    frame.Walker
	linked  bool     // has an intact link frame
	link    Position // where it says the segment before ends
	linkSum uint32   // Prev of the link: Sum of the last frame before
	mark    uint64   // durable mark of the link
}

// Load reads a segment's file into buf, which must be as long as the file, and
// checks that it is the file the manifest means.
func Load(f vfs.File, name string, rec Recorded, store base.ID, buf []byte) (*Loaded, error) {
	if n, err := f.ReadAt(buf, 0); n < len(buf) {
		return nil, fmt.Errorf("read log segment %s: %w", name, err)
	}
	h, err := base.DecodeFileHeader(buf, base.FileLog, name)
	if err == nil && (h.Store != store || h.File != rec.File || h.Num != rec.Num) {
		return nil, base.Corruptf(name, 16, "log segment is not the one the manifest names (of another store, or a stale copy)")
	}
	s := Torn(name, rec, buf)
	s.walk.Reused = h.Reused
	length := int64(len(buf))
	if err == nil {
		length = s.readLink()
	}
	if length < int64(len(buf)) { // which no power cut makes of it, provisional or not
		return nil, base.Corruptf(name, length, "log segment of %d bytes is longer than its link says", len(buf))
	}
	if err == nil && !rec.Provisional && (length > int64(len(buf)) || length%lengthUnit != 0) {
		err = base.Corruptf(name, int64(len(buf)), "log segment has been cut to %d bytes", len(buf))
	}
	switch {
	case err == nil:
		return s, nil
	case rec.Provisional && errors.Is(err, base.ErrCorrupt):
		return Torn(name, rec, buf), nil
	}
	return nil, err
}

// Torn is what is left of a provisional segment after a power cut has taken away its header: the log
// ends before it. Its frames may still say what was durable.
func Torn(name string, rec Recorded, buf []byte) *Loaded {
	return &Loaded{Recorded: rec, Name: name, Buf: buf,
		walk: frame.Walker{ID: frame.NewIdentity(rec.File), Buf: buf, Off: base.FileHeaderBytes}}
}

// Linked reports whether the segment has an intact link. What has none is not part of the log.
func (s *Loaded) Linked() bool { return s.linked }

// readLink looks at the first frame, and returns how long it says that the file is; as
// long as it is where there is no link. Its Prev is taken on trust here and compared with the
// segment before by Replay.
func (s *Loaded) readLink() int64 {
	h, payload, ok := frame.Decode(s.Buf[base.FileHeaderBytes:], s.walk.ID, base.FileHeaderBytes)
	if !ok || h.Kind != frame.KindLink {
		return int64(len(s.Buf))
	}
	var length int64
	if s.link, length, ok = DecodeLink(payload); !ok {
		return int64(len(s.Buf))
	}
	s.linked, s.linkSum, s.mark = true, h.Prev, h.Durable
	s.walk.Sum = h.Prev
	s.walk.Next()
	return length
}

// LoadStray looks at a file of the log, given by its bytes, that the manifest does not name, though
// it is not too old for that. It returns nil if there is nothing in it that was committed. A commit
// proves that the manifest has lost an edit, which is an error: no frame is written before the edit
// that names its segment is synced. But that of a provisional segment is not, and a power cut may
// take it away, and the header, too: then what it held is not part of the log, which ends before it.
func LoadStray(buf []byte, name string, num uint64, store base.ID) (*Loaded, error) {
	rec := Recorded{Num: num, Provisional: true}
	used := min(len(buf), base.FileHeaderBytes)
	h, err := base.DecodeFileHeader(buf, base.FileLog, name)
	switch {
	case errors.Is(err, base.ErrFormatTooNew):
		return nil, err
	case err != nil && !base.MayBeOurs(base.FileLog, buf):
		return nil, nil
	case err == nil && (!h.Provisional || h.Store != store || h.Num != num):
		return nil, noCommit(bytes.NewReader(buf), name, frame.NewIdentity(h.File))
	case err == nil:
		rec.File = h.File
		if link, _, ok := frame.Decode(buf[used:], frame.NewIdentity(h.File), int64(used)); ok && link.Kind == frame.KindLink {
			used += int(link.Length)
		}
	}
	if zero(buf[used:]) {
		return nil, nil
	}
	return Torn(name, rec, buf), nil
}

// NoCommits looks at a file of the log that begins with head where the manifest, which is whole, says that there is no log, and
// returns an error if a commit is in it, provisional or not: the manifest is of an earlier time. What has no intact header
// is nobody's.
func NoCommits(f io.ReaderAt, head []byte, name string) error {
	h, err := base.DecodeFileHeader(head, base.FileLog, name)
	switch {
	case errors.Is(err, base.ErrFormatTooNew):
		return err
	case err != nil:
		return nil
	}
	return noCommit(f, name, frame.NewIdentity(h.File))
}

// noCommit returns an error if the header of a commit is in a file.
func noCommit(f io.ReaderAt, name string, id frame.Identity) error {
	buf := make([]byte, 256<<10)
	for off := int64(base.FileHeaderBytes); ; {
		n, err := f.ReadAt(buf, off)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read log segment %s: %w", name, err)
		}
		at := 0
		for ; at+frame.HeaderBytes <= n; at += frame.Align {
			h, ok := frame.DecodeHeader(buf[at:n], id, off+int64(at))
			if ok && (h.Kind == frame.KindCommit || h.Kind == frame.KindIngest) {
				return base.Corruptf(name, -1, "it holds commits, but the manifest does not name it: it is an older one, or its end is missing")
			}
		}
		if n < len(buf) {
			return nil
		}
		off += int64(at)
	}
}

// mostSummed is how many times the size of a segment EachWhole sums of payloads that turn out not to be whole: more than
// failed writes leave, each of which may leave one.
const mostSummed = 4

// EachWhole calls each with the payload of every frame of a kind that is whole in the segment, whether the
// chain reaches it or not: another segment may say that the log goes on elsewhere, and a power cut take
// that away. It reports whether it has looked at all: not where so many headers are intact whose payloads are not
// that nobody but who means harm has made them.
func (s *Loaded) EachWhole(kind frame.Kind, each func(payload []byte)) (all bool) {
	size := int64(len(s.Buf))
	left := mostSummed * size
	for off := int64(base.FileHeaderBytes); off < size; {
		h, ok := frame.DecodeHeader(s.Buf[off:], s.walk.ID, off)
		if !ok || h.Kind != kind || off+int64(h.Length) > size {
			off += frame.Align
			continue
		}
		if _, payload, ok := frame.Decode(s.Buf[off:], s.walk.ID, off); ok {
			off += int64(h.Length)
			each(payload)
			continue
		}
		if left -= int64(h.Length); left < 0 {
			return false
		}
		off += frame.Align
	}
	return true
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// Records returns how many sequences the frames of the segment use, as far as
// their headers are intact: a bound for what Replay will find.
func (s *Loaded) Records() (n int) {
	for off := int64(base.FileHeaderBytes); off < int64(len(s.Buf)); {
		h, ok := frame.DecodeHeader(s.Buf[off:], s.walk.ID, off)
		if !ok {
			break
		}
		n += int(min(h.Count, h.Length/2))
		off += int64(h.Length)
	}
	return n
}

// Replay is the state of a walk over the log, segment after segment.
type Replay struct {
	end    Position // end of the chain of intact frames so far
	sum    uint32
	marked uint64 // greatest durable mark seen anywhere
	cut    bool   // the chain has ended; what follows only counts

	Dropped     int64    // bytes behind the chain's end
	DroppedFrom Position // where they begin, if any
}

// Segment walks one segment and calls each for every frame of the chain that is
// not a link. next is the segment after it, if there is one: its link decides
// where this one ends. Segments must be given in order.
func (r *Replay) Segment(s, next *Loaded, each func(h frame.Header, at int64, payload []byte) error) error {
	if !r.begin(s) {
		r.drop(s, base.FileHeaderBytes)
		return nil
	}
	stop := int64(len(s.Buf))
	if next != nil && next.linked && next.link.Segment() == s.Num {
		stop = min(stop, next.link.Offset())
	}
	for s.walk.Off < stop {
		at := s.walk.Off
		h, payload, ok := s.walk.Next()
		if !ok {
			break
		}
		if h.Kind == frame.KindLink {
			return base.Corruptf(s.Name, at, "a second link frame")
		}
		r.marked = max(r.marked, h.Durable)
		if err := each(h, at+frame.HeaderBytes, payload); err != nil {
			return err
		}
	}
	r.end, r.sum = At(s.Num, s.walk.Off), s.walk.Sum
	if s.walk.Off != stop {
		r.drop(s, s.walk.Off)
	}
	return nil
}

// begin reports whether s continues the chain.
func (r *Replay) begin(s *Loaded) bool {
	if s.linked {
		r.marked = max(r.marked, s.mark)
	}
	if r.cut {
		return false
	}
	if !s.linked || r.end != 0 && (s.link != r.end || s.linkSum != r.sum) {
		r.cut = true
		if r.end == 0 {
			r.end = At(s.Num, base.FileHeaderBytes)
		}
		return false
	}
	return true
}

// drop counts what stands in s from off on as not part of the log.
func (r *Replay) drop(s *Loaded, off int64) {
	w := frame.Walker{ID: s.walk.ID, Buf: s.Buf, Off: off, Reused: s.walk.Reused}
	t := w.Tail()
	r.marked = max(r.marked, t.Durable)
	if t.Bytes > 0 {
		if r.Dropped == 0 {
			r.DroppedFrom = At(s.Num, off)
		}
		r.Dropped += t.Bytes
		r.cut = true
	}
}

// Finish applies the torn-tail rule once every segment has been walked: bytes
// known durable may not be missing. floor is a durable position known from
// elsewhere, 0 if none is, file the name of a segment's file. It returns where the
// log ends.
func (r *Replay) Finish(file func(segment uint64) string, floor Position) (Position, error) {
	if mark := max(Position(r.marked), floor); mark > r.end {
		return r.end, base.Corruptf(file(r.end.Segment()), r.end.Offset(),
			"the log ends at %v but was durable up to %v: damaged, not torn", r.end, mark)
	}
	return r.end, nil
}

// Chain orders the segments of a log, given by ascending number, as their links
// do. live are those the log consists of, oldest first: going back from the last
// one that has a link. A segment that a later one's link passes over is void (its
// writes failed and nobody was told otherwise), as is one never used. rest are
// those behind the last linked one; they hold nothing but, perhaps, torn bytes.
func Chain(segments []*Loaded) (live, rest []*Loaded) {
	last := -1
	for i, s := range segments {
		if s.linked {
			last = i
		}
	}
	rest = segments[last+1:]
	for i := last; i >= 0; {
		s := segments[i]
		live = append(live, s)
		if i = previous(segments[:i], s); i < 0 {
			break
		}
	}
	slices.Reverse(live)
	return live, rest
}

// previous returns the index in older of the segment that s continues, or -1. A
// segment whose link is lost continues the nearest one that has its own.
func previous(older []*Loaded, s *Loaded) int {
	for i := len(older) - 1; i >= 0; i-- {
		if s.linked && older[i].Num == s.link.Segment() || !s.linked && older[i].linked {
			return i
		}
	}
	return -1
}
