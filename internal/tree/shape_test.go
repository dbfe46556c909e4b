package tree

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestShape(t *testing.T) {
	const limit = 64 << 20
	var s Shape
	for _, want := range []int{MinSegment, MinSegment, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 64 << 20} {
		if size, _ := s.Next(0, 0, limit); size != want {
			t.Errorf("%d bytes, want %d", size, want)
		}
		s.Note(nil, limit)
	}
	s = Shape{Relaxed: true}
	for _, want := range []int{RelaxedSegment, RelaxedSegment, 4 << 20, 8 << 20} {
		if size, _ := s.Next(0, 0, limit); size != want {
			t.Errorf("relaxed: %d bytes, want %d", size, want)
		}
		s.Note(nil, limit)
	}
	if size, _ := s.Next(0, 0, 512<<10); size != 512<<10 {
		t.Errorf("relaxed: %d bytes, beyond the limit", size)
	}
	for _, c := range []struct{ need, count, limit, size, records int }{
		{0, 0, limit, MinSegment, MinSegment/73 + 512},             // nothing is known
		{100, 1, limit, MinSegment, MinSegment/73 + 512},           // it is small
		{16 << 10, 1, limit, 1 << 20, (1<<20)/73 + 512},            // room for many of them
		{1 << 20, 1, limit, 4 << 20, (4<<20)/(896<<10) + 512},      // room for a few more of them
		{15 << 20, 10_000, limit, 15 << 20, (15<<20)/1375 + 512},   // only itself: its records are known
		{15 << 20, 10_000, 1 << 20, 15 << 20, (15<<20)/1375 + 512}, // however small the limit is
		{100_000, 6000, 64 << 10, 102_400, 102_400/16 + 512},       // no record is taken for less than 16 bytes
		{256 << 10, 100_000, limit, 1 << 20, 100_512},              // room for all of its own
	} {
		var s Shape
		if size, records := s.Next(c.need, c.count, c.limit); size != c.size || records != c.records {
			t.Errorf("need %d, count %d, limit %d: %d bytes, %d records, want %d, %d", c.need, c.count, c.limit, size, records, c.size, c.records)
		}
	}
}

// TestShapeFollowsCommits: a spare made ahead has to hold the commits that come, or it is
// thrown away, and they wait for another; and its index should be as large as it takes.
func TestShapeFollowsCommits(t *testing.T) {
	var s Shape
	s.Saw(100, 1, true)
	s.Saw(1<<20-wal.OverheadBytes, 1, true)
	if size, records := s.Next(0, 0, 64<<20); size != 4<<20 || records != (4<<20)/((1<<19+50-wal.OverheadBytes/2)*7/8)+512 {
		t.Errorf("%d bytes, %d records", size, records)
	}
	if size, _ := s.Next(0, 0, 1<<20); size != 1<<20 {
		t.Errorf("beyond the limit: %d bytes", size)
	}
	sealed := sealedMemory(t, 3<<20)
	s.Note(sealed, 64<<20)
	if size, _ := s.Next(0, 0, 64<<20); size != MinSegment {
		t.Errorf("%d bytes, when no large commit was seen in the active segment", size)
	}
}

// TestShapeForgetsALongCommit: what comes behind one that had a segment of its own is not taken to be as much.
func TestShapeForgetsALongCommit(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct{ commit, used, want int }{
		{5 << 20, 5<<20 + 300<<10, 2 * 300 << 10 &^ 4095},
		{5 << 20, 5 << 20, MinSegment},
		{limit, limit, limit},
	} {
		var s Shape
		s.Saw(c.commit-wal.OverheadBytes, 1, true)
		s.Rest(sealedMemory(t, c.used), limit)
		if size, _ := s.Next(0, 0, limit); size < c.want || size > c.want+8192 {
			t.Errorf("%d bytes behind %d of which a commit takes %d, not %d", size, c.used, c.commit, c.want)
		}
	}
}

// sealedMemory returns a memtable with one record, whose segment is used to that many bytes
// or a little more.
func sealedMemory(t *testing.T, used int) *Memory {
	t.Helper()
	fs := memfs.New()
	buf := make([]byte, used+8192)
	seg, err := wal.Create(fs, "000001.log", 1, base.ID{1}, buf, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	m := NewMemory(seg, buf, make([]byte, IndexBytes(len(buf), 10)), 10, func(*Memory) {})
	m.SetBase(1)
	payload := frame.AppendEntry(nil, base.KindPut, []byte("\x00key"), make([]byte, used))
	at := int(seg.Append(frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1}, payload))
	entry, _ := frame.DecodeEntry(buf[at:])
	m.Insert(at, &entry, base.Hash(entry.Key))
	return m
}

