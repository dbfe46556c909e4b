package follow

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// written is a log, and a tail that reads it.
type written struct {
	*testing.T
	mapped bool // the log is, by writer and tail
	fs     vfs.FS
	dir    string
	store  base.ID
	state  manifest.State
	seg    *wal.Segment // the last one
	next   uint64
	tail   tail
}

// inEachWay runs a test with a log that is read, and if the system can with one that is mapped.
func inEachWay(t *testing.T, test func(t *testing.T, mapped bool)) {
	t.Run("read", func(t *testing.T) { test(t, false) })
	t.Run("mapped", func(t *testing.T) {
		mustMap(t)
		test(t, true)
	})
}

// mustMap skips a test where readers do not map the log.
func mustMap(t *testing.T) {
	if runtime.GOOS != "linux" || strconv.IntSize == 32 {
		t.Skip("NOT TESTED: a mapped log, which readers have on Linux with 64 bits only")
	}
}

func newWritten(t *testing.T, mapped bool) *written {
	w := &written{T: t, mapped: mapped, store: base.NewID(), next: 1}
	if mapped {
		w.fs, w.dir = vfs.OS(), t.TempDir()
	} else {
		mem := memfs.New()
		mem.StopJournal()
		w.fs, w.dir = mem, "/db"
		w.ok(mem.MkdirAll(w.dir))
	}
	w.tail = tail{fs: w.fs, dir: w.dir, store: w.store, buffers: tree.NewBuffers(arena.NewBudget(64 << 20))}
	w.tail.open = func(m *base.TableMeta) (*tree.Handle, error) { return &tree.Handle{Meta: m}, nil }
	t.Cleanup(func() {
		w.tail.drop()
		if err := w.tail.buffers.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *written) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *written) name(num uint64) string {
	return base.FilePath(w.dir, base.FileLog, num)
}

// corrupt flips a bit of a segment's file.
func (w *written) corrupt(num uint64, off int64) {
	w.Helper()
	f, err := w.fs.OpenReadWrite(w.name(num))
	w.ok(err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	w.ok(err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], off)
	w.ok(err)
}

// segment begins the next segment, linked to the end of the last one or where else that is said to be.
func (w *written) segment(num uint64, size int, end wal.Position, sum uint32) {
	w.Helper()
	buffer := make([]byte, size)
	seg, err := (*wal.Segment)(nil), error(nil)
	if w.mapped {
		seg, err = wal.CreateMapped(w.fs, w.name(num), num, w.store, size, true, func() ([]byte, error) { return buffer, nil })
	} else {
		seg, err = wal.Create(w.fs, w.name(num), num, w.store, buffer, false)
	}
	w.ok(err)
	if seg.Mapped() != w.mapped {
		w.Fatal("the segment is not what it is to be")
	}
	w.Cleanup(seg.Drop)
	seg.Link(end, 0, sum)
	w.seg = seg
	w.state.Segments = append(w.state.Segments, manifest.Segment{Num: num, File: seg.File})
}

// rotate is segment behind the last one.
func (w *written) rotate(num uint64, size int) {
	w.Helper()
	end, sum := w.seg.Tail()
	w.segment(num, size, end, sum)
}

// commit appends a commit of n puts with a value of so many bytes, and returns the end of the log.
func (w *written) commit(n, bytes int) wal.Position {
	w.Helper()
	var payload []byte
	for i := range n {
		payload = frame.AppendEntry(payload, base.KindPut, fmt.Appendf([]byte{0}, "%d", w.next+uint64(i)), make([]byte, bytes))
	}
	w.seg.Append(frame.Header{Kind: frame.KindCommit, Seq: w.next, Count: uint32(n)}, payload)
	w.next += uint64(n)
	w.ok(w.seg.WriteOut())
	end, _ := w.seg.Tail()
	return end
}

// holds checks that the tail has the sequences from one up to another.
func (w *written) holds(first, last uint64) {
	w.Helper()
	next := first
	for _, l := range w.tail.layers {
		if l.Mem == nil || l.Mem.FirstSeq() != next || l.Mem.Len() == 0 {
			w.Fatalf("a layer does not begin at sequence %d", next)
		}
		for i := range l.Mem.Len() {
			if r := l.Mem.Record(i); string(r.Key) != fmt.Sprintf("\x00%d", next+uint64(i)) {
				w.Fatalf("sequence %d is of key %q", next+uint64(i), r.Key)
			}
		}
		next = l.Mem.LastSeq() + 1
	}
	if w.tail.seg != nil && (w.tail.seg.view != nil) != w.mapped {
		w.Fatalf("the segment being read is mapped: %v", !w.mapped)
	}
	if next != last+1 || w.tail.next != next {
		w.Fatalf("sequences up to %d, the next one %d; want %d", next-1, w.tail.next, last)
	}
}

func (w *written) fails(err error, lost bool) {
	w.Helper()
	if lost != errors.Is(err, errLost) || !lost && !errors.Is(err, base.ErrCorrupt) {
		w.Fatalf("error %v; lost: %v", err, lost)
	}
}

// TestTail: commits of all sizes, through several segments, read as they come and from the beginning.
func TestTail(t *testing.T) { inEachWay(t, testTail) }

func testTail(t *testing.T, mapped bool) {
	w := newWritten(t, mapped)
	w.segment(3, 4<<20, 0, 0)
	var end wal.Position
	for i := range 200 {
		if i%50 == 49 {
			w.rotate(uint64(3+i), 4<<20)
		}
		end = w.commit(1+i%40, []int{0, 10, 300, 2000}[i%4])
		if i%3 == 0 {
			err := w.tail.read(nil, end)
			if errors.Is(err, errLost) {
				err = w.tail.read(&w.state, end)
			}
			w.ok(err)
			w.holds(1, w.next-1)
		}
	}
	w.ok(w.tail.read(&w.state, end))
	w.holds(1, w.next-1)
	if n := len(w.tail.layers); n < 6 || n > 40 {
		t.Errorf("%d memtables", n)
	}
	w.tail.drop()
	w.ok(w.tail.read(&w.state, end))
	w.holds(1, w.next-1)

	// Tables have the first two segments by now.
	w.state.Segments = w.state.Segments[2:]
	w.state.LogStart = w.state.Segments[0].Num
	w.tail.cut(&w.state)
	first := w.tail.layers[0].Mem.FirstSeq()
	w.holds(first, w.next-1)
	w.tail.drop()
	w.ok(w.tail.read(&w.state, end))
	w.holds(first, w.next-1)

	// And then all: there is nothing to read, but what comes.
	w.state.LogStart = end.Segment() + 1
	w.state.Segments = nil
	w.tail.cut(&w.state)
	w.ok(w.tail.read(&w.state, end))
	if len(w.tail.layers) > 0 {
		t.Error("layers are left")
	}
	w.rotate(end.Segment()+1, 64<<10)
	first = w.next
	w.ok(w.tail.read(&w.state, w.commit(2, 100)))
	w.holds(first, w.next-1)
}

// TestTailPassesOverVoidSegments: the link of a segment says where the one before ends, and which that is.
func TestTailPassesOverVoidSegments(t *testing.T) { inEachWay(t, testTailPassesOverVoidSegments) }

func testTailPassesOverVoidSegments(t *testing.T, mapped bool) {
	w := newWritten(t, mapped)
	w.segment(1, 64<<10, 0, 0)
	w.ok(w.tail.read(&w.state, w.commit(3, 10)))
	good, sum := w.seg.Tail()
	next := w.next
	w.commit(2, 10) // fails: its frame is there, and not shown
	w.rotate(2, 64<<10)
	w.commit(1, 10) // so does this one, and its segment is passed over
	w.next = next
	w.segment(4, 64<<10, good, sum)
	w.ok(w.tail.read(&w.state, w.commit(5, 10)))
	w.holds(1, next+4)
	w.tail.drop()
	end, _ := w.seg.Tail()
	w.ok(w.tail.read(&w.state, end))
	w.holds(1, next+4)
}

// TestTailOfAnotherLog: what is not the log that goes on is not taken for it.
func TestTailOfAnotherLog(t *testing.T) { inEachWay(t, testTailOfAnotherLog) }

func testTailOfAnotherLog(t *testing.T, mapped bool) {
	begun := func() (*written, wal.Position) {
		w := newWritten(t, mapped)
		w.segment(1, 64<<10, 0, 0)
		w.ok(w.tail.read(&w.state, w.commit(3, 10)))
		return w, w.commit(2, 1000)
	}
	for bit := range int64(3) { // of the frame's head, its payload and its padding
		w, end := begun()
		at := w.tail.seg.pos + []int64{17, 900, 1}[bit]
		if bit == 2 {
			at = end.Offset() - 1
		}
		w.corrupt(1, at)
		w.fails(w.tail.read(nil, end), false)
		w.holds(1, 3)
		w.corrupt(1, at) // it was the disk, perhaps
		w.ok(w.tail.read(nil, end))
		w.holds(1, 5)
	}

	w, end := begun() // a gap in the sequences
	w.next++
	w.ok(w.tail.read(nil, end))
	w.fails(w.tail.read(nil, w.commit(1, 1)), true)

	w, _ = begun() // the next segment continues another one's end
	end, _ = w.seg.Tail()
	w.segment(2, 64<<10, end, 12345)
	w.fails(w.tail.read(&w.state, w.commit(1, 1)), true)

	w, _ = begun() // or another segment
	w.segment(2, 64<<10, wal.At(7, 120), 0)
	w.fails(w.tail.read(&w.state, w.commit(1, 1)), true)

	w, _ = begun() // a segment that the manifest does not name
	w.rotate(2, 64<<10)
	w.fails(w.tail.read(&manifest.State{Segments: w.state.Segments[:1]}, w.commit(1, 1)), true)

	for _, n := range []int{1, 2} { // a commit beyond the last sequence
		w := newWritten(t, mapped)
		w.segment(1, 64<<10, 0, 0)
		w.next = base.MaxSeq
		if end := w.commit(n, 1); n == 1 {
			w.ok(w.tail.read(&w.state, end))
		} else {
			w.fails(w.tail.read(&w.state, end), false)
		}
		end := w.commit(1, 1)
		w.fails(w.tail.read(&w.state, end), false)
	}

	w, end = begun() // behind the end of the file
	w.fails(w.tail.read(nil, wal.At(1, 1<<20)), true)
	w.fails(w.tail.read(nil, end+64), false)

	for what, change := range map[string]func(w *written, seg *manifest.Segment){
		"not the one":        func(_ *written, seg *manifest.Segment) { seg.File = base.NewID() },
		"without a link":     func(w *written, _ *manifest.Segment) { w.corrupt(2, base.FileHeaderBytes+1) },
		"header":             func(w *written, _ *manifest.Segment) { w.corrupt(2, 20) },
		"the manifest names": func(w *written, _ *manifest.Segment) { w.tail.store = base.NewID() },
	} {
		w, _ := begun()
		w.rotate(2, 64<<10)
		end := w.commit(1, 1)
		change(w, &w.state.Segments[1])
		err := w.tail.read(&w.state, end)
		w.fails(err, false)
		if !strings.Contains(err.Error(), what) {
			t.Errorf("%v; want one about %q", err, what)
		}
	}
}

// TestTailIngests: the tables of a large transaction lie between memtables, unless the manifest has them.
func TestTailIngests(t *testing.T) { inEachWay(t, testTailIngests) }

func testTailIngests(t *testing.T, mapped bool) {
	for _, known := range []bool{false, true} {
		w := newWritten(t, mapped)
		w.segment(1, 64<<10, 0, 0)
		w.commit(3, 10)
		w.rotate(2, 64<<10)
		table := &base.TableMeta{Num: 9, Size: 1, Entries: 1, Smallest: []byte{0, 1}, Largest: []byte{0, 2}, GlobalSeq: 4, MinSeq: 4, MaxSeq: 4}
		edit := &manifest.Edit{Added: []manifest.Added{{Run: 4, Table: table}}}
		w.seg.Append(frame.Header{Kind: frame.KindIngest, Seq: 4, Count: 1}, edit.Append(nil))
		w.next = 5
		end := w.commit(2, 10)
		if known {
			w.state.IngestedThrough = 4
		}
		lies := newWritten(t, mapped)
		lies.segment(1, 64<<10, 0, 0)
		lies.state.IngestedThrough = w.state.IngestedThrough
		lies.seg.Append(frame.Header{Kind: frame.KindIngest, Seq: 3, Count: 1}, edit.Append(nil))
		lies.ok(lies.seg.WriteOut())
		tail, _ := lies.seg.Tail()
		lies.fails(lies.tail.read(&lies.state, tail), false)
		w.ok(w.tail.read(&w.state, end))
		var got []string
		for _, l := range w.tail.layers {
			if l.Mem == nil {
				got = append(got, fmt.Sprintf("tables %d up to %d", l.Tables()[0].Meta.Num, l.Seq))
			} else {
				got = append(got, fmt.Sprintf("%d to %d", l.Mem.FirstSeq(), l.Mem.LastSeq()))
			}
		}
		want := "[1 to 3 tables 9 up to 4 5 to 6]"
		if known {
			want = "[1 to 3 5 to 6]"
		}
		if fmt.Sprint(got) != want {
			t.Errorf("known %v: %v, want %s", known, got, want)
		}
		w.state.IngestedThrough = 4
		w.tail.cut(&w.state)
		defer func() { // behind tables only, a commit for which the memtable that was begun has no room
			w.rotate(3, 8<<20)
			edit.Added[0].Run, edit.Added[0].Table.GlobalSeq, edit.Added[0].Table.MinSeq, edit.Added[0].Table.MaxSeq = w.next, w.next, w.next, w.next
			w.seg.Append(frame.Header{Kind: frame.KindIngest, Seq: w.next, Count: 1}, edit.Append(nil))
			w.next++
			w.ok(w.seg.WriteOut())
			end, _ := w.seg.Tail()
			w.ok(w.tail.read(&w.state, end))
			if w.tail.mem == nil || w.tail.mem.Len() > 0 {
				t.Fatal("no memtable is begun")
			}
			w.ok(w.tail.read(nil, w.commit(50_000, 0)))
			if w.tail.next != w.next {
				t.Errorf("read up to sequence %d of %d", w.tail.next-1, w.next-1)
			}
		}()
		if len(w.tail.layers) != 2 {
			t.Errorf("%d layers once the manifest has the tables", len(w.tail.layers))
		}
	}
}
