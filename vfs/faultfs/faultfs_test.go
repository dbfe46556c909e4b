package faultfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
	"github.com/cairndb/cairn/vfs/vfstest"
)

// TestFreeSpace: it is what the file system below has left, through whatever lies above it.
func TestFreeSpace(t *testing.T) {
	disk := memfs.New()
	over := vfs.Guarded(faultfs.New(disk), lockLost{})
	if n, known := vfs.FreeSpace(over, "/"); known {
		t.Errorf("%d bytes of a disk without limit", n)
	}
	disk.SetCapacity(3 * 4096)
	f, err := disk.Create("/file")
	if err == nil {
		_, err = f.WriteAt([]byte("x"), 0)
	}
	if n, known := vfs.FreeSpace(over, "/"); err != nil || !known || n != 2*4096 {
		t.Errorf("%d bytes of 2 pages, known %v (%v)", n, known, err)
	}
}

// lockLost is a lock whose file is gone.
type lockLost struct{}

func (lockLost) Check() error { return errIO }

var errIO = errors.New("input/output error")

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t testing.TB) (vfs.FS, string) {
		inner := memfs.New()
		check(t, inner.MkdirAll("/store"))
		return faultfs.New(inner), "/store"
	})
}

// TestConformanceOverOS also has rules, which match nothing.
func TestConformanceOverOS(t *testing.T) {
	vfstest.Run(t, func(t testing.TB) (vfs.FS, string) {
		f := faultfs.New(vfs.OS())
		f.Add(faultfs.Rule{Do: faultfs.Fail(errIO), Name: "no such name"})
		f.Add(faultfs.Rule{Do: faultfs.Fail(errIO), At: 1 << 40})
		f.Add(faultfs.Rule{})
		f.StartTrace()
		return f, t.TempDir()
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, f vfs.FS, name, text string) vfs.File {
	t.Helper()
	h, err := f.Create(name)
	check(t, err)
	if text != "" {
		_, err = h.WriteAt([]byte(text), 0)
		check(t, err)
	}
	return h
}

func content(t testing.TB, m *memfs.FS, name string) string {
	t.Helper()
	data, err := m.ReadFile(name)
	check(t, err)
	return string(data)
}

func two() (*memfs.FS, *faultfs.FS) {
	m := memfs.New()
	return m, faultfs.New(m)
}

// everyKind does one operation of each kind and returns the errors by kind.
func everyKind(f vfs.FS) map[faultfs.Kind]error {
	errs := map[faultfs.Kind]error{}
	errs[faultfs.Mkdir] = f.MkdirAll("d")
	var h vfs.File
	h, errs[faultfs.Create] = f.Create("a")
	if h != nil {
		_, errs[faultfs.Write] = h.WriteAt([]byte("x"), 0)
		_, errs[faultfs.Read] = h.ReadAt(make([]byte, 1), 0)
		errs[faultfs.Sync] = h.Sync()
		errs[faultfs.Preallocate] = h.Preallocate(0, 1)
		_, errs[faultfs.Size] = h.Size()
		errs[faultfs.Close] = h.Close()
	}
	if h, err := f.Open("a"); err != nil {
		errs[faultfs.Open] = err
	} else {
		_ = h.Close()
	}
	errs[faultfs.Link] = f.Link("a", "b")
	errs[faultfs.Rename] = f.Rename("a", "c")
	_, errs[faultfs.List] = f.List("/")
	_, errs[faultfs.Stat] = f.Stat("/")
	errs[faultfs.SyncDir] = f.SyncDir("/")
	if l, err := f.Lock("LOCK", false); err != nil {
		errs[faultfs.Lock] = err
	} else {
		_ = l.Close()
	}
	errs[faultfs.Remove] = f.Remove("LOCK")
	return errs
}

func TestFailEveryKind(t *testing.T) {
	for kind := faultfs.Kind(1); kind&faultfs.All != 0; kind <<= 1 {
		_, f := two()
		rule := f.Add(faultfs.Rule{Kinds: kind, Do: faultfs.Fail(errIO)})
		err := everyKind(f)[kind]
		if !errors.Is(err, errIO) || !strings.Contains(err.Error(), kind.String()) {
			t.Errorf("%v: %v", kind, err)
		}
		if rule.Fired() != 1 {
			t.Errorf("%v fired %d times", kind, rule.Fired())
		}
	}
}

func TestFailedOperationIsNotDone(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "old")
	before := m.Journal().Len()
	f.Add(faultfs.Rule{Kinds: faultfs.Mutations, Sticky: true, Do: faultfs.Fail(errIO)})
	_, err := h.WriteAt([]byte("new"), 0)
	for _, err := range []error{err, h.Sync(), h.Preallocate(0, 100), f.Remove("a"), f.Rename("a", "b"), f.Link("a", "b"), f.MkdirAll("d"), f.SyncDir("/")} {
		if !errors.Is(err, errIO) {
			t.Error(err)
		}
	}
	if m.Journal().Len() != before {
		t.Fatal(m.Journal().Ops()[before:])
	}
	f.Heal()
	_, err = h.WriteAt([]byte("new"), 0)
	check(t, err)
}

// TestEveryOrdinal is the loop of the package documentation.
func TestEveryOrdinal(t *testing.T) {
	_, f := two()
	every := f.Add(faultfs.Rule{})
	clean := everyKind(f)
	for kind, err := range clean {
		check(t, err)
		_ = kind
	}
	if every.Seen() != 18 || every.Fired() != 0 || f.Ordinal() != 18 {
		t.Fatal(every.Seen(), every.Fired(), f.Ordinal())
	}
	for n := int64(1); n <= every.Seen(); n++ {
		_, f := two()
		f.StartTrace()
		rule := f.Add(faultfs.Rule{At: n, Do: faultfs.Fail(errIO)})
		everyKind(f)
		if rule.Fired() != 1 {
			t.Fatalf("ordinal %d: fired %d times", n, rule.Fired())
		}
		for _, e := range f.Trace() {
			if errors.Is(e.Err, errIO) != (e.Ordinal == n) {
				t.Fatalf("ordinal %d: %v", n, e)
			}
		}
	}
}

func TestOnceAndSticky(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		_, f := two()
		h := create(t, f, "a", "")
		f.Add(faultfs.Rule{Kinds: faultfs.Sync, At: 2, Sticky: sticky, Do: faultfs.Fail(errIO)})
		var got []bool
		for range 4 {
			got = append(got, h.Sync() != nil)
		}
		if want := []bool{false, true, sticky, sticky}; !slices.Equal(got, want) {
			t.Errorf("sticky %v: %v", sticky, got)
		}
	}
}

