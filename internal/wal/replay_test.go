package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// builder writes a log of several segments, in memory only.
type builder struct {
	t     testing.TB
	fs    *memfs.FS
	segs  []*Segment
	seq   uint64
	frame []Position // ends of the commits
}

func newBuilder(t testing.TB) *builder {
	m := memfs.New()
	m.StopJournal()
	return &builder{t: t, fs: m, seq: 1}
}

// segment begins the next segment, linked to the end of the last.
func (b *builder) segment(num uint64, durable Position) *Segment {
	s := create(b.t, b.fs, num, lengthUnit)
	if n := len(b.segs); n > 0 {
		end, sum := b.segs[n-1].Tail()
		s.Link(end, durable, sum)
	} else {
		s.Link(0, durable, 0)
	}
	b.segs = append(b.segs, s)
	return s
}

func (b *builder) commit(durable Position, keys ...string) {
	s := b.segs[len(b.segs)-1]
	commit(s, b.seq, durable, keys...)
	b.seq += uint64(len(keys))
	end, _ := s.Tail()
	b.frame = append(b.frame, end)
}

// files writes everything out and returns the files' bytes.
func (b *builder) files() (files [][]byte) {
	for _, s := range b.segs {
		check(b.t, s.WriteOut())
		data, err := b.fs.ReadFile(s.name)
		check(b.t, err)
		files = append(files, data)
	}
	return files
}

// bytesFile is a vfs.File over bytes, as far as Load needs one.
type bytesFile struct {
	vfs.File
	data []byte
}

func (f bytesFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(p, off)
}

// replay loads and replays files as the log of b's segments.
func (b *builder) replay(files [][]byte, floor Position) (keys []string, r *Replay, err error) {
	var loaded []*Loaded
	for i, data := range files {
		if data == nil {
			continue
		}
		s := b.segs[i]
		l, err := Load(bytesFile{data: data}, s.name, Recorded{Num: s.Num, File: s.File}, storeID, make([]byte, len(data)))
		if err != nil {
			return nil, nil, err
		}
		loaded = append(loaded, l)
	}
	return replayAll(loaded, floor)
}

func replayAll(loaded []*Loaded, floor Position) (keys []string, r *Replay, err error) {
	r = &Replay{}
	live, rest := Chain(loaded)
	next := uint64(0)
	each := func(h frame.Header, at int64, payload []byte) error {
		if next != 0 && h.Seq != next {
			return fmt.Errorf("sequence %d, want %d", h.Seq, next)
		}
		next = h.Seq + uint64(h.Count)
		for len(payload) > 0 {
			e, n := frame.DecodeEntry(payload)
			if n == 0 {
				return errors.New("malformed entry")
			}
			keys = append(keys, string(e.Key[1:]))
			payload = payload[n:]
		}
		return nil
	}
	for i, s := range live {
		var after *Loaded
		if i+1 < len(live) {
			after = live[i+1]
		}
		if err := r.Segment(s, after, each); err != nil {
			return keys, r, err
		}
	}
	for _, s := range rest {
		if err := r.Segment(s, nil, each); err != nil {
			return keys, r, err
		}
	}
	_, err = r.Finish(func(uint64) string { return "log" }, floor)
	return keys, r, err
}

// three is a log of three segments with seven commits. Nothing is marked durable
// but the files' headers, unless marks is set: then each frame's mark is the end
// of the frame before.
func three(t testing.TB, marks bool) *builder {
	b := newBuilder(t)
	mark := func() Position {
		if !marks || len(b.frame) == 0 {
			return 0
		}
		return b.frame[len(b.frame)-1]
	}
	b.segment(2, 0)
	b.commit(mark(), "a", "b")
	b.commit(mark(), "c")
	b.commit(mark(), "d")
	b.segment(5, mark())
	b.commit(mark(), "e")
	b.commit(mark(), "f", "g", "h")
	b.segment(6, mark())
	b.commit(mark(), "i")
	b.commit(mark(), "j")
	return b
}

const threeKeys = "[a b c d e f g h i j]"

func TestReplay(t *testing.T) {
	for _, marks := range []bool{false, true} {
		b := three(t, marks)
		keys, r, err := b.replay(b.files(), b.frame[len(b.frame)-1])
		if err != nil || fmt.Sprint(keys) != threeKeys || r.Dropped != 0 || r.DroppedFrom != 0 {
			t.Errorf("%v, %+v, %v", keys, r, err)
		}
		if r.end != b.frame[len(b.frame)-1] {
			t.Errorf("ends at %v", r.end)
		}
	}
}

