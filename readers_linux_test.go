package cairn_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
	defer syscall.Unmount(d+"/both", 0)
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
