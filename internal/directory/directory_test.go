package directory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func newDisk(t *testing.T, dir string) (*memfs.FS, *faultfs.FS) {
	t.Helper()
	disk := memfs.New()
	if err := disk.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	return disk, faultfs.New(disk)
}

func TestMake(t *testing.T) {
	disk, _ := newDisk(t, "/a/b")
	if err := disk.WriteFile("/a/file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir      string
		readOnly bool
		made     int
		err      error
	}{
		{"/a/b/db", true, 0, fs.ErrNotExist},
		{"/a/b/db", false, 1, nil},
		{"/a/b/db", false, 0, nil},
		{"/a/b/db", true, 0, nil},
		{"/a/b/c/d/db", false, 3, nil},
		{"/a/file", false, 0, fs.ErrInvalid},
		{"/a/file", true, 0, fs.ErrInvalid},
	} {
		made, err := Make(disk, c.dir, c.readOnly)
		if made != c.made || !errors.Is(err, c.err) {
			t.Errorf("%s, read-only %v: %d made, %v; want %d, %v", c.dir, c.readOnly, made, err, c.made, c.err)
		}
		if info, err := disk.Stat(c.dir); (err == nil && info.Dir) != (c.err == nil) {
			t.Errorf("%s, read-only %v: %+v, %v", c.dir, c.readOnly, info, err)
		}
	}
}

// TestMakeWhereNothingIsDurable: where the directory above cannot be synced nothing is made, as often as it is tried. The second
// time what the first had made would be somebody else's.
func TestMakeWhereNothingIsDurable(t *testing.T) {
	for _, dir := range []string{"/a/b/db", "/a/b/c/d/db"} {
		disk, faults := newDisk(t, "/a/b")
		faults.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Name: "b", Sticky: true, Do: faultfs.Fail(vfs.ErrNotAttempted)})
		for range 2 {
			if made, err := Make(faults, dir, false); made != 0 || !errors.Is(err, vfs.ErrNotAttempted) {
				t.Errorf("%s: %d made, %v", dir, made, err)
			}
		}
		if names, err := disk.List("/a/b"); len(names) > 0 || err != nil {
			t.Errorf("%s: %v, %v", dir, names, err)
		}
	}
}

// TestSyncParents: the directories above are synced up to the root, and what was made here has to be.
func TestSyncParents(t *testing.T) {
	for _, c := range []struct {
		made int
		name string // of the directory that cannot be synced
		err  error
		want bool // it is an error
	}{
		{0, "", nil, false},
		{0, "b", syscall.EIO, true}, // the store's directory may have been made a moment ago
		{0, "b", fs.ErrPermission, false},
		{0, "a", syscall.EIO, true}, // so may the one above it
		{0, "a", fmt.Errorf("%w: %w", vfs.ErrNotAttempted, syscall.EMFILE), true},
		{0, "a", fmt.Errorf("%w: %w", vfs.ErrNotAttempted, fs.ErrPermission), false},
		{0, "b", syscall.EINVAL, true},
		{0, "a", fs.ErrPermission, false},
		{0, "/", syscall.EINVAL, false},
		{0, "/", unsyncable[len(unsyncable)-1], false},
		{0, "/", errors.New("no memory"), true}, // it says nothing of what can be synced
		{0, "a", syscall.ETIMEDOUT, true},
		{1, "a", errors.New("unknown"), true},
		{1, "b", fs.ErrPermission, true},
		{1, "a", syscall.EIO, true},
		{1, "a", fs.ErrPermission, false},
		{2, "a", syscall.EIO, true},
		{2, "/", syscall.EIO, true},
		{2, "/", errors.ErrUnsupported, false},
		{3, "/", fs.ErrPermission, true},
	} {
		_, disk := newDisk(t, "/a/b/db")
		if c.name != "" {
			disk.Add(faultfs.Rule{Kinds: faultfs.SyncDir, Name: c.name, Do: faultfs.Fail(c.err)})
		}
		disk.StartTrace()
		wait := SyncParents(disk, "/a/b/db", c.made)
		for range 2 {
			if err := wait(); errors.Is(err, c.err) != (c.want || c.err == nil) {
				t.Errorf("%d made, %q fails with %v: %v", c.made, c.name, c.err, err)
			}
		}
		var synced []string
		for _, e := range disk.Trace(faultfs.SyncDir) {
			synced = append(synced, filepath.ToSlash(e.Name))
		}
		if want := []string{"/a/b", "/a", "/"}; !c.want && !slices.Equal(synced, want) {
			t.Errorf("%d made: synced %v, want %v", c.made, synced, want)
		}
	}
}