// TestRecordsBound: Records is never less than what Replay finds.
func TestRecordsBound(t *testing.T) {
	b := three(t, false)
	for i, data := range b.files() {
		s := b.segs[i]
		l, err := Load(bytesFile{data: data}, s.name, Recorded{Num: s.Num, File: s.File}, storeID, make([]byte, len(data)))
		check(t, err)
		if got, want := l.Records(), []int{4, 4, 2}[i]; got != want {
			t.Errorf("segment %d: %d records, want %d", s.Num, got, want)
		}
	}
}

// TestLoadRefuses files that are not the segment the manifest means.
func TestLoadRefuses(t *testing.T) {
	b := newBuilder(t)
	s := b.segment(2, 0)
	data := b.files()[0]
	load := func(data []byte, rec Recorded, store base.ID) error {
		_, err := Load(bytesFile{data: data}, "f", rec, store, make([]byte, len(data)))
		return err
	}
	rec := Recorded{Num: s.Num, File: s.File}
	check(t, load(data, rec, storeID))
	provisional := rec
	provisional.Provisional = true
	check(t, load(data, provisional, storeID))
	check(t, load(data[:2000], provisional, storeID))
	other := s.File
	other[0] ^= 1
	for name, err := range map[string]error{
		"another file id":                       load(data, Recorded{Num: 2, File: other}, storeID),
		"another number":                        load(data, Recorded{Num: 3, File: s.File}, storeID),
		"another store":                         load(data, rec, fileID),
		"no magic":                              load(make([]byte, 4096), rec, storeID),
		"too short":                             load(data[:40], rec, storeID),
		"cut off":                               load(data[:2000], rec, storeID),
		"longer":                                load(append(slices.Clone(data), make([]byte, 4096)...), rec, storeID),
		"longer, and provisional":               load(append(slices.Clone(data), make([]byte, 4096)...), provisional, storeID),
		"longer by a part of a page":            load(append(slices.Clone(data), 7), provisional, storeID),
		"another file id, of a provisional one": load(data, Recorded{Num: 2, File: other, Provisional: true}, storeID),
	} {
		if !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Load(bytesFile{data: data}, "f", rec, storeID, make([]byte, len(data)+1))
	if !errors.Is(err, io.EOF) {
		t.Errorf("shorter than it says: %v", err)
	}
}

// TestEachWhole: each whole frame of a kind is found behind the end of the log, whatever damaged ones claim to reach over it.
// Payloads of other kinds are not summed, and of so many damaged frames that only who means harm has made them not all are.
func TestEachWhole(t *testing.T) {
	const size = 64 << 10
	heads := func(kind frame.Kind, n int) (whole []string, all bool) {
		b, id := make([]byte, size), frame.NewIdentity(fileID)
		put := func(off int, h frame.Header, payload string) int {
			to := b[off : off+frame.PaddedBytes(len(payload))]
			copy(to[frame.HeaderBytes:], payload)
			frame.Put(to, id, int64(off), len(payload), h)
			return off + len(to)
		}
		off := put(base.FileHeaderBytes, frame.Header{Kind: frame.KindIngest, Seq: 1, Count: 1}, "first")
		for range n { // each claims everything up to the end
			frame.PutSummed(b[off:], id, int64(off), size-off-frame.HeaderBytes, 1, frame.Header{Kind: kind, Seq: 1, Count: 1})
			off += frame.HeaderBytes
		}
		off = put(off, frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1}, "a commit")
		put(off, frame.Header{Kind: frame.KindIngest, Seq: 1, Count: 1}, "last")
		s := Torn("1.log", Recorded{Num: 1, File: fileID}, b)
		all = s.EachWhole(frame.KindIngest, func(payload []byte) { whole = append(whole, string(payload)) })
		return whole, all
	}
	both := []string{"first", "last"}
	for _, c := range []struct {
		kind frame.Kind
		n    int
		all  bool
	}{{frame.KindIngest, 0, true}, {frame.KindIngest, 3, true}, {frame.KindCommit, 1000, true}, {frame.KindIngest, 1000, false}} {
		whole, all := heads(c.kind, c.n)
		if all != c.all || all && !slices.Equal(whole, both) {
			t.Errorf("%d damaged frames of kind %d: %q, all: %v", c.n, c.kind, whole, all)
		}
	}
}

