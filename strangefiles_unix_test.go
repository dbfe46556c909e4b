//go:build unix && !aix && !solaris && !illumos

package cairn_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
)

// TestDanglingLink: a link that leads nowhere is no place for a store, and stays.
func TestDanglingLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink("nowhere", link))
	if db, err := cairn.Open(link, nil); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("%v, %v", db, err)
	}
	if _, err := os.Stat(link); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it leads to something: %v", err)
	}
}

// TestPermissions: what Open makes has those that are documented, less the umask, of which others tell that were asked for all.
func TestPermissions(t *testing.T) {
	parent := t.TempDir()
	dir, file := filepath.Join(parent, "dir"), filepath.Join(parent, "file")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.WriteFile(file, nil, 0o666))
	mode := func(name string) fs.FileMode {
		info, err := os.Stat(name)
		check(t, err)
		return info.Mode().Perm()
	}
	store := filepath.Join(parent, "new", "store")
	put(t, openAt(t, store, nil), "a", "1")
	for name, data := range contents(t, filepath.Dir(store)) {
		want := 0o644 & mode(file)
		if data == "(directory)" {
			want = 0o755 & mode(dir)
		}
		if got := mode(name); got != want {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

// TestStrangeFiles: a directory, a symbolic link or a FIFO in place of a file is
// refused, and Open does not hang.
func TestStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir)
	for name, data := range contents(t, dir) {
		if data == "(directory)" {
			continue
		}
		for what, make := range map[string]func() error{
			"directory": func() error { return os.Mkdir(name, 0o755) },
			"symlink":   func() error { return os.Symlink("/etc/hostname", name) },
			"fifo":      func() error { return syscall.Mkfifo(name, 0o600) },
		} {
			check(t, os.Remove(name))
			check(t, make())
			for _, readOnly := range []bool{true, false} {
				db, err := cairn.Open(dir, &cairn.Options{ReadOnly: readOnly})
				if err == nil {
					db.Close()
					t.Fatalf("a %s in place of %s was opened", what, filepath.Base(name))
				}
				if !strings.Contains(err.Error(), filepath.Base(name)) {
					t.Errorf("%v does not name %s", err, filepath.Base(name))
				}
				if want := map[bool]error{false: cairn.ErrCorrupt, true: fs.ErrExist}[filepath.Base(name) == "LOCK"]; !errors.Is(err, want) {
					t.Errorf("a %s in place of %s: %v does not match %v", what, filepath.Base(name), err, want)
				}
			}
		}
		check(t, os.Remove(name))
		check(t, os.WriteFile(name, b(data), 0o600))
	}
}

// TestLostCurrentBesideALink: a store whose CURRENT is missing is told from a directory without one, whatever a link with the name of a
// table leads to.
func TestLostCurrentBesideALink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	sample(t, dir)
	check(t, os.Remove(filepath.Join(dir, "CURRENT")))
	check(t, os.Symlink("nowhere", filepath.Join(dir, "000000.sst")))
	before, err := os.ReadDir(dir)
	check(t, err)
	if _, err := cairn.Open(dir, nil); !errors.Is(err, cairn.ErrCorrupt) {
		t.Errorf("opened without CURRENT: %v", err)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("%d files of %d are left, %v", len(after), len(before), err)
	}
}