func TestNamePattern(t *testing.T) {
	_, f := two()
	check(t, f.MkdirAll("d.log"))
	log, table := create(t, f, "d.log/1.log", ""), create(t, f, "d.log/2.sst", "")
	rule := f.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.Rename, Name: "*.log", Sticky: true, Do: faultfs.Fail(errIO)})
	check(t, table.Sync())
	if !errors.Is(log.Sync(), errIO) {
		t.Fatal("1.log was synced")
	}
	if !errors.Is(f.Rename("d.log/2.sst", "d.log/3.log"), errIO) {
		t.Fatal("the new name of a rename does not count")
	}
	rule.Stop()
	check(t, log.Sync())
	if rule.Seen() != 2 || rule.Fired() != 2 {
		t.Fatal(rule.Seen(), rule.Fired())
	}
	defer func() {
		if recover() == nil {
			t.Fatal("a bad pattern was accepted")
		}
	}()
	f.Add(faultfs.Rule{Name: "[", Do: faultfs.Fail(errIO)})
}

func TestFirstRuleDecides(t *testing.T) {
	_, f := two()
	h := create(t, f, "a", "")
	other := errors.New("other")
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, At: 2, Do: faultfs.Fail(errIO)})
	second := f.Add(faultfs.Rule{Kinds: faultfs.Sync, Sticky: true, Do: faultfs.Fail(other)})
	if err := h.Sync(); !errors.Is(err, other) {
		t.Fatal(err)
	}
	if err := h.Sync(); !errors.Is(err, errIO) {
		t.Fatal(err)
	}
	if second.Seen() != 2 || second.Fired() != 1 {
		t.Fatal(second.Seen(), second.Fired())
	}
}

