package vfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSyncReachesTheSystem: procfs cannot sync and says so. A Sync or SyncDir that
// asked nobody would report success.
func TestSyncReachesTheSystem(t *testing.T) {
	f, err := OS().Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Sync: %v", err)
	}
	if err := OS().SyncDir("/proc"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("SyncDir: %v", err)
	}
}

func TestPreallocateUnsupported(t *testing.T) {
	f, err := OS().OpenReadWrite("/proc/self/comm")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := f.Preallocate(0, 4096); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
}

// TestReplacedLockFileIsNoticed: somebody removed the lock file after we opened it
// and before we locked it; a second store may hold the new one.
func TestReplacedLockFileIsNoticed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	for _, replace := range []bool{false, true} {
		f, err := openLock(name, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lockOpen(f, name, false); !errors.Is(err, errReplaced) {
			t.Fatalf("replaced %v: %v", replace, err)
		}
	}
}

// TestLockWithRemovers: openers that remove the lock file before they let go never
// make two holders.
func TestLockWithRemovers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	var holders atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				l, err := OS().Lock(name, false)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two holders")
				}
				runtime.Gosched()
				holders.Add(-1)
				_ = os.Remove(name) // from here on another may hold the next file
				_ = l.Close()
			}
		})
	}
	wg.Wait()
}

// TestCloseUnlocksCopies: a child forked while the lock was held has a copy of the
// descriptor until it executes its program.
func TestCloseUnlocksCopies(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	l, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	held := l.(*osLock)
	fd, err := unix.Dup(int(held.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestLockOnFullDisk: a full disk must not keep a store from being opened.
func TestLockOnFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := (&osLock{f: f}).sign(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := (&osLock{f: r}).sign(); err == nil {
		t.Fatal("an error other than a full disk is passed over")
	}
}

// TestHolderSharesItsOwn: as soon as somebody is seen to hold the lock, what an earlier holder has shared, who was
// killed, is not to be seen any more.
func TestHolderSharesItsOwn(t *testing.T) {
	name, watch := watched(t)
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(watch.Bytes()))), 2) // the turn, and what is shared
	var killed atomic.Uint64                                                                    // the turn of the last one
	var over atomic.Bool
	var watching sync.WaitGroup
	watching.Go(func() {
		for !over.Load() {
			dead := killed.Load()
			if holder, err := watch.Holder(); err != nil {
				t.Error(err)
				return
			} else if holder == Holds && dead != 0 && words[0].Load() == dead && words[1].Load() == 1 {
				t.Error("the lock is held, and shared is what somebody has who is dead")
				return
			}
		}
	})
	for range 3000 {
		l, err := OS().Lock(name, false)
		if err != nil {
			t.Fatal(err)
		}
		page, err := l.(Sharer).Share()
		if err != nil {
			t.Fatal(err)
		}
		shared := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(page))), 2)
		shared[1].Store(1)
		turn := shared[0].Load()
		unix.Munmap(l.(*osLock).page)
		l.(*osLock).f.Close() // as the system does
		killed.Store(turn)
	}
	over.Store(true)
	watching.Wait()
}

// watched returns a lock file that was held once, and who watches it.
func watched(t *testing.T) (name string, w Watch) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "LOCK")
	l, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w, err = OS().(Watcher).Watch(name)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("NOT TESTED on the file system of %s: %v", name, err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return name, w
}

func wantHolder(t *testing.T, w Watch, want Holder) {
	t.Helper()
	if got, err := w.Holder(); err != nil || got != want {
		t.Errorf("holder %d, %v; want %d", got, err, want)
	}
}

