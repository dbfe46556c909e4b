package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// linkPayloadBytes is the size of a link frame's payload: a Position, and the
// length of the segment's file.
const linkPayloadBytes = 16

// lengthUnit is what the length of every segment's file is a multiple of. The
// length is durable before the segment is used, so a file of another length, or
// one shorter than its link says, was cut afterwards.
const lengthUnit = 4096

// OverheadBytes is what a segment holds besides commits: file header and link.
var OverheadBytes = base.FileHeaderBytes + frame.PaddedBytes(linkPayloadBytes)

// MaxCapacity bounds a segment so that an offset fits a Position.
const MaxCapacity = 1 << 30

// Segment is a log segment open for writing.
type Segment struct {
	Num  uint64
	File base.ID

	f       vfs.File
	name    string
	size    int                     // of the file, and of buf
	buf     []byte                  // the arena; nil after Unmap
	mapping vfs.Mapping             // of the file, whose bytes buf is; nil: there is none
	mapped  atomic.Bool             // what is stored in buf is in the file
	fill    int64                   // the file is written up to here, if only with zeros; of whoever fills, then of whoever appends if it is mapped, else leads
	piece   int64                   // of zeros that was written last; as fill
	beside  beside                  // makes more of them beside the commits to a mapped segment
	end     [frame.HeaderBytes]byte // of whoever leads: the frame behind the last one, of a file that was used before
	ahead   ahead                   // what of long frames is written before WriteOut is asked to
	ident   frame.Identity
	sum     uint32 // Sum of the last frame: the next one's Prev

	tail    atomic.Int64 // end of the frames appended
	written atomic.Int64 // end of the bytes WriteAt has returned for
	synced  atomic.Int64 // end of the bytes known durable

	short       []byte // the last short frame of a mapped segment that is not provisional
	provisional bool   // see CreateMapped
	reused      bool   // the file was used before
	withZeros   bool   // commits are synced, and written to space that each sync would record as used: see zerosBehind
	failed      bool   // a write to it did; of whoever leads

	syncing sync.Mutex // one Sync at a time, so that none overlooks another's failure; none while detach is at work
	syncErr error      // guarded by syncing
	closed  bool       // guarded by syncing
}

// Create makes the file of segment num, as large as buf (a multiple of 4 KiB), and writes and syncs its
// header, and with zeros the first of them. The caller syncs the directory. Space for the whole segment is
// reserved: on a full disk the error matches vfs.IsNoSpace and no file is left.
func Create(fsys vfs.FS, name string, num uint64, store base.ID, buf []byte, zeros bool) (*Segment, error) {
	s, err := makeFile(fsys, name, num, len(buf))
	if err != nil {
		return nil, err
	}
	s.buf = buf
	if err := s.begin(store, zeros); err != nil {
		return nil, s.withdraw(fsys, err)
	}
	return s, nil
}

// makeFile makes the file of a segment, empty, of size bytes.
func makeFile(fsys vfs.FS, name string, num uint64, size int) (*Segment, error) {
	f, err := fsys.Create(name)
	if err != nil {
		return nil, notMade{fmt.Errorf("create log segment: %w", err)}
	}
	s := &Segment{Num: num, File: base.NewID(), f: f, name: name, size: size}
	s.ident = frame.NewIdentity(s.File)
	vfs.WriteInPlace(f)
	if err := s.reserve(size); err != nil {
		f.Close()
		err = fmt.Errorf("create log segment %s: %w", name, err)
		if left := fsys.Remove(name); left != nil {
			return nil, errors.Join(err, left)
		}
		return nil, notMade{err}
	}
	return s, nil
}

// notMade is the error of a segment whose file was not made, or removed before anything but zeros was written to it.
type notMade struct{ error }

func (e notMade) Unwrap() error { return e.error }

// NotMade reports whether err is that of a segment for whose file there was no space, so that its number can be used again: what a
// power cut may bring back under its name is no more than what there would be of a file that was not synced.
func NotMade(err error) bool {
	var e notMade
	return errors.As(err, &e) && vfs.IsNoSpace(err)
}