func TestShort(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "")
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Short(faultfs.Half, errIO)})
	if n, err := h.WriteAt([]byte("abcdef"), 0); n != 3 || !errors.Is(err, errIO) {
		t.Fatal(n, err)
	}
	if got := content(t, m, "a"); got != "abc" {
		t.Fatalf("%q", got)
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Read, Do: faultfs.Short(2, errIO)})
	buf := make([]byte, 3)
	if n, err := h.ReadAt(buf, 0); n != 2 || !errors.Is(err, errIO) || string(buf) != "ab\x00" {
		t.Fatal(n, err, buf)
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Do: faultfs.Short(2, errIO)})
	if err := h.Sync(); !errors.Is(err, errIO) {
		t.Fatal(err)
	}
}

func TestNoSpace(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "")
	f.Add(faultfs.Rule{Kinds: faultfs.Write | faultfs.Preallocate, Sticky: true, Do: faultfs.NoSpace()})
	if n, err := h.WriteAt([]byte("abc"), 0); n != 0 || !vfs.IsNoSpace(err) {
		t.Fatal(n, err)
	}
	if err := h.Preallocate(0, 10); !vfs.IsNoSpace(err) {
		t.Fatal(err)
	}
	f.Heal()
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Short(1, vfs.ErrNoSpace)})
	if n, err := h.WriteAt([]byte("abc"), 0); n != 1 || !vfs.IsNoSpace(err) || content(t, m, "a") != "a" {
		t.Fatal(n, err)
	}
}

func TestTearCutsPower(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "")
	l, err := f.Lock("LOCK", false)
	check(t, err)
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Tear(2)})
	if n, err := h.WriteAt([]byte("abcdef"), 0); n != 2 || !errors.Is(err, faultfs.ErrPowerCut) {
		t.Fatal(n, err)
	}
	before := m.Journal().Len()
	for kind, err := range everyKind(f) {
		if !errors.Is(err, faultfs.ErrPowerCut) {
			t.Errorf("%v after the power cut: %v", kind, err)
		}
	}
	if m.Journal().Len() != before {
		t.Fatal("something reached the disk after the power cut")
	}
	if err := l.Close(); !errors.Is(err, faultfs.ErrPowerCut) {
		t.Fatal(err)
	}
	f.Heal()
	if got := content(t, m, "a"); got != "ab" {
		t.Fatalf("%q", got)
	}
	_, err = f.Lock("LOCK", false)
	check(t, err) // the failed Close let go all the same
}

func TestTearOfOtherKinds(t *testing.T) {
	_, f := two()
	h := create(t, f, "a", "abc")
	f.Add(faultfs.Rule{Kinds: faultfs.Read, Do: faultfs.Tear(2)})
	if n, err := h.ReadAt(make([]byte, 3), 0); n != 0 || !errors.Is(err, faultfs.ErrPowerCut) {
		t.Fatal(n, err)
	}
	if _, err := h.Size(); !errors.Is(err, faultfs.ErrPowerCut) {
		t.Fatal(err)
	}
}

func TestDelay(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "")
	const delay = 20 * time.Millisecond
	f.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.Write, Sticky: true, Do: faultfs.Delay(delay)})
	begin := time.Now()
	check(t, h.Sync())
	_, err := h.WriteAt([]byte("abc"), 0)
	check(t, err)
	if waited := time.Since(begin); waited < 2*delay {
		t.Fatal(waited)
	}
	if content(t, m, "a") != "abc" {
		t.Fatal("a delayed write was not done")
	}
	f.Heal()
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Do: faultfs.Short(1, errIO).Late(delay)})
	begin = time.Now()
	_, err = h.WriteAt([]byte("xyz"), 0)
	if waited := time.Since(begin); !errors.Is(err, errIO) || waited < delay || content(t, m, "a") != "xbc" {
		t.Fatal(err, waited, content(t, m, "a"))
	}
}

// TestPretend: a sync that lies is seen by the crash model.
func TestPretend(t *testing.T) {
	m, f := two()
	f.Add(faultfs.Rule{Kinds: faultfs.Sync | faultfs.SyncDir, Sticky: true, Do: faultfs.Pretend()})
	h := create(t, f, "a", "abc")
	check(t, h.Sync())
	check(t, f.SyncDir("/"))
	if files := m.Crash(memfs.SyncedOnly()).Files(); len(files) != 0 {
		t.Fatal(files)
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Write | faultfs.Open, Sticky: true, Do: faultfs.Pretend()})
	if n, err := h.WriteAt([]byte("xyz"), 0); n != 3 || err != nil || content(t, m, "a") != "abc" {
		t.Fatal(n, err)
	}
	if _, err := f.Open("a"); err == nil {
		t.Fatal("pretended to open a file")
	}
}