// recordLock locks a part of a file as whoever may read it can, and returns what lets go of it.
func recordLock(t *testing.T, name string, from, n int64) (unlock func() error) {
	t.Helper()
	f, err := os.Open(name)
	if err == nil {
		err = holdByte(f, unix.F_RDLCK, from, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.Close
}

// TestRecordLockInTheWay: where somebody's lock on a part of the lock file kept a holder from being seen, those who
// watch took it that there is none.
func TestRecordLockInTheWay(t *testing.T) {
	name, w := watched(t)
	unlock := recordLock(t, name, 0, 0)
	if _, err := OS().Lock(name, false); !errors.Is(err, ErrLocked) {
		t.Errorf("lock: %v", err)
	}
	unlock()
	l, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wantHolder(t, w, Holds)
}

// TestWatchWaitsForTheHolder: a reader that came between the making of a lock file and its holder's line took the lock,
// and kept the holder out.
func TestWatchWaitsForTheHolder(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := whole(f, 2*time.Millisecond); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("one that stays empty: %v", err)
	}
	var signing sync.WaitGroup
	signing.Go(func() {
		time.Sleep(5 * time.Millisecond)
		if err := f.Truncate(lockBytes); err != nil {
			t.Error(err)
		}
	})
	defer signing.Wait()
	if err := whole(f, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestHolderThatCannotBeSeen: a holder that cannot be seen because the system refuses it a lock is told, where others may watch:
// they would take it that there is none.
func TestHolderThatCannotBeSeen(t *testing.T) {
	name, w := watched(t)
	f, err := os.Open(name) // for which no exclusive lock is granted
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{heldByte, hiddenByte} {
		if err := (&osLock{f: f, name: name}).mark(at); !errors.Is(err, unix.EBADF) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	wantHolder(t, w, Nobody)
}

// TestShareFails: those who watch find out that a holder could not share, or else the holder does that they do not.
func TestShareFails(t *testing.T) {
	name, w := watched(t)
	held, err := OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	wantHolder(t, w, Holds)
	turn := func() string { return string(w.Bytes()[:8]) }
	l, before := held.(*osLock), turn()
	cannot := func() (f *os.File, err error) { // a file that cannot be read cannot be mapped
		whole := l.f
		defer func() { l.f = whole }()
		if l.f, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
			t.Fatal(err)
		}
		_, err = l.Share()
		return l.f, err
	}
	unlock := recordLock(t, name, hiddenByte, 1)
	f, err := cannot()
	if err == nil || errors.Is(err, errors.ErrUnsupported) || turn() != before {
		t.Errorf("share, where that cannot be seen: %v", err)
	}
	wantHolder(t, w, Holds)
	f.Close()
	unlock()

	f, err = cannot()
	if !errors.Is(err, errors.ErrUnsupported) || turn() == before {
		t.Errorf("share: %v", err)
	}
	wantHolder(t, w, Hidden)
	f.Close()

	page, err := l.Share()
	if err != nil || string(page[:8]) != turn() {
		t.Errorf("share at last: %v", err)
	}
	wantHolder(t, w, Holds)
}

// TestMapBringsInOnePage: the device may be set to read ahead megabytes.
func TestMapBringsInOnePage(t *testing.T) {
	f, err := OS().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 4 << 20
	if err := f.Preallocate(0, size); err != nil {
		t.Skipf("the file system of the test cannot preallocate, so no log is mapped there: %v", err)
	}
	m, err := f.(Mapper).Map(0, size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	b := m.Bytes()
	b[size/2] = 1
	page := os.Getpagesize()
	pages := make([]byte, size/page)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), size, uintptr(unsafe.Pointer(&pages[0]))); e != 0 {
		t.Skipf("the kernel does not say which pages are in memory: %v", e)
	}
	in := 0
	for _, p := range pages {
		in += int(p & 1)
	}
	if in < 1 || in > 1<<16/page {
		t.Errorf("%d of %d pages are in memory after a store to one", in, len(pages))
	}
}

// TestView: what is written, or stored in a mapping, is there at once, also when the file is closed and removed.
func TestView(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := OS().Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Preallocate(0, 2*MapUnit); err != nil {
		t.Skipf("NOT TESTED: a view of a file, where space cannot be preallocated: %v", err)
	}
	stored, err := f.(Mapper).Map(0, 2*MapUnit)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Unmap()
	r, err := OS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	view, err := r.(Viewer).View(MapUnit + 100)
	if err != nil || len(view.Bytes()) != MapUnit+100 {
		t.Fatal(len(view.Bytes()), err)
	}
	for i, change := range []func(b byte) error{
		func(b byte) error { _, err := f.WriteAt([]byte{b}, MapUnit+7); return err },
		func(b byte) error { stored.Bytes()[MapUnit+7] = b; return nil },
		func(byte) error { return r.Close() },
		func(byte) error { return OS().Remove(name) },
		func(b byte) error { _, err := f.WriteAt([]byte{b}, MapUnit+7); return err },
	} {
		if err := change(byte(i + 1)); err != nil {
			t.Fatal(err)
		}
		if got := view.Bytes()[MapUnit+7]; got != byte(i+1) && i != 2 && i != 3 || got == 0 {
			t.Errorf("change %d: %d", i, got)
		}
	}
	if err := view.Unmap(); err != nil {
		t.Error(err)
	}
	if _, err := r.(Viewer).View(1); err == nil {
		t.Error("a closed file was mapped")
	}
}

func TestStartWriteback(t *testing.T) {
	f, err := OS().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.Repeat([]byte("0123456789abcdef"), 128<<10)
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	s := f.(WriteStarter)
	s.StartWriteback(0, int64(len(b)))
	s.StartWriteback(1<<40, 1<<20) // where there is nothing
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(b))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, b) {
		t.Fatalf("read back: %v", err)
	}
	f.Close()
	s.StartWriteback(0, int64(len(b))) // of a closed file it does nothing
}