// TestTornTail cuts a log without marks at every byte of every segment. What stands
// before the cut is replayed; the rest, later segments included, is dropped and
// counted.
func TestTornTail(t *testing.T) {
	b := three(t, false)
	whole := b.files()
	all := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	counts := []int{2, 1, 1, 1, 3, 1, 1}
	for i, s := range b.segs {
		end, _ := s.Tail()
		for cut := int64(base.FileHeaderBytes); cut < end.Offset(); cut++ {
			files := [][]byte{slices.Clone(whole[0]), slices.Clone(whole[1]), slices.Clone(whole[2])}
			clear(files[i][cut:])
			files[i][cut] = ^whole[i][cut] // else cutting off zeros changes nothing
			want := 0
			for n, p := range b.frame {
				if p.Segment() < s.Num || p.Segment() == s.Num && p.Offset() <= cut {
					want += counts[n]
				}
			}
			keys, r, err := b.replay(files, 0)
			// The later segments' links say how far this one went, but without a mark
			// that is no evidence that it was durable.
			if err != nil || !slices.Equal(keys, all[:want]) {
				t.Fatalf("segment %d cut at %d: %v, want %v; %v", s.Num, cut, keys, all[:want], err)
			}
			if lost := i < 2; lost && (r.Dropped == 0 || r.DroppedFrom == 0) {
				t.Fatalf("segment %d cut at %d: dropped %d from %v", s.Num, cut, r.Dropped, r.DroppedFrom)
			}
		}
	}
}

// TestDamageBelowTheMark flips every byte of a log whose frames record that those
// before were durable. Only the last frame can pass for torn.
func TestDamageBelowTheMark(t *testing.T) {
	b := three(t, true)
	whole := b.files()
	last := b.frame[len(b.frame)-2] // durable, as the last frame says
	for i, s := range b.segs {
		end, _ := s.Tail()
		for at := int64(0); at < end.Offset(); at++ {
			files := [][]byte{slices.Clone(whole[0]), slices.Clone(whole[1]), slices.Clone(whole[2])}
			files[i][at] ^= 0x10
			keys, r, err := b.replay(files, 0)
			if At(s.Num, at) < last {
				var c *base.CorruptionError
				if !errors.As(err, &c) {
					t.Fatalf("segment %d, byte %d: %v, %v", s.Num, at, keys, err)
				}
				continue
			}
			if err != nil || fmt.Sprint(keys) != "[a b c d e f g h i]" || r.Dropped == 0 {
				t.Fatalf("last frame, byte %d: %v, %+v, %v", at, keys, r, err)
			}
		}
	}
}

// TestFloor: the manifest may know more of what was durable than the log itself.
func TestFloor(t *testing.T) {
	b := three(t, false)
	files := b.files()
	end := b.frame[len(b.frame)-1]
	clear(files[2][end.Offset()-8:])
	for floor, want := range map[Position]bool{0: true, b.frame[5]: true, b.frame[5] + 1: false, end: false} {
		_, _, err := b.replay(files, floor)
		if (err == nil) != want || err != nil && !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("floor %v: %v", floor, err)
		}
	}
}

// TestHoleWithFramesBehind: pages of unsynced frames may arrive in any order.
func TestHoleWithFramesBehind(t *testing.T) {
	b := newBuilder(t)
	b.segment(2, 0)
	for _, k := range []string{"a", "b", "c", "d"} {
		b.commit(0, k)
	}
	files := b.files()
	clear(files[0][b.frame[0].Offset():b.frame[1].Offset()]) // b is lost, c and d are there
	keys, r, err := b.replay(files, 0)
	if err != nil || fmt.Sprint(keys) != "[a]" || r.DroppedFrom != b.frame[0] || r.Dropped < b.frame[3].Offset()-b.frame[0].Offset()-8 {
		t.Errorf("%v, %+v, %v", keys, r, err)
	}
	// The same hole, but c was written when b was known to be durable.
	b = newBuilder(t)
	b.segment(2, 0)
	b.commit(0, "a")
	b.commit(0, "b")
	b.commit(b.frame[1], "c")
	files = b.files()
	clear(files[0][b.frame[0].Offset():b.frame[1].Offset()])
	if keys, _, err = b.replay(files, 0); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("%v, %v", keys, err)
	}
	// And c's payload may be lost as well: its header is evidence enough.
	files[0][b.frame[2].Offset()-8] ^= 1
	if keys, _, err = b.replay(files, 0); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestWriteFailedAndMovedOn: a link that ends the segment before its last bytes