// TestDoneBut: what was reported as failed was done.
func TestDoneBut(t *testing.T) {
	m, f := two()
	check(t, create(t, f, "a", "abc").Close())
	f.Add(faultfs.Rule{Kinds: faultfs.Rename | faultfs.Open, Sticky: true, Do: faultfs.DoneBut(errIO)})
	if err := f.Rename("a", "b"); !errors.Is(err, errIO) || content(t, m, "b") != "abc" {
		t.Fatal(err)
	}
	if err := f.Rename("a", "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := f.Open("b"); !errors.Is(err, errIO) {
		t.Fatal(err)
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Create, Do: faultfs.DoneBut(errIO)})
	if _, err := f.Create("c"); !errors.Is(err, errIO) || content(t, m, "c") != "" {
		t.Fatal(err)
	}
	check(t, m.Remove("b"))
	check(t, m.Remove("c"))
	if m.Used() != 0 {
		t.Fatal("a file is still open")
	}
}

// TestFailedCloseCloses: no descriptor is leaked by a rule.
func TestFailedCloseCloses(t *testing.T) {
	m, f := two()
	h := create(t, f, "a", "x")
	check(t, f.Remove("a"))
	f.Add(faultfs.Rule{Kinds: faultfs.Close, Do: faultfs.Fail(errIO)})
	if err := h.Close(); !errors.Is(err, errIO) {
		t.Fatal(err)
	}
	if m.Used() != 0 {
		t.Fatal("the file is still open")
	}
	if err := h.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Fatal(err)
	}
}

func TestTrace(t *testing.T) {
	_, f := two()
	create(t, f, "before", "")
	f.StartTrace()
	h := create(t, f, "tmp", "abc")
	check(t, h.Sync())
	check(t, f.Rename("tmp", "CURRENT"))
	check(t, f.SyncDir("/"))
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Do: faultfs.Fail(errIO)})
	_ = h.Sync()
	var got []string
	for _, e := range f.Trace(faultfs.Write, faultfs.Sync, faultfs.Rename|faultfs.SyncDir) {
		got = append(got, e.String())
	}
	want := []string{"write tmp [0,+3)", "sync tmp", "rename tmp CURRENT", "syncdir /", "sync tmp: sync tmp: input/output error"}
	if !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	all := f.Trace()
	if len(all) != 6 || all[0].Kind != faultfs.Create || all[0].Ordinal != 2 {
		t.Fatal(all)
	}
}

// TestConcurrentOperations: exactly one of many is hit (and the race detector is
// content).
func TestConcurrentOperations(t *testing.T) {
	_, f := two()
	h := create(t, f, "a", "")
	f.StartTrace()
	rule := f.Add(faultfs.Rule{Kinds: faultfs.Write, At: 50, Do: faultfs.Short(1, errIO)})
	var failed sync.Map
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := h.WriteAt([]byte("ab"), int64(g*100+i*2)); err != nil {
					failed.Store(fmt.Sprint(g, i), err)
				}
				_ = f.Trace(faultfs.Sync)
			}
		})
	}
	wg.Wait()
	n := 0
	failed.Range(func(any, any) bool { n++; return true })
	if n != 1 || rule.Seen() != 200 || rule.Fired() != 1 || len(f.Trace()) != 200 {
		t.Fatal(n, rule.Seen(), rule.Fired())
	}
}

func TestActionNames(t *testing.T) {
	for want, a := range map[string]faultfs.Action{
		"count": {}, "fail: no space left on device": faultfs.NoSpace(), "tear(3)": faultfs.Tear(3),
		"short(1): input/output error": faultfs.Short(1, errIO), "delay 1ms": faultfs.Delay(time.Millisecond),
		"delay 1ms, fail: input/output error": faultfs.Fail(errIO).Late(time.Millisecond),
		"pretend":                             faultfs.Pretend(), "done, but: input/output error": faultfs.DoneBut(errIO),
	} {
		if a.String() != want {
			t.Errorf("%q, want %q", a, want)
		}
	}
}