// What is opened once more is the same file, also when it has another name or none, and
// however the first one fares.
func TestScattered(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := OS().Create(name)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("bytes of the file")
	if _, err := f.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	read, err := OS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("of another file here"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := read.(Scatterer).Scattered()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(read.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := again.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := read.(Scatterer).Scattered(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("of a closed file: %v", err)
	}
}

// TestTouch: stores to what was touched are no faults, and what is there stays.
func TestTouch(t *testing.T) {
	f, err := OS().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 16 << 20
	for off := int64(0); off < size; off += 64 << 10 { // one write would make pages of 2 MiB, each of which is one fault
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 64<<10), off); err != nil {
			t.Fatal(err)
		}
	}
	m, err := f.(Mapper).Map(0, size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	faults := func(from, to int) int64 {
		var before, after unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &before); err != nil {
			t.Fatal(err)
		}
		b := m.Bytes()
		for i := from; i < to; i += os.Getpagesize() {
			b[i]++
		}
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &after); err != nil {
			t.Fatal(err)
		}
		return int64(after.Minflt - before.Minflt)
	}
	m.(Toucher).Touch(5, size/2)
	m.(Toucher).Touch(size-1, 2*size)   // as far as there is something
	if n := faults(0, size/2); n > 10 { // of the program itself
		t.Errorf("%d faults where it was touched", n)
	}
	if faults(size/2, size*3/4) == 0 {
		t.Error("no faults where it was not touched: nothing was tested")
	}
	if b := m.Bytes(); b[0] != 'y' || b[1] != 'x' || b[size-1] != 'x' {
		t.Errorf("changed to %q, %q, %q", b[0], b[1], b[size-1])
	}
}

// TestFetch: what the system has dropped of a mapping is in memory again soon, and nothing else of it.
func TestFetch(t *testing.T) {
	f, err := OS().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size, from, to = 4 << 20, 1 << 20, 3<<20 + 1
	if _, err := f.WriteAt(bytes.Repeat([]byte("x"), size), 0); err != nil {
		t.Fatal(err)
	}
	m, err := f.(Mapper).Map(0, size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	b := m.Bytes()
	page := os.Getpagesize()
	pages := make([]byte, size/page)
	resident := func(from, to int) (n int) {
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), size, uintptr(unsafe.Pointer(&pages[0]))); e != 0 {
			t.Skipf("NOT TESTED: the kernel does not say which pages are in memory: %v", e)
		}
		for _, p := range pages[from/page : to/page] {
			n += int(p & 1)
		}
		return n
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	m.LetGo(0, size)
	if err := f.(*osFile).control(func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }); err != nil {
		t.Fatal(err)
	}
	if n := resident(0, size); n > size/page/2 {
		t.Skipf("NOT TESTED: this file system keeps %d of %d pages that nobody needs", n, size/page)
	}
	m.(Fetcher).Fetch(from+5, to)
	m.(Fetcher).Fetch(size-1, 2*size) // as far as there is something
	for start := time.Now(); resident(from, to) < (to-from)/page; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("%d of %d pages are in memory", resident(from, to), (to-from)/page)
		}
	}
	if n := resident(0, from/2) + resident(to+from/4, size-from/4); n > 0 {
		t.Errorf("%d pages are in memory for which nobody has asked", n)
	}
}
