package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// used returns the file of segment 1, all of whose frames, as many as fit, are whole.
func used(t *testing.T, f vfs.FS) *Used {
	t.Helper()
	s := create(t, f, 1, lengthUnit)
	s.Link(0, 0, 0)
	for seq := uint64(1); s.Room(20); seq++ {
		commit(s, seq, 0, fmt.Sprintf("old%04d", seq))
	}
	check(t, s.WriteOut())
	check(t, s.Sync())
	u := s.Retire()
	if u == nil || u.Size() != lengthUnit || u.Name() != s.name || !u.Cached() {
		t.Fatalf("%+v", u)
	}
	if s.Retire() != nil {
		t.Error("retired twice")
	}
	return u
}

func reuse(t *testing.T, f vfs.FS, num uint64) *Segment {
	t.Helper()
	s, err := Reuse(f, used(t, f), base.FileName(base.FileLog, num), num, storeID, make([]byte, lengthUnit))
	check(t, err)
	return s
}

// TestReuse: what an earlier use of the file left is no part of the log, wherever that
// ends, and is not reported as dropped.
func TestReuse(t *testing.T) {
	m := memfs.New()
	b := newBuilder(t)
	b.fs = m
	s := reuse(t, m, 5)
	b.segs = append(b.segs, s)
	expect := func(want string) {
		t.Helper()
		keys, r, err := b.replay(b.files(), 0)
		if err != nil || fmt.Sprint(keys) != want || r.Dropped != 0 {
			t.Errorf("%v, %d bytes dropped, %v, want %s", keys, r.Dropped, err, want)
		}
	}
	if files := m.Files(); !slices.Equal(files, []string{"/000005.log"}) {
		t.Errorf("files %v", files)
	}
	data, err := m.ReadFile(s.name)
	check(t, err)
	if stray, err := LoadStray(data, s.name, 5, storeID); stray != nil || err != nil {
		t.Errorf("it holds a commit before it is used: %v, %v", stray, err)
	}
	expect("[]")
	s.Link(0, 0, 0)
	expect("[]")
	var keys []string
	for i := 0; s.Room(16); i++ {
		keys = append(keys, fmt.Sprintf("new%d", i))
		b.commit(0, keys[i])
		expect(fmt.Sprint(keys))
	}
	if len(keys) < 40 {
		t.Errorf("%d commits in %d bytes", len(keys), lengthUnit)
	}
}

// TestReuseTorn: what is lost of the last commits is reported, but not what an earlier use
// left behind them.
func TestReuseTorn(t *testing.T) {
	b := newBuilder(t)
	s := reuse(t, b.fs, 5)
	b.segs = append(b.segs, s)
	s.Link(0, 0, 0)
	for _, key := range []string{"a", "b", "c"} {
		b.commit(0, key)
		check(t, s.WriteOut())
	}
	whole := b.files()[0]
	first, last := b.frame[0].Offset(), b.frame[2].Offset()
	for at := first; at < last; at++ {
		data := slices.Clone(whole)
		data[at] ^= 1
		keys, r, err := b.replay([][]byte{data}, 0)
		if err != nil || len(keys) == 3 || r.Dropped < frame.HeaderBytes || r.Dropped > last-first {
			t.Fatalf("byte %d: %v, %d bytes dropped, %v", at, keys, r.Dropped, err)
		}
	}
	for at := int64(base.FileHeaderBytes); at < int64(len(whole)); at++ { // cut off, and old bytes in its place
		old, err := newOld(t)
		check(t, err)
		data := slices.Concat(whole[:at], old[at:])
		keys, r, err := b.replay([][]byte{data}, 0)
		if at >= last+frame.HeaderBytes && (err != nil || len(keys) != 3 || r.Dropped != 0) || r != nil && r.Dropped > last {
			t.Fatalf("cut at %d: %v, %v, %+v", at, keys, err, r)
		}
	}
}

// newOld returns the bytes that used leaves.
func newOld(t *testing.T) ([]byte, error) {
	m := memfs.New()
	check(t, used(t, m).Close())
	return m.ReadFile("000001.log")
}

// TestReuseOneWriteMissing: the frame behind the last one comes first, so a process that
// dies between the two leaves a log that ends where it did.
func TestReuseOneWriteMissing(t *testing.T) {
	f := faultfs.New(memfs.New())
	b := newBuilder(t)
	s := reuse(t, f, 5)
	b.segs = append(b.segs, s)
	s.Link(0, 0, 0)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut())
	commit(s, 2, 0, "b")
	f.Add(faultfs.Rule{Kinds: faultfs.Write, At: 2, Do: faultfs.Fail(syscall.EIO)})
	if err := s.WriteOut(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	file, err := f.Open(s.name)
	check(t, err)
	data := make([]byte, lengthUnit)
	_, err = file.ReadAt(data, 0)
	check(t, err)
	keys, r, err := b.replay([][]byte{data}, 0)
	if err != nil || fmt.Sprint(keys) != "[a]" || r.Dropped != 0 {
		t.Errorf("%v, %d bytes dropped, %v", keys, r.Dropped, err)
	}
}

