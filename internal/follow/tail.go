package follow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// errLost says that the log does not go on where it was left: the manifest tells where it begins now.
var errLost = errors.New("follow: the log does not go on where it was left")

// tail is what has been read of the log, behind the tables of a manifest.
type tail struct {
	fs      vfs.FS
	dir     string
	store   base.ID
	buffers *tree.Buffers
	open    func(*base.TableMeta) (*tree.Handle, error) // a table of a large transaction; the handle stays the owner's

	layers []numbered // oldest first, with a reference to each memtable
	seg    *segment   // whose frames are being read; nil: none was yet
	next   uint64     // sequence of the next frame; 0: that of whatever frame it is
	mem    *tree.Memory
	from   int64 // where in the segment's file the arena of mem begins
	to     int64 // and how far of the file has been read into it; of no use if that is the file
}

// numbered is a layer with the number of its segment.
type numbered struct {
	num uint64
	*tree.Layer
}

// segment is one of the log, open for reading.
type segment struct {
	manifest.Segment
	name    string
	f       vfs.File
	view    *shared // of all of the file; nil: it is read
	id      frame.Identity
	length  int64
	link    wal.Position // where the segment before ends
	linkSum uint32
	pos     int64 // of the next frame
	sum     uint32
}

// shared is a segment's file, mapped: the segment has a reference, and each memtable over it.
type shared struct {
	vfs.Mapping
	refs atomic.Int32
}

func (v *shared) ref() *shared {
	v.refs.Add(1)
	return v
}

func (v *shared) unref() {
	if v.refs.Add(-1) == 0 {
		v.Unmap()
	}
}

// close lets go of the file.
func (s *segment) close() {
	s.f.Close()
	if s.view != nil {
		s.view.unref()
	}
}

// openSegment opens a segment and reads its link.
func (t *tail) openSegment(rec manifest.Segment) (*segment, error) {
	name := base.FilePath(t.dir, base.FileLog, rec.Num)
	f, err := t.fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open log segment: %w", err)
	}
	s := &segment{Segment: rec, name: name, f: f, id: frame.NewIdentity(rec.File)}
	if err := s.begin(t.store); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// mapFile maps the file, which the writer has mapped as well: such a file is never used again, nor shortened, and what
// was committed in it not changed (E5). If it cannot be mapped it is read.
func (s *segment) mapFile() {
	viewer, ok := s.f.(vfs.Viewer)
	if !ok || strconv.IntSize == 32 { // addresses are scarce
		return
	}
	if size, err := s.f.Size(); err != nil || size < s.length {
		return
	}
	if mapping, err := viewer.View(int(s.length)); err == nil {
		s.view = (&shared{Mapping: mapping}).ref()
	}
}

func (s *segment) begin(store base.ID) error {
	head := make([]byte, wal.OverheadBytes)
	if n, err := s.f.ReadAt(head, 0); n < len(head) {
		return fmt.Errorf("read log segment %s: %w", s.name, err)
	}
	h, err := base.DecodeFileHeader(head, base.FileLog, s.name)
	if err != nil {
		return err
	}
	if h.Store != store || h.File != s.File || h.Num != s.Num {
		return base.Corruptf(s.name, 16, "log segment is not the one the manifest names")
	}
	link, payload, ok := frame.Decode(head[base.FileHeaderBytes:], s.id, base.FileHeaderBytes)
	if ok && link.Kind == frame.KindLink {
		s.link, s.length, ok = wal.DecodeLink(payload)
	}
	if !ok || link.Kind != frame.KindLink || s.length > wal.MaxCapacity {
		return base.Corruptf(s.name, base.FileHeaderBytes, "the log goes through a segment without a link")
	}
	s.linkSum, s.pos, s.sum = link.Prev, base.FileHeaderBytes+int64(link.Length), link.Sum
	if h.Provisional {
		s.mapFile()
	}
	return nil
}

// cut lets go of what the tables of a manifest hold by now.
func (t *tail) cut(st *manifest.State) {
	t.layers = slices.DeleteFunc(t.layers, func(l numbered) bool {
		gone := l.num < st.LogStart || l.Mem == nil && l.Seq <= st.IngestedThrough
		if gone && l.Mem != nil {
			l.Mem.Unref()
		}
		return gone
	})
	if t.seg != nil && t.seg.Num < st.LogStart {
		t.forget()
	}
}

// forget leaves the segment being read, and what follows may be any part of the log.
func (t *tail) forget() {
	t.leave(nil)
	t.next = 0
}

// leave goes on with another segment, which may be nil.
func (t *tail) leave(next *segment) {
	t.endMemory()
	if t.seg != nil {
		t.seg.close()
	}
	t.seg = next
}

