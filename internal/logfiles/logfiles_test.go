package logfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const size = 64 << 10

type fixture struct {
	Files
	t     *testing.T
	disk  *memfs.FS
	next  uint64
	again bool
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, disk: memfs.New(), next: 1, again: true}
	f.FS, f.Dir, f.Store, f.Obsolete = f.disk, "/db", base.ID{1}, new(obsolete.Files)
	f.NewNum = func() uint64 { f.next++; return f.next - 1 }
	f.GiveBack = func(num uint64) { f.next = num }
	f.MayUse = func(n int) bool { return f.again && n == size }
	f.Failed = func(err error) { t.Error(err) }
	if err := f.disk.MkdirAll("/db"); err != nil {
		t.Fatal(err)
	}
	return f
}

// segment makes a synced segment with one frame.
func (f *fixture) segment() *wal.Segment {
	f.t.Helper()
	seg, err := f.Create(Form{Size: size}, func() ([]byte, error) { return make([]byte, size), nil })
	if err == nil {
		seg.Append(frame.Header{Kind: frame.KindLink}, make([]byte, 16))
		err = errors.Join(seg.WriteOut(), seg.Sync())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.Add(seg.Num)
	return seg
}

// there checks which segments' files there are.
func (f *fixture) there(want ...uint64) {
	f.t.Helper()
	names, err := f.disk.List("/db")
	var got []uint64
	for _, name := range names {
		_, num := base.ParseFileName(name)
		got = append(got, num)
	}
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		f.t.Errorf("files %v, want %v; %v", got, want, err)
	}
}

func (f *fixture) count(segments, used int) {
	f.t.Helper()
	if s, u := f.Live(); s != segments || u != used {
		f.t.Errorf("%d segments, %d files kept; want %d, %d", s, u, segments, used)
	}
}

// TestUsedAgain: the file of a flushed segment stays until no manifest needs it, and is the next one's then.
func TestUsedAgain(t *testing.T) {
	f := newFixture(t)
	first, second := f.segment(), f.segment()
	f.LetGo([]*wal.Segment{first, second}, 2, 7) // the second memtable was flushed, too, but the log begins with it
	f.count(1, 1)
	f.Remove(f.disk.Remove, f.Obsolete.Take(6))
	f.there(1, 2)
	f.Remove(f.disk.Remove, f.Obsolete.Take(7))
	f.there(1, 2) // the first one waits
	f.segment()
	f.there(2, 3)
	f.count(2, 1)
	f.LetGo(nil, 4, 8)
	f.count(0, 0)
	f.again = false
	f.Remove(f.disk.Remove, f.Obsolete.Take(8))
	f.there()
}

// TestCleared: what waits for the next segment can be removed, and is where it does not fit.
func TestCleared(t *testing.T) {
	f := newFixture(t)
	wait := func() {
		f.LetGo([]*wal.Segment{f.segment()}, f.next, 1)
		f.Remove(f.disk.Remove, f.Obsolete.Take(1))
	}
	wait()
	f.there(1)
	if !f.Clear(f.disk.Remove) || f.Clear(f.disk.Remove) {
		t.Error("nothing waited, or something still does")
	}
	f.there()
	wait()
	seg, err := f.Create(Form{Size: 2 * size}, func() ([]byte, error) { return make([]byte, 2*size), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	f.there(seg.Num)
}

// TestSeal: of what Close removes, the space of large files that are not synced is freed at once.
func TestSeal(t *testing.T) {
	f := newFixture(t)
	disk := &soonDisk{FS: f.disk}
	f.FS = disk
	for range 3 {
		const large = 2 << 20
		seg, err := f.Create(Form{Size: large}, func() ([]byte, error) { return make([]byte, large), nil })
		if err != nil {
			t.Fatal(err)
		}
		f.Add(seg.Num)
		seg.Close()
	}
	f.NeverSynced(2)
	remove := f.Seal(9)
	f.count(0, 0)
	f.Remove(remove, f.Obsolete.Take(0))
	f.there()
	if want := []string{f.Path(1), f.Path(3)}; !slices.Equal(disk.soon, want) {
		t.Errorf("%v may be free later, want %v", disk.soon, want)
	}
}

// soonDisk is a disk that notes what is removed before its space is free.
type soonDisk struct {
	*memfs.FS
	soon []string
}

func (d *soonDisk) Unlink(name string) (free func(), err error) {
	d.soon = append(d.soon, name)
	return func() {}, d.Remove(name)
}

// TestFailures: what cannot be removed is told.
func TestFailures(t *testing.T) {
	f := newFixture(t)
	f.segment().Close()
	var told []error
	f.Failed = func(err error) { told = append(told, err) }
	cannot := errors.New("cannot")
	f.Remove(func(path string) error { return fmt.Errorf("%s: %w", path, cannot) }, []obsolete.File{{Path: f.Path(1)}})
	if len(told) != 1 || !errors.Is(told[0], cannot) {
		t.Errorf("told %v", told)
	}
	gone := func(string) error { return fs.ErrNotExist }
	f.Obsolete.Hurry()
	again := f.Obsolete.Take(^uint64(0))
	if f.Remove(gone, again); len(again) != 1 || len(told) != 1 {
		t.Errorf("%d are tried again, and told %v of one that the first try has removed", len(again), told)
	}
	if f.Remove(gone, []obsolete.File{{Path: f.Path(1)}}); len(told) != 2 || !errors.Is(told[1], fs.ErrNotExist) {
		t.Errorf("told %v of one that somebody else has removed", told)
	}
	if left := f.Obsolete.Take(^uint64(0)); len(left) != 0 {
		t.Errorf("what is gone is tried again: %v", left)
	}
}

// TestRetiredMeanwhile: the file of a segment that the edit of somebody else has retired before its memtable is let go of
// is not kept open.
func TestRetiredMeanwhile(t *testing.T) {
	f := newFixture(t)
	seg := f.segment()
	f.LetGo(nil, seg.Num+1, 1)
	f.count(0, 0)
	f.LetGo([]*wal.Segment{seg}, seg.Num+1, 2)
	f.count(0, 0)
}

// TestNumbersOfFailedSegments: the number of a segment is given back where there was no space for its file, and only there: of one that
// failed for another reason there may be a file.
func TestNumbersOfFailedSegments(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		for _, c := range []struct {
			do   faultfs.Action
			err  error
			want uint64
		}{{faultfs.NoSpace(), vfs.ErrNoSpace, 1}, {faultfs.Fail(syscall.EIO), syscall.EIO, 2}, {faultfs.DoneBut(syscall.EIO), syscall.EIO, 2}} {
			f := newFixture(t)
			faults := faultfs.New(f.disk)
			faults.Add(faultfs.Rule{Kinds: faultfs.Create, Sticky: true, Do: c.do})
			f.FS = faults
			_, err := f.Create(Form{Size: size, Mapped: mapped}, func() ([]byte, error) { return make([]byte, size), nil })
			if !errors.Is(err, c.err) || f.next != c.want {
				t.Errorf("mapped %v, %+v: %v, and the next number is %d", mapped, c, err, f.next)
			}
			f.FS = f.disk
			f.segment().Close()
		}
	}
}
