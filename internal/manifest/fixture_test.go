package manifest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func testID(first byte) (id base.ID) {
	for i := range id {
		id[i] = first + byte(i)
	}
	return id
}

var testStore = testID(0xA0)

// tab describes a small table over keys [low, high].
func tab(num uint64, low, high string) *base.TableMeta {
	return &base.TableMeta{
		Num: num, File: testID(byte(num * 16)), Size: 1000, Smallest: []byte(low), Largest: []byte(high),
		MinSeq: num, MaxSeq: num + 9, Entries: 10, Deletes: 2, RawBytes: 2000,
	}
}

// segments is an edit that adds log segments.
func segments(nums ...uint64) *Edit {
	e := new(Edit)
	for _, n := range nums {
		e.Segments = append(e.Segments, Segment{Num: n, File: testID(byte(n * 16))})
	}
	return e
}

// stamped is an edit that can be told by its LastSeq.
func stamped(i int) *Edit {
	return &Edit{
		LastSeq: uint64(1000 + i),
		Added:   []Added{{Level: 0, Run: uint64(100 + i), Table: tab(uint64(100+i), "a", fmt.Sprint("b", i))}},
	}
}

func newLog(t testing.TB, fsys vfs.FS, snapshot *Edit) *Log {
	t.Helper()
	if err := fsys.MkdirAll("db"); err != nil {
		t.Fatal(err)
	}
	l, err := CreateWhen(nil, fsys, "db", testStore, 1, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t testing.TB, l *Log, e *Edit) uint64 {
	t.Helper()
	n, err := l.Append(e)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustRecover(t testing.TB, fsys vfs.FS) *State {
	t.Helper()
	s, err := Recover(fsys, "db", false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// content is what two states have to agree in to be the same store.
func content(s *State) string {
	return fmt.Sprintf("%x %x", s.Store, s.Snapshot().Append(nil))
}

func wantSame(t testing.TB, got, want *State) {
	t.Helper()
	if content(got) != content(want) {
		t.Fatalf("got\n%+v\n%swant\n%+v\n%s", got, got.Version, want, want.Version)
	}
}

func isTyped(err error) bool {
	var c *base.CorruptionError
	return errors.As(err, &c) && c.File != "" || errors.Is(err, base.ErrFormatTooNew)
}

// closedStore is a store after a clean close, with the state it had.
func closedStore(t testing.TB) (*memfs.FS, *State) {
	t.Helper()
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	mustAppend(t, l, stamped(1))
	mustAppend(t, l, &Edit{Segments: []Segment{{Num: 300, File: testID(9)}}, LogStart: 300, IngestedThrough: 7})
	if err := l.Mark(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, stamped(2))
	if err := l.Seal(&Edit{LogStart: 301, LastSeq: 5000}); err != nil {
		t.Fatal(err)
	}
	return fsys, l.State()
}

// randomEdit makes an edit that applies to s.
func randomEdit(rng *rand.Rand, s *State) *Edit {
	e := &Edit{NextFileNum: s.NextFileNum + 10, LastSeq: s.LastSeq + rng.Uint64N(100)}
	num := s.NextFileNum
	for _, t := range s.Version.Tables() {
		if rng.IntN(3) == 0 {
			e.Removed = append(e.Removed, Removed{Level: levelOf(s.Version, t.Num), Num: t.Num})
		}
	}
	for range rng.IntN(4) {
		num++
		t := tab(num, fmt.Sprintf("k%03d", rng.IntN(500)), fmt.Sprintf("k%03d", 500+rng.IntN(500)))
		t.LargestExclusive = rng.IntN(2) == 0
		t.RangeDeletes = rng.Uint64N(3)
		if rng.IntN(3) == 0 {
			t.GlobalSeq, t.MaxSeq = t.MinSeq, t.MinSeq
		}
		e.Added = append(e.Added, Added{Run: num, Table: t})
	}
	if rng.IntN(3) == 0 {
		num++
		e.Segments = []Segment{{Num: num, File: base.NewID()}}
	}
	if rng.IntN(4) == 0 && len(s.Segments) > 1 {
		e.LogStart = s.Segments[1].Num
	}
	if rng.IntN(5) == 0 {
		e.Dropped = &Dropped{Bytes: rng.Uint64N(3), From: rng.Uint64()}
	}
	if rng.IntN(3) == 0 {
		e.IngestedThrough = min(s.IngestedThrough+rng.Uint64N(9), s.LastSeq)
	}
	return e
}

func levelOf(v *Version, num uint64) int {
	for level, t := range v.Tables() {
		if t.Num == num {
			return level
		}
	}
	return -1
}

// frames decodes the frames of an intact manifest.
func frames(t testing.TB, buf []byte) (list []frame.Header, offs []int64) {
	t.Helper()
	h, err := base.DecodeFileHeader(buf, base.FileManifest, "")
	if err != nil {
		t.Fatal(err)
	}
	w := frame.Walker{ID: frame.NewIdentity(h.File), Buf: buf, Off: base.FileHeaderBytes}
	for {
		off := w.Off
		f, _, ok := w.Next()
		if !ok {
			return list, offs
		}
		list, offs = append(list, f), append(offs, off)
	}
}

// frameBytes returns where the last frame of a manifest ends; zeros may follow.
func frameBytes(t testing.TB, buf []byte) int64 {
	t.Helper()
	list, offs := frames(t, buf)
	return offs[len(offs)-1] + int64(list[len(list)-1].Length)
}

// noReserve is a file system that cannot preallocate.
type noReserve struct{ vfs.FS }

func (n noReserve) Create(name string) (vfs.File, error) {
	f, err := n.FS.Create(name)
	return noReserveFile{f}, err
}

type noReserveFile struct{ vfs.File }

func (noReserveFile) Preallocate(off, n int64) error { return errors.ErrUnsupported }