// endMemory ends the memtable being filled.
func (t *tail) endMemory() {
	if t.mem != nil && t.mem.Len() == 0 {
		t.mem.Unref() // it never became a layer
	}
	t.mem = nil
}

// drop lets go of everything.
func (t *tail) drop() {
	t.cut(&manifest.State{LogStart: base.MaxSeq})
	t.forget()
}

// read reads the log up to end. It returns errLost where that is not to be had without another look at the
// manifest, of which st may be nil where the end is in the segment being read.
func (t *tail) read(st *manifest.State, end wal.Position) error {
	if end == 0 {
		return nil
	}
	if t.seg == nil || t.seg.Num != end.Segment() {
		if st == nil {
			return errLost
		}
		if end.Segment() < st.LogStart {
			return nil // tables have it all
		}
		if err := t.readSegments(st, end); err != nil {
			return err
		}
	}
	return t.fill(st, end.Offset())
}

// readSegments reads what lies before the segment of end, which is left as the one being read.
func (t *tail) readSegments(st *manifest.State, end wal.Position) error {
	chain, err := t.chain(st, end.Segment())
	for i, s := range chain {
		if err == nil && t.seg != nil {
			if err = t.fill(st, s.link.Offset()); err == nil && (s.link != wal.At(t.seg.Num, t.seg.pos) || s.linkSum != t.seg.sum) {
				err = errLost
			}
		}
		if err != nil {
			for _, s := range chain[i:] {
				s.close()
			}
			return err
		}
		t.leave(s)
	}
	return err
}

// chain opens the segments from the one behind the one being read, or the first, up to the one of a number,
// as their links have it.
func (t *tail) chain(st *manifest.State, num uint64) (chain []*segment, err error) {
	first := st.LogStart
	if t.seg != nil {
		first = t.seg.Num
	}
	for num > 0 && num >= first && (t.seg == nil || num != t.seg.Num) {
		i, ok := slices.BinarySearchFunc(st.Segments, num, func(s manifest.Segment, num uint64) int { return cmp.Compare(s.Num, num) })
		if !ok {
			return chain, errLost
		}
		s, err := t.openSegment(st.Segments[i])
		if err != nil {
			return chain, err
		}
		chain = slices.Insert(chain, 0, s)
		if s.link.Segment() >= num {
			return chain, errLost
		}
		num = s.link.Segment()
	}
	if t.seg != nil && num != t.seg.Num {
		return chain, errLost // no link leads to where we are
	}
	return chain, nil
}

// fill reads the segment up to an offset.
func (t *tail) fill(st *manifest.State, stop int64) error {
	if stop > t.seg.length {
		return errLost
	}
	for t.seg.pos < stop {
		if t.mem == nil {
			if err := t.newMemory(stop); err != nil {
				return err
			}
		}
		before := t.seg.pos
		err := t.take(st, stop)
		switch {
		case err != nil:
			return err
		case t.seg.pos > before:
		case before == t.from: // there was room for it
			return base.Corruptf(t.seg.name, before, "no intact frame, though one was committed")
		default:
			t.endMemory()
		}
	}
	return nil
}

// Bounds of the arena of a memtable, and of what is assumed of the records to come.
const (
	leastArena  = 256 << 10
	mostArena   = 16 << 20
	leastRecord = 48 // bytes in the log
)

// newMemory makes the next memtable, which has room for what there is up to an offset, and if the segment
// goes on for as much again as the last one had.
func (t *tail) newMemory(stop int64) error {
	s := t.seg
	more := int64(leastArena)
	if n := len(t.layers); n > 0 && t.layers[n-1].num == s.Num && t.layers[n-1].Mem != nil {
		more = min(2*int64(len(t.layers[n-1].Mem.Buf)), mostArena)
	}
	have := stop - s.pos
	size := min(max(have, more), s.length-s.pos)
	if s.view == nil {
		return t.readMemory(have, size)
	}
	v := s.view
	buf := v.Bytes()[s.pos : s.pos+size : s.pos+size]
	mem, err := t.buffers.Over(buf, t.records(buf[:have], size), v.unref)
	if err == nil {
		v.ref()
		t.mem, t.from = mem, s.pos
	}
	return err
}

// records returns how many records a memtable over so many bytes is to have room for: those that are there, and as
// many in the rest.
func (t *tail) records(have []byte, size int64) int {
	n := countRecords(have, t.seg.id, t.seg.pos)
	return n + int((size-int64(len(have)))/max(int64(len(have))/int64(max(n, 1)), leastRecord)) + 1
}