// withdraw closes and removes the file of a segment that cannot be made because of err.
func (s *Segment) withdraw(fsys vfs.FS, err error) error {
	s.f.Close()
	return errors.Join(fmt.Errorf("create log segment %s: %w", s.name, err), fsys.Remove(s.name))
}

// begin writes and syncs the header, and zeros with it if there are to be any: to sync so many takes hardly longer.
func (s *Segment) begin(store base.ID, zeros bool) error {
	s.tail.Store(int64(copy(s.buf, s.header(store))))
	err := s.WriteOut()
	if err == nil && zeros && s.fill < firstZeros {
		err = s.fillPiece(s.written.Load(), firstZeros)
	}
	if err != nil {
		return err
	}
	return s.Sync()
}

func (s *Segment) header(store base.ID) []byte {
	version := uint32(base.FormatVersion)
	if s.size > frame.MaxShortBytes {
		version = base.LongLogVersion
	}
	return base.AppendFileHeader(nil, base.FileHeader{
		Type: base.FileLog, Version: version, File: s.File, Store: store, Num: s.Num, Reused: s.reused, Provisional: s.provisional})
}

var zeros [256 << 10]byte

const (
	firstFill  = 1 << 20  // how much of a segment is filled with zeros before it is used, if nothing is synced
	firstZeros = 64 << 10 // and if commits are: to sync so many takes hardly longer than a header
	mostZeroed = 32 << 10 // what is written at once and longer takes no zeros with it: they would cost as much as they save
)

// Fill writes the first zeros to the free part of a segment nothing was appended to, until stop reports true. Only
// speed depends on them: space that is merely reserved has to be recorded as used when it is written to, at the first
// sync through the file system's journal, which doubles the time of that sync (docs/ARCHITECTURE.md). With sync they
// are made durable, unless they are in the file already, and the others go with the commits (zerosBehind). Without, the
// others go ahead of them (zerosAhead), so that no zeros are written that nobody has a use for; of a mapped segment the
// very first ones are written in any case. After an error the segment must not be used.
func (s *Segment) Fill(sync bool, stop func() bool) error {
	most := int64(firstFill)
	if sync {
		most = firstZeros
	}
	most = min(most, int64(s.size))
	s.withZeros = sync && !s.Mapped()
	if s.Mapped() {
		if err := s.fillFirst(); err != nil {
			return fmt.Errorf("write log segment %s at offset %d: %w", s.name, s.fill, err)
		}
		if sync { // its commits are long
			return nil
		}
	}
	for s.fill < most && !stop() {
		if err := s.fillPiece(s.behind(s.written.Load()), min(most, int64(len(zeros)))); err != nil {
			return fmt.Errorf("write log segment %s at offset %d: %w", s.name, s.fill, err)
		}
		if sync {
			if err := s.f.Sync(); err != nil {
				return fmt.Errorf("sync log segment %s: %w", s.name, err)
			}
		}
		runtime.Gosched() // commits that wait for the processor come first: a system call as short as these does not give it up
	}
	return nil
}

// zerosBehind writes zeros behind what is written from one offset to another, so that the sync that is about to come
// records their space as used, too, and those after it find that done. Only speed depends on it.
func (s *Segment) zerosBehind(from, to int64) {
	if s.fill >= to || !s.withZeros || to-from > mostZeroed {
		return
	}
	s.piece = min(max(2*s.piece, firstZeros), mostPiece)
	s.ahead.beside(to, func() {
		if s.fillPiece(s.behind(to), s.piece) != nil {
			s.withZeros, s.failed = false, true
		}
	})
}

// fillPiece writes zeros up to a multiple of size; what is in use of the file ends at used.
func (s *Segment) fillPiece(used, size int64) error {
	from := max(s.fill, used)
	to := pieceEnd(from, size, int64(s.size))
	if _, err := s.f.WriteAt(zeros[:to-from], from); err != nil {
		return err
	}
	s.fill = to
	return nil
}