// TestShapeOfWhatIsSealedEarly: a segment that somebody has sealed, as Compact does, is not followed by ever larger ones.
func TestShapeOfWhatIsSealedEarly(t *testing.T) {
	var s Shape
	for range 4 {
		s.Note(nil, 64<<20)
	}
	before, _ := s.Next(0, 0, 64<<20)
	m := sealedMemory(t, 1000)
	if 2*m.Used() >= m.Seg.Capacity() {
		t.Fatalf("%d bytes of %d are used", m.Used(), m.Seg.Capacity())
	}
	for range 3 {
		s.Note(m, 64<<20)
	}
	if size, _ := s.Next(0, 0, 64<<20); size != before {
		t.Errorf("%d bytes, and %d behind three that are hardly used", before, size)
	}
}

// TestMemoryUsed: the next segment is due, and space put aside, by what is used: of records too, if those take more
// of their room; a sealed memtable takes no more than that.
func TestMemoryUsed(t *testing.T) {
	m := sealedMemory(t, 1000)
	tail, _ := m.Seg.Tail()
	if got := m.Used(); got != int(tail.Offset()) || got <= m.Seg.Capacity()/10 {
		t.Errorf("one of ten records: %d bytes of %d are used, want %d", got, m.Seg.Capacity(), tail.Offset())
	}
	e, _ := frame.DecodeEntry(frame.AppendEntry(nil, base.KindDelete, []byte("\x00key"), nil))
	for range 7 {
		m.Insert(0, &e, base.Hash(e.Key))
	}
	if got := m.Used(); got != m.Seg.Capacity()*8/10 {
		t.Errorf("eight of ten records: %d bytes of %d are used", got, m.Seg.Capacity())
	}
	layers := []*Layer{{Mem: m}}
	if got := largestMemory(layers); got != int64(m.Seg.Capacity()) {
		t.Errorf("the one to which commits are added may take %d bytes, want %d", got, m.Seg.Capacity())
	}
	layers = append(layers, &Layer{Mem: sealedMemory(t, 30_000)})
	if got, n := largestMemory(layers), int64(layers[1].Mem.Seg.Capacity()); got <= 30_000 || got >= n {
		t.Errorf("behind it one that is sealed: %d bytes of %d", got, n)
	}
}

func TestNextDue(t *testing.T) {
	for _, c := range []struct {
		relaxed        bool
		capacity, from int
	}{
		{false, 64 << 10, 48 << 10}, {false, MinSegment, 384 << 10}, {false, MinSegment + 4096, (MinSegment + 4096) / 2}, {false, 1 << 20, 512 << 10}, {false, 4 << 20, 2 << 20}, {false, 16 << 20, 8 << 20},
		{true, 64 << 10, 32 << 10}, {true, MinSegment, 256 << 10}, {true, RelaxedSegment, 512 << 10}, {true, 4 << 20, 2 << 20}, {true, 16 << 20, 8 << 20},
	} {
		if s := (Shape{Relaxed: c.relaxed}); s.NextDue(c.from-1, c.capacity) || !s.NextDue(c.from, c.capacity) {
			t.Errorf("relaxed %v, capacity %d: not due from %d on", c.relaxed, c.capacity, c.from)
		}
	}
}

// TestShapeFollowsDurability: whether few commits wait for a sync is what most to the last
// segment did.
func TestShapeFollowsDurability(t *testing.T) {
	for _, c := range []struct {
		before          bool
		durable, others int
		want            bool
	}{
		{true, 0, 9, true}, {true, 4, 5, true}, {true, 5, 4, false}, {false, 4, 5, true}, {false, 9, 0, false},
		{true, 5, 5, true}, {false, 5, 5, false}, // as it was
	} {
		s := Shape{Relaxed: c.before}
		for range c.durable {
			s.Saw(100, 1, true)
		}
		for range c.others {
			s.Saw(100, 1, false)
		}
		if s.Relaxed != c.before {
			t.Error("changed within a segment")
		}
		s.Note(sealedMemory(t, 1000), 64<<20)
		if s.Relaxed != c.want {
			t.Errorf("%+v: %v", c, s.Relaxed)
		}
	}
}

// TestMostLong: what was seen of the last segment holds until there are commits to the next one.
func TestMostLong(t *testing.T) {
	var s Shape
	want := func(want bool, what string) {
		t.Helper()
		if s.MostLong(0) != want {
			t.Errorf("%s: %v", what, !want)
		}
	}
	want(false, "nothing seen")
	if s.MostLong(LongCommit-1) || !s.MostLong(LongCommit) {
		t.Error("the commit that waits for the segment decides")
	}
	s.Saw(LongCommit, 1, true)
	want(true, "a long one")
	for range 9 {
		s.Saw(100, 1, true)
	}
	want(false, "nine small ones behind it")
	for range 9 {
		s.Saw(1<<20, 1000, true)
	}
	want(true, "as many long ones")
	s.Note(sealedMemory(t, 1000), 64<<20)
	want(true, "the next segment")
	s.Saw(100, 1, true)
	want(false, "a small one in that")
	s.Note(sealedMemory(t, 1000), 64<<20)
	want(false, "the segment behind")
}