// TestUnmake: what was made goes as long as nothing but the lock file is in it, and the directory is the one that is locked.
func TestUnmake(t *testing.T) {
	for _, c := range []struct {
		made  int
		other string // something else that is there
		left  string // the deepest directory that is left
	}{
		{0, "", "/a/b/c/d"},
		{1, "", "/a/b/c"},
		{3, "", "/a"},
		{3, "/a/b/file", "/a/b"},
		{3, "/a/b/c/d/000001.log", "/a/b/c/d"},
	} {
		disk, _ := newDisk(t, "/a/b/c/d")
		if c.other != "" {
			if err := disk.WriteFile(c.other, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		lock, err := Lock(disk, "/a/b/c/d", false, 0)
		if err != nil {
			t.Fatal(err)
		}
		Unmake(disk, "/a/b/c/d", c.made, lock)
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		deepest := "/a/b/c/d"
		for _, err := disk.Stat(deepest); err != nil; _, err = disk.Stat(deepest) {
			deepest = path.Dir(deepest)
		}
		_, err = disk.Stat("/a/b/c/d/LOCK")
		if kept := err == nil; deepest != c.left || kept != (deepest == "/a/b/c/d") {
			t.Errorf("%d made, %q is there: %s is left, its lock file: %t", c.made, c.other, deepest, kept)
		}
	}
}

// TestUnmakeAtOnce: who opens the store at any moment of that finds the directory as it was, and locked, or makes it anew: it never
// takes one that is going. Where directories cannot be renamed they go as well. (Whoever came after the lock file had gone had another
// one made, in a directory that it took for somebody's.)
func TestUnmakeAtOnce(t *testing.T) {
	for n := int64(1); ; n++ {
		disk, faulty := newDisk(t, "/a")
		made, lock, err := Claim(disk, "/a/db", 0)
		if err != nil || made != 1 {
			t.Fatalf("%d made, %v", made, err)
		}
		at := &betweenFS{FS: faulty, at: n, do: func() {
			if made, _, err := Claim(disk, "/a/db", 0); err == nil && made != 1 {
				t.Errorf("before operation %d: another one made %d directories", n, made)
			}
		}}
		Unmake(at, "/a/db", made, lock)
		lock.Close()
		if at.at > 0 {
			if n < 4 {
				t.Errorf("%d operations: is anything tested?", n-1)
			}
			break
		}
	}
	disk, faulty := newDisk(t, "/a")
	faulty.Add(faultfs.Rule{Kinds: faultfs.Rename, Sticky: true, Do: faultfs.Fail(syscall.EINVAL)})
	made, lock, err := Claim(disk, "/a/b/db", 0)
	if err != nil {
		t.Fatal(err)
	}
	Unmake(faulty, "/a/b/db", made, lock)
	if names, err := disk.List("/a"); len(names) > 0 || err != nil {
		t.Errorf("where it cannot be renamed %q is left; %v", names, err)
	}
}

// TestUnmakeBesideOthers: what others make at any moment of that, the store anew or another one beside it, is where they have made it, at
// each moment after that, too. (A directory above went with what had come into it, and did not come back where somebody had made another.)
func TestUnmakeBesideOthers(t *testing.T) {
	for _, dir := range []string{"/a/b/c/db", "/a/b/c/other", "/a/b/other"} {
		for n := int64(1); ; n++ {
			disk, faulty := newDisk(t, "/a")
			made, lock, err := Claim(disk, "/a/b/c/db", 0)
			if err != nil || made != 3 {
				t.Fatalf("%d made, %v", made, err)
			}
			var theirs io.Closer
			at := &betweenFS{FS: faulty, at: n, do: func() { _, theirs, _ = Claim(disk, dir, 0) }}
			at.after = func() {
				if _, err := disk.Stat(base.FilePath(dir, base.FileLock, 0)); theirs != nil && err != nil {
					t.Errorf("%s, made before operation %d: %v", dir, n, err)
				}
			}
			Unmake(at, "/a/b/c/db", made, lock)
			if at.at > 0 {
				if names, err := disk.List("/a"); len(names) > 0 || n < 6 || err != nil {
					t.Errorf("%d operations, %q is left; %v", n-1, names, err)
				}
				break
			}
			if theirs == nil && dir != "/a/b/c/db" {
				t.Errorf("%s could not be made before operation %d", dir, n)
			}
		}
	}
}

// betweenFS calls do before the operation with that number that changes a name, and after, if it is not nil, behind each.
type betweenFS struct {
	vfs.FS
	at        int64
	do, after func()
}

func (f *betweenFS) next(operation func() error) error {
	if f.at--; f.at == 0 {
		f.do()
	}
	err := operation()
	if f.after != nil {
		f.after()
	}
	return err
}

func (f *betweenFS) Remove(name string) error {
	return f.next(func() error { return f.FS.Remove(name) })
}

func (f *betweenFS) Rename(oldname, newname string) error {
	return f.next(func() error { return f.FS.Rename(oldname, newname) })
}

// TestUnmakeMoved: a directory that has the name of the one that is locked stays, and so does that.
func TestUnmakeMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a directory with open files is not renamed")
	}
	for _, moved := range []bool{false, true} {
		top := t.TempDir()
		dir := filepath.Join(top, "b", "db")
		made, err := Make(vfs.OS(), dir, false)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := Lock(vfs.OS(), dir, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		if moved {
			if err := errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		Unmake(vfs.OS(), dir, made, lock)
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		names, err := filepath.Glob(filepath.Join(top, "*", "*", "*"))
		all, _ := filepath.Glob(filepath.Join(top, "*"))
		if err != nil || moved && len(names) != 2 || !moved && len(all) != 0 {
			t.Errorf("moved %t: %v, %v are left; %v", moved, all, names, err)
		}
	}
}

// TestLock: who writes is alone, and waits for others as long as it may; a read-only store makes no lock file.
func TestLock(t *testing.T) {
	disk, _ := newDisk(t, "/db")
	if lock, err := Lock(disk, "/db", true, 0); lock != nil || err != nil {
		t.Errorf("read-only, where there is no lock file: %v, %v", lock, err)
	}
	if names, err := disk.List("/db"); len(names) != 0 || err != nil {
		t.Errorf("read-only made %v, %v", names, err)
	}
	first, err := Lock(disk, "/db", false, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []time.Duration{0, 15 * time.Millisecond} {
		for _, readOnly := range []bool{false, true} {
			if lock, err := Lock(disk, "/db", readOnly, timeout); lock != nil || !errors.Is(err, vfs.ErrLocked) {
				t.Errorf("locked twice, read-only %v: %v, %v", readOnly, lock, err)
			}
		}
	}
	tries := &waitedFor{FS: disk, second: func() { first.Close() }}
	second, err := Lock(tries, "/db", true, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	third, err := Lock(disk, "/db", true, 0)
	if err != nil {
		t.Fatalf("a lock that is shared: %v", err)
	}
	if err := errors.Join(second.Close(), third.Close()); err != nil {
		t.Error(err)
	}
}

// waitedFor is a disk whose lock is tried more than once.
type waitedFor struct {
	vfs.FS
	tries  int
	second func() // is called before it is tried the second time
}

func (w *waitedFor) Lock(name string, shared bool) (held io.Closer, err error) {
	if w.tries++; w.tries == 2 {
		w.second()
	}
	return w.FS.Lock(name, shared)
}

// TestClaim: a directory that has gone before its lock is taken is made anew, as are those above it, which may go before they are synced, or it is
// made. That ends where it, or the lock file, can never be had.
func TestClaim(t *testing.T) {
	for _, c := range []struct{ goes, made int }{{0, 1}, {1, 1}, {2, 2}} {
		disk, _ := newDisk(t, "/a/b")
		tries := &goneFS{FS: disk, goes: c.goes}
		made, lock, err := Claim(tries, "/a/b/db", 0)
		if err != nil || made != c.made {
			t.Errorf("%d directories went: %d made, %v", c.goes, made, err)
			continue
		}
		if _, _, err := Claim(tries, "/a/b/db", 0); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("of a store that is locked: %v", err)
		}
		lock.Close()
	}
	for _, kind := range []faultfs.Kind{faultfs.SyncDir, faultfs.Mkdir} {
		_, faulty := newDisk(t, "/a")
		faulty.Add(faultfs.Rule{Kinds: kind, Do: faultfs.Fail(fs.ErrNotExist)})
		if made, _, err := Claim(faulty, "/a/b/db", 0); made != 2 || err != nil {
			t.Errorf("the one above went before it was synced, or what is in it made: %d made, %v", made, err)
		}
	}
	for _, kind := range []faultfs.Kind{faultfs.Lock, faultfs.Mkdir, faultfs.SyncDir} {
		_, faulty := newDisk(t, "/a")
		faulty.Add(faultfs.Rule{Kinds: kind, Sticky: true, Do: faultfs.Fail(fs.ErrNotExist)})
		if _, lock, err := Claim(faulty, "/a/db", 0); lock != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("where there is never a directory, or a lock file: %v, %v", lock, err)
		}
	}
}

// goneFS removes so many directories when the lock of the deepest is to be taken.
type goneFS struct {
	vfs.FS
	goes int
}

func (f *goneFS) Lock(name string, shared bool) (io.Closer, error) {
	for dir := filepath.Dir(name); f.goes > 0; dir = filepath.Dir(dir) {
		f.goes--
		if err := f.Remove(dir); err != nil {
			return nil, err
		}
	}
	return f.FS.Lock(name, shared)
}

// TestLockFails: an error that time does not help is returned at once.
func TestLockFails(t *testing.T) {
	_, disk := newDisk(t, "/db")
	locks := disk.Add(faultfs.Rule{Kinds: faultfs.Lock, Sticky: true, Do: faultfs.Fail(syscall.EIO)})
	if lock, err := Lock(disk, "/db", false, time.Hour); lock != nil || !errors.Is(err, syscall.EIO) || locks.Seen() != 1 {
		t.Errorf("%v, %v after %d tries", lock, err, locks.Seen())
	}
}

// What store returns names of. Each file begins with what says whose it is.
var (
	kept = map[string]string{
		"CURRENT": "cairn 1", "LOCK": "", "MANIFEST-000005": "cairnMAN", "000006.log": "cairnLOG", "000007.sst": "cairnSST",
		"000008.log": "a log of others", "000009.sst": "not ours", "MANIFEST-000001": "of others", "000010.tmp": "of an editor",
		"000011.txt": "cairnLOG", "log": "", "12.log": "",
		"000013.sst": "cairnSST", // needed all the same
	}
	needless = map[string]string{"000014.tmp": "cairn 1", "000015.tmp": "", "RESERVE": "\x00\x00"}
	ofOthers = map[string][]byte{ // of another store; what has no frame is of none
		"000017.log": append(header(base.FileLog, 17), 1), "000018.sst": header(base.FileTable, 18),
	}
	ofNone  = map[string][]byte{"000019.log": append(header(base.FileLog, 19), make([]byte, 100)...), "MANIFEST-000004": append(header(base.FileManifest, 4), 1)}
	earlier = map[string]string{"MANIFEST-000002": "cairnMAN", "000003.log": "cairnLOG", "000004.log": "", "000016.sst": "\x00\x00\x00\x00"}
)

func header(t base.FileType, num uint64) []byte {
	return base.AppendFileHeader(nil, base.FileHeader{Type: t, Version: 1, File: base.NewID(), Store: base.NewID(), Num: num})
}

// store is a directory of all of these and a state that needs some. A directory has a name like a log's.
func store(t *testing.T) (*memfs.FS, *faultfs.FS, *manifest.State, []string) {
	t.Helper()
	disk, faults := newDisk(t, "/db/000012.log")
	for _, files := range []map[string]string{kept, needless, earlier} {
		for name, data := range files {
			if err := disk.WriteFile("/db/"+name, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, files := range []map[string][]byte{ofOthers, ofNone} {
		for name, data := range files {
			if err := disk.WriteFile("/db/"+name, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	names, err := disk.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	s := manifest.NewState(base.NewID())
	s.Manifest, s.Segments = 5, []manifest.Segment{{Num: 6}}
	s.Version.Levels[manifest.Bottom] = []*base.TableMeta{{Num: 7}}
	return disk, faults, s, append(names, "000099.sst") // which has gone by now
}

// TestClean: what is not the store's, and what it needs, stays.
func TestClean(t *testing.T) {
	disk, faults, s, names := store(t)
	needed := func(kind base.FileType, num uint64) bool { return kind == base.FileTable && num == 13 }
	if err := Clean(faults, "/db", s, names, needed); err != nil {
		t.Error(err)
	}
	want := []string{"000012.log"} // the directory
	want = slices.AppendSeq(slices.AppendSeq(want, maps.Keys(kept)), maps.Keys(ofOthers))
	slices.Sort(want)
	if got, err := disk.List("/db"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v is left, want %v; %v", got, want, err)
	}
}

// TestCleanFails: a file that cannot be removed, or looked at, stays; the others go. Those that are not used again are handed on.
func TestCleanFails(t *testing.T) {
	for _, name := range []string{"000014.tmp", "RESERVE", "000003.log"} {
		disk, faults, s, names := store(t)
		faults.Add(faultfs.Rule{Kinds: faultfs.Remove, Name: name, Do: faultfs.Fail(fs.ErrPermission)})
		var again []string
		err := Clean(faults, "/db", s, names, nil)
		if !errors.Is(err, fs.ErrPermission) || Later(err, func(name string) { again = append(again, filepath.ToSlash(name)) }) != nil {
			t.Errorf("%s cannot be removed: %v", name, err)
		}
		if want := []string{"/db/" + name}; !slices.Equal(again, want) && (name != "RESERVE" || again != nil) {
			t.Errorf("%v is to be removed later, want %v", again, want)
		}
		names, err = disk.List("/db")
		if err != nil || len(names) != len(kept)+len(ofOthers)+1 || !slices.Contains(names, name) {
			t.Errorf("%s cannot be removed, and %v is left: %v", name, names, err)
		}
		disk, faults, s, names = store(t)
		faults.Add(faultfs.Rule{Kinds: faultfs.Read, Name: name, Do: faultfs.Fail(syscall.EIO)})
		if err := Clean(faults, "/db", s, names, nil); err != nil {
			t.Errorf("%s cannot be read: %v", name, err)
		}
		if _, err := disk.Stat("/db/" + name); err != nil {
			t.Errorf("%s cannot be read, and was removed: %v", name, err)
		}
	}
}