// makes these void, and whole segments too that it passes over.
func TestWriteFailedAndMovedOn(t *testing.T) {
	b := newBuilder(t)
	b.segment(2, 0)
	b.commit(0, "a")
	good, sum := b.segs[0].Tail()
	b.commit(0, "failed") // reached the file all the same
	void := b.segment(3, 0)
	commit(void, 3, 0, "failed too")
	s := create(t, b.fs, 4, lengthUnit)
	s.Link(good, good, sum)
	b.segs, b.seq = append(b.segs, s), 2
	b.commit(good, "b")
	keys, r, err := b.replay(b.files(), 0)
	if err != nil || fmt.Sprint(keys) != "[a b]" || r.Dropped != 0 {
		t.Errorf("%v, %+v, %v", keys, r, err)
	}
}

// TestUnusedSegment: one prepared ahead, without a link, ends nothing.
func TestUnusedSegment(t *testing.T) {
	b := newBuilder(t)
	b.segment(2, 0)
	b.commit(0, "a")
	b.segs = append(b.segs, create(t, b.fs, 3, lengthUnit))
	keys, r, err := b.replay(b.files(), b.frame[0])
	if err != nil || fmt.Sprint(keys) != "[a]" || r.Dropped != 0 {
		t.Errorf("%v, %+v, %v", keys, r, err)
	}
}

func TestDecodeLink(t *testing.T) {
	p := binary.LittleEndian.AppendUint64(nil, uint64(At(9, 77)))
	p = binary.LittleEndian.AppendUint64(p, 8192)
	if end, length, ok := DecodeLink(p); !ok || end != At(9, 77) || length != 8192 {
		t.Error(end, length, ok)
	}
	for _, bad := range [][]byte{nil, p[:8], p[:15], append(p, 0)} {
		if _, _, ok := DecodeLink(bad); ok {
			t.Errorf("%x is accepted", bad)
		}
	}
}

// TestLoadStray: of a segment that no manifest names.
func TestLoadStray(t *testing.T) {
	b := newBuilder(t)
	b.segment(2, 0)
	for _, data := range [][]byte{b.files()[0], b.files()[0][:10]} {
		if s, err := LoadStray(data, "f", 2, storeID); s != nil || err != nil {
			t.Errorf("a link is no commit: %v, %v", s, err)
		}
	}
	b.commit(0, "a")
	data := b.files()[0]
	for _, what := range []string{"whole", "the link is damaged, the commit is there all the same"} {
		if s, err := LoadStray(data, "f", 2, storeID); s != nil || !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("a commit is overlooked (%s): %v, %v", what, s, err)
		}
		data[70] ^= 1
	}
	h, err := base.DecodeFileHeader(data, base.FileLog, "f")
	if err != nil {
		t.Fatal(err)
	}
	h.Provisional = true
	copy(data, base.AppendFileHeader(nil, h))
	if s, err := LoadStray(data, "f", 2, storeID); err != nil || s == nil || s.Linked() || s.Num != 2 {
		t.Errorf("a provisional segment: %+v, %v", s, err)
	}
	noCommits := func(data []byte) error {
		return NoCommits(bytes.NewReader(data), data[:min(len(data), base.HeadBytes)], "f")
	}
	long := slices.Concat(data[:base.FileHeaderBytes], make([]byte, len(data)-base.FileHeaderBytes))
	if err := noCommits(long); err != nil {
		t.Errorf("a provisional segment without a commit behind a manifest that was closed: %v", err)
	}
	if err := noCommits(data); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("a provisional segment behind a manifest that was closed: %v", err)
	}
	if s, err := LoadStray(data, "f", 2, base.NewID()); s != nil || !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("a provisional segment of another store: %+v, %v", s, err)
	}
	if s, err := LoadStray(data, "f", 3, storeID); s != nil || !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("a provisional segment of another name: %+v, %v", s, err)
	}
	clear(data[:base.FileHeaderBytes])
	if s, err := LoadStray(data, "f", 2, storeID); err != nil || s == nil || s.Linked() {
		t.Errorf("a segment whose header was lost: %+v, %v", s, err)
	}
	if err := noCommits(data); err != nil {
		t.Errorf("a segment whose header was lost behind a manifest that was closed: %v", err)
	}
	data[0] = 'x'
	if s, err := LoadStray(data, "f", 2, storeID); err != nil || s != nil {
		t.Errorf("no file of ours: %+v, %v", s, err)
	}
}

