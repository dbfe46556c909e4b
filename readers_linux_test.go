package cairn_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// TestReaderOnOverlay: the lock file of a store in a lower layer is another one once it has been opened for
// writing. A reader that was there before sees what is written all the same.
func TestReaderOnOverlay(t *testing.T) {
	d := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "both"} {
		check(t, os.Mkdir(filepath.Join(d, name), 0o755))
	}
	db, err := cairn.Open(filepath.Join(d, "lower", "db"), nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, db.Close())
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", d, d, d)
	if err := syscall.Mount("overlay", d+"/both", "overlay", 0, options); err != nil {
		t.Skipf("NOT TESTED: a store on overlayfs: %v", err)
	}
	t.Cleanup(func() { whenFree(t, "umount", d+"/both") })
	r, err := cairn.Open(d+"/both/db", &cairn.Options{ReadOnly: true})
	check(t, err)
	defer r.Close()
	w, err := cairn.Open(d+"/both/db", nil)
	check(t, err)
	defer w.Close()
	put(t, w, "a", "2")
	wantValue(t, r, "a", "2")
}

// lockedFS counts who takes a lock.
type lockedFS struct {
	vfs.FS
	locks int
}

func (f *lockedFS) Watch(name string) (vfs.Watch, error) { return f.FS.(vfs.Watcher).Watch(name) }

func (f *lockedFS) Lock(name string, shared bool) (io.Closer, error) {
	f.locks++
	return f.FS.Lock(name, shared)
}

// TestReaderWhileAStoreIsMade: a reader that found the lock file empty, as it is for a moment, took the lock, and the
// writer that had just made the file was told that the store is locked.
func TestReaderWhileAStoreIsMade(t *testing.T) {
	d := t.TempDir()
	check(t, os.WriteFile(filepath.Join(d, "LOCK"), nil, 0o644))
	fsys := &lockedFS{FS: vfs.OS()}
	for _, made := range []bool{false, true} {
		db, err := cairn.Open(d, &cairn.Options{ReadOnly: true, FS: fsys})
		if made {
			check(t, err)
			check(t, db.Close())
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no store: %v", err)
		}
		if fsys.locks > 0 {
			t.Errorf("made %v: a lock was taken", made)
		}
		if db, err = cairn.Open(d, nil); err == nil {
			err = db.Close()
		}
		check(t, err)
	}
	check(t, os.Truncate(filepath.Join(d, "LOCK"), 0)) // as versions before have left it
	db, err := cairn.Open(d, &cairn.Options{ReadOnly: true, FS: fsys})
	check(t, err)
	check(t, db.Close())
	if fsys.locks == 0 {
		t.Error("an empty lock file of a store was not locked")
	}
}

// makesRoom calls free before the first log file is made.
type makesRoom struct {
	vfs.FS
	free func()
}

func (m *makesRoom) Create(name string) (vfs.File, error) {
	if strings.HasSuffix(name, ".log") && m.free != nil {
		m.free()
		m.free = nil
	}
	return m.FS.Create(name)
}

// TestReadersBesideAFullDisk: whoever opens a store to write where there is no block for the lock file shows readers nothing. Who
// reads already was not told of the commits that followed, if there was space a moment later; and nobody could read beside
// that writer any more, however much space there was.
func TestReadersBesideAFullDisk(t *testing.T) {
	for name, free := range map[string]func(w *cairn.DB, f *makesRoom, room func()){
		"when the log is made": func(w *cairn.DB, f *makesRoom, room func()) { f.free = room },
		"after a commit failed": func(w *cairn.DB, f *makesRoom, room func()) {
			expect(t, w.Delete(b("k0001")), cairn.ErrNoSpace)
			room()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := mountExt4(t, "24M")
			store, filled := filepath.Join(dir, "store"), filepath.Join(dir, "fill")
			db := openAt(t, store, &cairn.Options{Memory: 4 << 20})
			for i := range 2000 {
				check(t, db.Put(fmt.Appendf(nil, "k%04d", i), make([]byte, 500)))
			}
			check(t, db.Close())
			reader := openAt(t, store, &cairn.Options{Memory: 4 << 20, ReadOnly: true})
			_, err := reader.Get(b("k0001"))
			check(t, err)
			size := fillTo(t, filled)
			f := &makesRoom{FS: vfs.OS()}
			w := openAt(t, store, &cairn.Options{Memory: 4 << 20, FS: f})
			free(w, f, func() { check(t, os.Truncate(filled, size-6<<20)) })
			check(t, w.Delete(b("k0001")))
			wantValue(t, reader, "k0001", "")
			other := openAt(t, store, &cairn.Options{Memory: 4 << 20, ReadOnly: true})
			wantValue(t, other, "k0001", "")
			for _, db := range []*cairn.DB{other, reader, w} {
				check(t, db.Close())
			}
		})
	}
}

