//go:build unix

package cairn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// fill writes more than the first log segments of a store hold, every fifth commit being durable.
func fill(t *testing.T, db *cairn.DB) error {
	t.Helper()
	for i := range 200 {
		err := db.Update(func(tx *cairn.Tx) error {
			if i%5 == 0 {
				tx.SetDurability(cairn.Durable)
			}
			return tx.Put([]byte{0, byte(i)}, []byte(strings.Repeat("v", 64<<10)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// other makes a store in dir, closed, and returns what is in its directory.
func other(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, db, "other", "store")
	check(t, db.Close())
	return contents(t, dir)
}

// verified opens the store in dir and looks at all of it.
func verified(t *testing.T, dir, key, value string) {
	t.Helper()
	db := openAt(t, dir, nil)
	_, err := db.Verify(t.Context())
	check(t, err)
	wantValue(t, db, key, value)
}

// TestStoreStaysInItsDirectory: a store that was opened by a relative name, or through a
// symbolic link, went on where that name led to later: it made its files in another store,
// replaced its CURRENT and removed its log and its tables.
func TestStoreStaysInItsDirectory(t *testing.T) {
	for name, opts := range map[string]*cairn.Options{"relative": nil, "relative, on a file system given": {FS: vfs.OS()}} {
		t.Run(name, func(t *testing.T) {
			here, there := t.TempDir(), t.TempDir()
			t.Chdir(here)
			db, err := cairn.Open("data", opts)
			check(t, err)
			put(t, db, "a", "1")
			before := other(t, filepath.Join(there, "data"))
			t.Chdir(there)
			check(t, fill(t, db))
			check(t, db.Close())
			unchanged(t, filepath.Join(there, "data"), before)
			verified(t, filepath.Join(there, "data"), "other", "store")
			verified(t, filepath.Join(here, "data"), "a", "1")
		})
	}
	t.Run("link", func(t *testing.T) {
		dir := t.TempDir()
		first, second, link := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "current")
		check(t, os.Mkdir(first, 0o755))
		check(t, os.Symlink(first, link))
		db, err := cairn.Open(filepath.Join(link, "data"), nil)
		check(t, err)
		put(t, db, "a", "1")
		before := other(t, filepath.Join(second, "data"))
		check(t, os.Remove(link))
		check(t, os.Symlink(second, link))
		check(t, fill(t, db))
		check(t, db.Close())
		unchanged(t, filepath.Join(second, "data"), before)
		verified(t, filepath.Join(first, "data"), "a", "1")
	})
}

// TestDotDotBehindALink: what leads through a link and up again, as link/../data, is one
// directory to the system and to the store, which took it for ./data and made its files there.
func TestDotDotBehindALink(t *testing.T) {
	dir := t.TempDir()
	here, far := filepath.Join(dir, "here"), filepath.Join(dir, "far")
	check(t, os.MkdirAll(filepath.Join(far, "real"), 0o755))
	check(t, os.Mkdir(here, 0o755))
	check(t, os.Symlink("../far/real", filepath.Join(here, "link")))
	t.Chdir(here)
	check(t, os.Mkdir("link/../made", 0o755))
	for name, prefix := range map[string]string{"made": "", "new": "./", "more/new": here + "/"} {
		db, err := cairn.Open(prefix+"link/../"+name, nil)
		check(t, err)
		put(t, db, "a", "1")
		check(t, db.Close())
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%slink/../%s is here", prefix, name)
		}
		verified(t, filepath.Join(far, name), "a", "1")
	}
	check(t, os.Symlink("nowhere", "dangling"))
	check(t, os.Symlink("loop", "loop"))
	check(t, os.WriteFile("file", nil, 0o644))
	for _, name := range []string{"dangling/../data", "loop/../data", "file/../data", "link/../none/../../none/../here/file/data"} {
		if db, err := cairn.Open(name, nil); err == nil {
			db.Close()
			t.Errorf("%s was opened", name)
		}
	}
	if _, err := os.Stat("data"); err == nil {
		t.Error("what leads nowhere is here")
	}
}

// TestRenamedDirectory: a store whose directory is renamed makes no files any more, and says
// why; least of all in the store that has its name then. Back in its place it goes on.
func TestRenamedDirectory(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(durability.String(), func(t *testing.T) { renameAndBack(t, durability) })
	}
}

func renameAndBack(t *testing.T, durability cairn.Durability) {
	t.Helper()
	dir := t.TempDir()
	name, away := filepath.Join(dir, "data"), filepath.Join(dir, "away")
	db, err := cairn.Open(name, &cairn.Options{Durability: durability})
	check(t, err)
	put(t, db, "a", "1")
	check(t, os.Rename(name, away))
	if err := fill(t, db); err == nil || !strings.Contains(err.Error(), "renamed") {
		t.Errorf("writing to a store whose directory is gone: %v", err)
	}
	before := other(t, name)
	if err := fill(t, db); err == nil {
		t.Error("writing to a store whose directory is another")
	}
	unchanged(t, name, before)
	wantValue(t, db, "a", "1")
	check(t, os.Rename(name, filepath.Join(dir, "other")))
	check(t, os.Rename(away, name))
	check(t, fill(t, db))
	check(t, db.Close())
	verified(t, name, "a", "1")
	verified(t, filepath.Join(dir, "other"), "other", "store")
}

// awayFS calls away the first time that the directory has been synced with a file in it that is to be CURRENT.
type awayFS struct {
	vfs.FS
	away func()
	gone atomic.Bool
}

func (f *awayFS) SyncDir(dir string) error {
	err := f.FS.SyncDir(dir)
	if made, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(made) > 0 && f.gone.CompareAndSwap(false, true) {
		f.away()
	}
	return err
}

// TestRenamedWhileAManifestIsMade: where the directory is away when CURRENT should get its new name, nothing was attempted, and
// the store goes on when it is back: it was poisoned. What it could not remove the next Open does.
func TestRenamedWhileAManifestIsMade(t *testing.T) {
	dir := t.TempDir()
	name, away := filepath.Join(dir, "data"), filepath.Join(dir, "away")
	db, err := cairn.Open(name, nil)
	check(t, err)
	put(t, db, "a", "0")
	check(t, db.Close())
	fsys := &awayFS{FS: vfs.OS(), away: func() {
		if err := os.Rename(name, away); err != nil {
			t.Error(err)
		}
	}}
	db, err = cairn.Open(name, &cairn.Options{FS: fsys})
	check(t, err)
	if err := db.Put(b("a"), b("1")); !fsys.gone.Load() || err == nil || errors.Is(err, cairn.ErrPoisoned) || !strings.Contains(err.Error(), "renamed") {
		t.Errorf("while it is away: %v", err)
	}
	check(t, os.Rename(away, name))
	put(t, db, "a", "2")
	check(t, db.Close())
	verified(t, name, "a", "2")
	for pattern, want := range map[string]int{"*.tmp": 0, "MANIFEST-*": 1} {
		if files, _ := filepath.Glob(filepath.Join(name, pattern)); len(files) != want {
			t.Errorf("there are %q", files)
		}
	}
}

// TestClosedElsewhere: what Close cannot do in a renamed directory it says, and what is
// durable is found there.
func TestClosedElsewhere(t *testing.T) {
	dir := t.TempDir()
	name, away := filepath.Join(dir, "data"), filepath.Join(dir, "away")
	db, err := cairn.Open(name, nil)
	check(t, err)
	check(t, fill(t, db))
	put(t, db, "a", "1")
	check(t, os.Rename(name, away))
	before := other(t, name)
	if err := db.Close(); err == nil {
		t.Error("closed as if nothing were wrong")
	}
	unchanged(t, name, before)
	verified(t, away, "a", "1")

	// A table that Close opens by its name, where the other store has one: nothing of either is damaged.
	name, away = filepath.Join(dir, "small"), filepath.Join(dir, "small away")
	db, err = cairn.Open(name, nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, os.Rename(name, away))
	other(t, name)
	if err := db.Close(); err == nil || errors.Is(err, cairn.ErrCorrupt) {
		t.Errorf("close of a renamed store: %v", err)
	}
}

// TestSwappedWhileOpening: where another store has the directory's name while one is opened, neither becomes the
// other: a writer made the manifest of the one in the directory of the other, whose lock it held, and a reader was
// never told what was written.
func TestSwappedWhileOpening(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("to read %v", readOnly), func(t *testing.T) {
			root := t.TempDir()
			followed(t, root)
			one, two, aside := filepath.Join(root, "one"), filepath.Join(root, "two"), filepath.Join(root, "aside")
			for _, dir := range []string{one, two} {
				db, err := cairn.Open(dir, nil)
				check(t, err)
				put(t, db, "name", filepath.Base(dir))
				check(t, db.Close())
			}
			swap := func() {
				check(t, os.Rename(one, aside))
				check(t, os.Rename(two, one))
				check(t, os.Rename(aside, two))
			}
			h := &hookFS{FS: vfs.OS()}
			h.opens.Store(once("CURRENT", swap))
			db, err := cairn.Open(one, &cairn.Options{FS: h, ReadOnly: readOnly})
			if err == nil || !strings.Contains(err.Error(), "renamed") {
				t.Errorf("open: %v", err)
			}
			swap()
			if err == nil {
				db.Put(b("x"), b("1"))
				db.Close()
			}
			verified(t, one, "name", "one")
			verified(t, two, "name", "two")
		})
	}
}