// pieceEnd returns the first multiple of size behind from, if the file, which has length bytes, is as long.
func pieceEnd(from, size, length int64) int64 { return min(from+size-from%size, length) }

// reserve makes sure that no write inside the segment can run out of space, by
// writing zeros where the file system cannot preallocate.
func (s *Segment) reserve(size int) error {
	err := s.f.Preallocate(0, int64(size))
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	s.fill = int64(size)
	for off := 0; off < size; off += len(zeros) {
		if _, err := s.f.WriteAt(zeros[:min(len(zeros), size-off)], int64(off)); err != nil {
			return err
		}
	}
	return nil
}

// Link appends the segment's first frame: the segment before it ends at end,
// with a last frame whose Sum is prev. durable is the current durable mark.
func (s *Segment) Link(end, durable Position, prev uint32) {
	s.sum = prev
	var p [linkPayloadBytes]byte
	binary.LittleEndian.PutUint64(p[:], uint64(end))
	binary.LittleEndian.PutUint64(p[8:], uint64(s.size))
	s.Append(frame.Header{Kind: frame.KindLink, Durable: uint64(durable)}, p[:])
}

// DecodeLink decodes the payload of a link frame.
func DecodeLink(payload []byte) (end Position, length int64, ok bool) {
	if len(payload) != linkPayloadBytes {
		return 0, 0, false
	}
	return Position(binary.LittleEndian.Uint64(payload)), int64(binary.LittleEndian.Uint64(payload[8:])), true
}

// Room reports whether a frame with a payload of n bytes fits.
func (s *Segment) Room(n int) bool {
	return s.tail.Load()+int64(frame.PaddedBytes(n)) <= int64(s.size)
}

// Append encodes a frame, whose payload comes in parts, into the arena. It is not written to
// the file yet, unless that is the arena, or but for pieces of a long one. Append returns the offset of the payload. There must
// be Room.
func (s *Segment) Append(h frame.Header, payload ...[]byte) (at int64) {
	at, end := s.Stage(h, payload...)
	s.Publish(end)
	return at
}

// Stage is Append, but nobody writes the frame before Publish is told where it ends: until then it may be taken back (Unsay).
func (s *Segment) Stage(h frame.Header, payload ...[]byte) (at, end int64) {
	off := s.tail.Load()
	if !s.mapped.Load() || !arena.Survives(func() { end = s.encode(off, h, payload) }) {
		s.detach()
		end = s.encode(off, h, payload)
	}
	return off + frame.HeaderBytes, end
}

// Publish makes what was staged a part of the log.
func (s *Segment) Publish(end int64) { s.tail.Store(end) }

// Unsay makes the frame that was staged last, whose payload is at an offset, one that nobody finds. Nothing may be appended
// any more.
func (s *Segment) Unsay(at int64) {
	header := s.buf[at-frame.HeaderBytes : at]
	if !s.mapped.Load() || !arena.Survives(func() { clear(header) }) {
		s.detach()
		clear(header)
		_, _ = s.f.WriteAt(header, at-frame.HeaderBytes) // what is stored there is in the file; a log that takes no write is lost anyhow
	}
}

// encode puts a frame at offset off of the arena, and returns where it ends.
func (s *Segment) encode(off int64, h frame.Header, payload [][]byte) (end int64) {
	n := frame.Length(payload)
	end = off + int64(frame.PaddedBytes(n))
	at := off + frame.HeaderBytes
	h.Prev = s.sum
	mapped := s.mapped.Load()
	if mapped && hasLong(payload) || !mapped && n >= AheadBytes {
		sum := sumBeside(payload, n)
		defer sum() // nobody reads the payload any more when this is left, by a memory fault too
		if mapped {
			s.storeLong(payload, at, end)
		} else {
			s.copyAhead(payload, n, at)
		}
		s.sum = frame.PutSummed(s.buf[off:end], s.ident, off, n, sum(), h).Sum
		return end
	} else if mapped && !s.provisional && s.writeShort(off, n, h, payload) {
		return end
	} else if mapped {
		s.beside.begin()
		s.zerosAhead(at, end)
	}
	for _, part := range payload {
		at += int64(copy(s.buf[at:], part))
	}
	s.sum = frame.Put(s.buf[off:end], s.ident, off, n, h).Sum
	if mapped {
		s.beside.end(s, end)
	}
	return end
}