// mountExt4 makes a file system of so many bytes, without a journal, and mounts it.
func mountExt4(t *testing.T, size string) string {
	t.Helper()
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	script := `truncate -s $1 $2 && mkfs.ext4 -q -m 0 -O ^has_journal,^inline_data $2 && mount -o loop $2 $3`
	if out, err := exec.Command("sh", "-c", script, "sh", size, image, dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a full ext4: %v: %s", err, out)
	}
	t.Cleanup(func() { whenFree(t, "umount", dir) })
	return dir
}

// appendOnly makes a file one that can only be appended to, which cannot be mapped to be stored to, or ends that.
func appendOnly(t *testing.T, name string, only bool) {
	t.Helper()
	f, err := os.Open(name)
	check(t, err)
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if flags &^= unix.STATX_ATTR_APPEND; only { // the flag has the same number
		flags |= unix.STATX_ATTR_APPEND
	}
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err != nil {
		t.Skipf("NOT TESTED: a lock file that cannot be mapped: %v", err)
	}
}

// blindFS is the operating system's, where a lock file that is held cannot be mapped.
type blindFS struct {
	vfs.FS
	t *testing.T
}

func (f blindFS) Lock(name string, shared bool) (io.Closer, error) {
	l, err := f.FS.Lock(name, shared)
	if err == nil {
		appendOnly(f.t, name, true)
	}
	return l, err
}

// TestReadersBesideABlindWriter: a reader that was there when somebody opened the store to write who could not map
// the lock file went on with what it had seen, and was not told. It is locked out, as is one that comes.
func TestReadersBesideABlindWriter(t *testing.T) {
	dir := t.TempDir()
	followed(t, dir)
	name := filepath.Join(dir, "LOCK")
	w, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, w, "a", "1")
	check(t, w.Close())
	r := openAt(t, dir, &cairn.Options{ReadOnly: true})
	wantValue(t, r, "a", "1")
	t.Cleanup(func() { appendOnly(t, name, false) })
	w, err = cairn.Open(dir, &cairn.Options{FS: blindFS{vfs.OS(), t}})
	check(t, err)
	wantValue(t, r, "a", "1")
	put(t, w, "a", "2")
	_, err = r.Get(b("a"))
	expect(t, err, cairn.ErrLocked)
	_, err = cairn.Open(dir, &cairn.Options{ReadOnly: true})
	expect(t, err, cairn.ErrLocked)
	check(t, w.Close())
	wantValue(t, r, "a", "2")
}

// scarceFS has no descriptor for the first so many watches.
type scarceFS struct {
	lockedFS
	left int
}

func (f *scarceFS) Watch(name string) (vfs.Watch, error) {
	if f.left--; f.left >= 0 {
		return nil, &fs.PathError{Op: "watch", Path: name, Err: syscall.EMFILE}
	}
	return f.lockedFS.Watch(name)
}

// TestReaderThatCannotWatch: a reader that cannot watch the lock file for a moment took the lock: beside a writer it said that
// the store is locked, and without one it kept writers out as long as it was open.
func TestReaderThatCannotWatch(t *testing.T) {
	d := t.TempDir()
	w := openAt(t, d, nil)
	put(t, w, "a", "1")
	for _, beside := range []bool{true, false} {
		f := &scarceFS{lockedFS{FS: vfs.OS()}, 2}
		_, err := cairn.Open(d, &cairn.Options{ReadOnly: true, FS: f})
		expect(t, err, syscall.EMFILE)
		if errors.Is(err, cairn.ErrLocked) || f.locks > 0 {
			t.Errorf("beside a writer %v: %v, %d locks were taken", beside, err, f.locks)
		}
		check(t, w.Close())
	}
}

// TestReaderOnAFullOverlay: a reader of a store in a lower layer asked for a copy of the lock file, which a full upper
// layer has no space for. It reads, and keeps writers out.
func TestReaderOnAFullOverlay(t *testing.T) {
	d, top := t.TempDir(), mountExt4(t, "24M")
	for _, name := range []string{d + "/lower", d + "/both", top + "/upper", top + "/work"} {
		check(t, os.Mkdir(name, 0o755))
	}
	db, err := cairn.Open(filepath.Join(d, "lower", "db"), nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, db.Close())
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", d, top, top)
	if err := syscall.Mount("overlay", d+"/both", "overlay", 0, options); err != nil {
		t.Skipf("NOT TESTED: a full overlayfs: %v", err)
	}
	t.Cleanup(func() { whenFree(t, "umount", d+"/both") })
	fillTo(t, top+"/full")
	r, err := cairn.Open(d+"/both/db", &cairn.Options{ReadOnly: true})
	check(t, err)
	wantValue(t, r, "a", "1")
	check(t, os.Remove(top+"/full"))
	_, err = cairn.Open(d+"/both/db", nil)
	expect(t, err, cairn.ErrLocked)
	check(t, r.Close())
	w := openAt(t, d+"/both/db", nil)
	put(t, w, "a", "2")
}