// readMemory makes a memtable over memory of its own, into which what there is is read.
func (t *tail) readMemory(have, size int64) error {
	s := t.seg
	buf, err := t.buffers.Get(int(size))
	if err != nil {
		return err
	}
	if n, err := s.f.ReadAt(buf[:have], s.pos); n < int(have) {
		t.buffers.Put(buf)
		return fmt.Errorf("read log segment %s: %w", s.name, err)
	}
	records := t.records(buf[:have], size)
	index, err := t.buffers.Get(tree.IndexBytes(int(size), records))
	if err != nil {
		t.buffers.Put(buf)
		return err
	}
	t.mem, t.from, t.to = tree.NewMemory(nil, buf, index, records, t.buffers.Free), s.pos, s.pos+have
	t.mem.Replayed = size // at most; others look at it while the memtable is filled
	return nil
}

// countRecords returns how many sequences frames use.
func countRecords(b []byte, id frame.Identity, off int64) (n int) {
	for len(b) > 0 {
		h, ok := frame.DecodeHeader(b, id, off)
		if !ok || int64(h.Length) > int64(len(b)) {
			break
		}
		n += int(min(h.Count, h.Length/2))
		b, off = b[h.Length:], off+int64(h.Length)
	}
	return n
}

// take reads frames up to an offset into the memtable, as many as it has room for.
func (t *tail) take(st *manifest.State, stop int64) error {
	s := t.seg
	end := min(stop, t.from+int64(len(t.mem.Buf)))
	if s.view == nil && end > t.to {
		fresh := t.mem.Buf[t.to-t.from : end-t.from]
		if n, err := s.f.ReadAt(fresh, t.to); n < len(fresh) {
			return fmt.Errorf("read log segment %s: %w", s.name, err)
		}
		t.to = end
	}
	for s.pos < end {
		at := s.pos - t.from
		h, payload, ok := frame.Decode(t.mem.Buf[at:end-t.from], s.id, s.pos)
		if !ok || h.Prev != s.sum {
			t.to = s.pos // if it is not that there was no room for all of it the next try finds out
			return nil
		}
		room, err := t.frame(st, h, int(at)+frame.HeaderBytes, payload)
		if err != nil || !room {
			return err
		}
		s.pos, s.sum = s.pos+int64(h.Length), h.Sum
	}
	return nil
}

// frame takes a frame whose payload stands at an offset of the arena, and reports whether there was room.
func (t *tail) frame(st *manifest.State, h frame.Header, at int, payload []byte) (room bool, err error) {
	s := t.seg
	if h.Beyond() {
		return false, base.Corruptf(s.name, s.pos, "frame of %d sequences from %d on goes beyond the last one", h.Count, h.Seq)
	}
	last := h.Seq + uint64(h.Count) - 1
	known := h.Kind == frame.KindIngest && st != nil && last <= st.IngestedThrough
	if t.next != 0 && h.Seq != t.next && !known {
		return false, errLost
	}
	switch {
	case known || h.Kind == frame.KindIngest && t.mem.Len() == 0:
		if err := t.ingest(h, payload, known); err != nil {
			return false, err
		}
	case h.Kind == frame.KindCommit:
		if !t.mem.Room(int(h.Count)) {
			return false, nil
		}
		if t.mem.Len() == 0 {
			t.mem.SetBase(h.Seq)
		}
		n := t.mem.Len()
		count, end := t.mem.InsertAll(at, at+len(payload))
		if count != int(h.Count) || end != at+len(payload) {
			return false, base.Corruptf(s.name, s.pos, "malformed commit of %d entries", h.Count)
		}
		if t.mem.HasRangeDeletes() {
			t.buffers.CountRangeDeletes(t.mem)
		}
		if n == 0 {
			t.layers = append(t.layers, numbered{s.Num, &tree.Layer{Mem: t.mem}})
		}
	default:
		return false, base.Corruptf(s.name, s.pos, "frame of kind %d where none can be", h.Kind)
	}
	t.next = max(t.next, last+1)
	return true, nil
}

// ingest adds the tables of a large transaction, unless the manifest is known to have them.
func (t *tail) ingest(h frame.Header, payload []byte, known bool) error {
	added, err := manifest.DecodeIngest(h, payload, t.seg.name, t.seg.pos)
	if err != nil || known {
		return err
	}
	var tables []*tree.Handle
	for _, a := range added {
		opened, err := t.open(a.Table)
		if err != nil {
			return err
		}
		tables = append(tables, opened)
	}
	t.layers = append(t.layers, numbered{t.seg.Num, &tree.Layer{Ingest: tree.IngestRuns(tables), Seq: h.Seq + uint64(h.Count) - 1}})
	return nil
}