// repair makes data a segment: of a permitted length, with the header, and with
// right checksums in every frame, as far as the lengths lead; prev chains them if
// chained.
func repair(data []byte, chained bool) []byte {
	data = append(slices.Clone(data), make([]byte, max(lengthUnit, (len(data)+lengthUnit-1)&^(lengthUnit-1))-len(data))...)
	h := base.FileHeader{Type: base.FileLog, Version: 1, File: fileID, Store: storeID, Num: 7}
	copy(data, base.AppendFileHeader(nil, h))
	le, crc := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	prev := uint32(0)
	for off := base.FileHeaderBytes; off+frame.HeaderBytes <= len(data); {
		b := data[off:]
		n := int(le.Uint32(b[4:]))
		if n < frame.HeaderBytes || n > len(b) {
			n = frame.HeaderBytes + n%max(1, len(b)-frame.HeaderBytes+1)
			n = min(n&^7, len(b)&^7)
			if n < frame.HeaderBytes {
				break
			}
			le.PutUint32(b[4:], uint32(n))
		}
		if off == base.FileHeaderBytes {
			n = OverheadBytes - base.FileHeaderBytes
			le.PutUint32(b[4:], uint32(n))
			b[36], b[37] = byte(frame.KindLink), 0
			le.PutUint64(b[frame.HeaderBytes+8:], uint64(len(data)))
		}
		b[38], b[39] = 0, 0
		if chained {
			le.PutUint32(b[12:], prev)
		}
		le.PutUint32(b[8:], crc32.Checksum(b[frame.HeaderBytes:n], crc))
		var at [8]byte
		le.PutUint64(at[:], uint64(off))
		prev = crc32.Update(crc32.Update(crc32.Checksum(fileID[:], crc), crc, at[:]), crc, b[4:frame.HeaderBytes])
		le.PutUint32(b, prev)
		off += (n + 7) &^ 7
	}
	return data
}

// FuzzSegmentReplay feeds whole segments, with checksums repaired, to Load and
// Replay: no panic, nothing outside the file, and no frame twice.
func FuzzSegmentReplay(f *testing.F) {
	b := newBuilder(f)
	b.segment(7, 0)
	b.commit(0, "a", "b")
	b.commit(b.frame[0], "c")
	f.Add(b.files()[0], true)
	f.Add(b.files()[0][:200], false)
	f.Add(make([]byte, 64+48), true)
	f.Fuzz(func(t *testing.T, data []byte, chained bool) {
		if len(data) > 1<<20 {
			return
		}
		data = repair(data, chained)
		l, err := Load(bytesFile{data: data}, "f", Recorded{Num: 7, File: fileID}, storeID, make([]byte, len(data)))
		if err != nil || !l.linked {
			t.Fatalf("repair does not repair: %v", err)
		}
		records, end := l.Records(), int64(0)
		live, rest := Chain([]*Loaded{l})
		r := &Replay{}
		for _, s := range append(live, rest...) {
			err = r.Segment(s, nil, func(h frame.Header, at int64, payload []byte) error {
				if at < end || at+int64(len(payload)) > int64(len(data)) {
					t.Fatalf("payload at %d of %d bytes, the last ended at %d", at, len(data), end)
				}
				end = at + int64(len(payload))
				for len(payload) > 0 {
					e, n := frame.DecodeEntry(payload)
					if n == 0 {
						return nil
					}
					if records--; records < 0 && int(h.Count) > 0 && len(e.Key) == 0 {
						t.Fatal("more records than Records bounds")
					}
					payload = payload[n:]
				}
				return nil
			})
			if err != nil && !errors.Is(err, base.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		if _, err := r.Finish(func(uint64) string { return "f" }, 0); err != nil && !errors.Is(err, base.ErrCorrupt) {
			t.Fatal(err)
		}
		if r.Dropped < 0 || r.Dropped > int64(len(data)) {
			t.Fatalf("%d bytes dropped of %d", r.Dropped, len(data))
		}
	})
}

// TestNoCommitsFar: the header of a commit is found wherever it stands, also across the pieces that are read.
func TestNoCommitsFar(t *testing.T) {
	head := base.AppendFileHeader(nil, base.FileHeader{Type: base.FileLog, Version: 1, File: base.NewID(), Store: storeID, Num: 2})
	h, err := base.DecodeFileHeader(head, base.FileLog, "f")
	if err != nil {
		t.Fatal(err)
	}
	id := frame.NewIdentity(h.File)
	for at := int64(256<<10) - 64; at <= 256<<10+128; at += frame.Align {
		data := append(bytes.Clone(head), make([]byte, 600<<10)...)
		frame.Put(data[at:at+int64(frame.PaddedBytes(8))], id, at, 8, frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1})
		if err := NoCommits(bytes.NewReader(data), head, "f"); !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("at %d: %v", at, err)
		}
		if err := NoCommits(bytes.NewReader(data[:at]), head, "f"); err != nil {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
}