// Tail returns the position behind the last frame appended, and its Sum. It is for who appends.
func (s *Segment) Tail() (Position, uint32) { return At(s.Num, s.tail.Load()), s.sum }

// Appended returns the offset behind the last frame appended. Anybody may ask at any time.
func (s *Segment) Appended() int64 { return s.tail.Load() }

// Capacity returns the segment's size in bytes. Anybody may ask at any time: who looks at a tree.State that is no
// longer the newest finds segments there that were unmapped.
func (s *Segment) Capacity() int { return s.size }

// Buffer returns the arena: the slice given to Create, or the mapped file.
func (s *Segment) Buffer() []byte { return s.buf }

// WriteOut writes to the file what has been appended up to now.
func (s *Segment) WriteOut() error {
	from, to := s.written.Load(), s.tail.Load()
	if from == to {
		return nil
	}
	if !s.mapped.Load() { // looked at after tail: detach comes before what it was for is appended
		if err := s.write(from, to); err != nil {
			return fmt.Errorf("write log segment %s at offset %d: %w", s.name, from, err)
		}
	}
	s.written.Store(to)
	return nil
}

// write writes what lies between two offsets. What is to stand behind it, where an earlier use
// of the file has left something, comes first: so there is no moment at which all of it is in
// the file and it does not end there.
func (s *Segment) write(from, to int64) (err error) {
	if s.behind(to)-to == frame.HeaderBytes {
		frame.PutEnd(&s.end, s.ident, to)
		_, err = s.f.WriteAt(s.end[:], to)
	}
	if err == nil {
		err = s.writeRest(from, to)
	}
	if err == nil {
		s.zerosBehind(from, to)
	}
	s.failed = s.failed || err != nil
	return err
}

// behind returns the end of what is in use of the file where the frames end at to: of one
// that was used before, if there is room, the end of the frame that says so.
func (s *Segment) behind(to int64) int64 {
	if end := to + frame.HeaderBytes; s.reused && end <= int64(s.size) {
		return end
	}
	return to
}

// Abandon gives up what has been appended but not written: it failed, and the
// next segment's link says that this one ends before it.
func (s *Segment) Abandon() {
	s.ahead.drop()
	s.tail.Store(s.written.Load())
}

// Sync makes durable what has been written up to now. A failure is final: the
// kernel reports it once and then forgets it, so every later Sync must fail too.
func (s *Segment) Sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	to := s.written.Load()
	if s.syncErr != nil || s.closed || s.synced.Load() >= to {
		return s.syncErr
	}
	if s.mapped.Load() {
		s.easeSync(s.synced.Load(), to)
	}
	if err := s.f.Sync(); err != nil {
		s.syncErr = fmt.Errorf("sync log segment %s: %w", s.name, err)
		return s.syncErr
	}
	s.synced.Store(to)
	return nil
}

// Synced returns the position up to which the segment is known durable.
func (s *Segment) Synced() Position { return At(s.Num, s.synced.Load()) }

// Written returns the offset up to which the file has been written.
func (s *Segment) Written() int64 { return s.written.Load() }

// Close closes the file. The segment counts as synced from then on: it is closed
// once tables hold what it held, or for good.
func (s *Segment) Close() error {
	s.beside.settle()
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.synced.Store(s.written.Load())
	return s.f.Close()
}

// WriteOut writes out what has been appended to segments, which are given oldest first.
func WriteOut(segments []*Segment) error {
	for _, s := range segments {
		if err := s.WriteOut(); err != nil {
			return err
		}
	}
	return nil
}

// SyncAll makes durable what has been written to segments, which are given oldest first.
func SyncAll(segments []*Segment) error {
	for _, s := range segments {
		if err := s.Sync(); err != nil {
			return err
		}
	}
	return nil
}