// TestRetireNotSynced: what is not synced would have to be written for nothing.
func TestRetireNotSynced(t *testing.T) {
	s := create(t, memfs.New(), 1, lengthUnit)
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	if s.Retire() != nil {
		t.Error("not synced")
	}
	check(t, s.Sync()) // closed: nothing is left to sync
	f := faultfs.New(memfs.New())
	s = create(t, f, 1, lengthUnit)
	s.Link(0, 0, 0)
	check(t, s.WriteOut())
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Do: faultfs.Fail(syscall.EIO)})
	if s.Sync() == nil || s.Retire() != nil {
		t.Error("its sync failed")
	}
	s = create(t, f, 2, lengthUnit)
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Fail(syscall.EIO)})
	s.Link(0, 0, 0)
	if s.WriteOut() == nil {
		t.Error("a write that failed")
	}
	s.Abandon()
	check(t, s.Sync())
	if s.Retire() != nil {
		t.Error("a write to it failed")
	}
	s = create(t, struct{ vfs.FS }{plain{memfs.New()}}, 1, lengthUnit)
	if s.Retire() != nil {
		t.Error("nobody knows what is in memory")
	}
}

// plain is a file system whose files cannot do more than they must.
type plain struct{ vfs.FS }

func (p plain) Create(name string) (vfs.File, error) {
	f, err := p.FS.Create(name)
	return struct{ vfs.File }{f}, err
}

// TestReuseFails at each operation: the file keeps its name, which is older than the log,
// and the next segment is made anew.
func TestReuseFails(t *testing.T) {
	for n := int64(1); ; n++ {
		m := memfs.New()
		f := faultfs.New(m)
		u := used(t, f)
		rule := f.Add(faultfs.Rule{Kinds: faultfs.Mutations, At: n, Do: faultfs.Fail(syscall.EIO)})
		s, err := Reuse(f, u, "000005.log", 5, storeID, make([]byte, lengthUnit))
		if rule.Seen() < n {
			check(t, err)
			check(t, s.Close())
			if n < 4 {
				t.Errorf("%d operations", n-1)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) || !slices.Equal(m.Files(), []string{"/000001.log"}) {
			t.Errorf("operation %d fails: %v, files %v", n, err, m.Files())
		}
	}
}

// TestReuseNeverReplaces: a file that somebody else has made stays, and a link that leads nowhere, of which Stat says that
// there is nothing. Where no file can be opened because no descriptor is left, Stat decides.
func TestReuseNeverReplaces(t *testing.T) {
	for _, c := range []struct {
		there bool
		opens error // what Open returns; nil: what it does
		want  error
	}{
		{there: true, want: fs.ErrExist},
		{opens: vfs.ErrNotRegular, want: fs.ErrExist},
		{opens: syscall.EMFILE},
		{there: true, opens: syscall.EMFILE, want: fs.ErrExist},
	} {
		m := memfs.New()
		if c.there {
			create(t, m, 5, lengthUnit).Close()
		}
		before := len(m.Files())
		s, err := Reuse(&opensNot{m, c.opens}, used(t, m), "000005.log", 5, storeID, make([]byte, lengthUnit))
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v", c, err)
		}
		if files := m.Files(); len(files) != before+1 {
			t.Errorf("%+v: files %v", c, files)
		}
		if err == nil {
			s.Close()
		}
	}
}

// opensNot opens no file to read, if there is an error to return.
type opensNot struct {
	vfs.FS
	err error
}

func (f *opensNot) Open(name string) (vfs.File, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.FS.Open(name)
}

func TestShelf(t *testing.T) {
	var s Shelf
	if s.Take(lengthUnit) != nil {
		t.Error("a file out of nothing")
	}
	for i := range mostShelved + 1 {
		if s.Put(used(t, memfs.New())) != (i < mostShelved) {
			t.Errorf("file %d", i)
		}
	}
	if s.Take(2*lengthUnit) != nil || s.Take(lengthUnit) == nil {
		t.Error("not one of that size")
	}
	var names []string
	s.Clear(func(name string) { names = append(names, name) })
	if !slices.Equal(names, []string{"000001.log"}) || s.Take(lengthUnit) != nil {
		t.Errorf("left: %v", names)
	}
}
