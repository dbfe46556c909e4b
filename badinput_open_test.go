package cairn_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// openError returns what Open says. A store that it opens nevertheless is closed.
func openError(t testing.TB, dir string, opts *cairn.Options) error {
	t.Helper()
	db, err := cairn.Open(dir, opts)
	if err == nil {
		check(t, db.Close())
	}
	return err
}

func TestInvalidOptions(t *testing.T) {
	for name, opts := range map[string]*cairn.Options{
		"negative memory":        {Memory: -1},
		"too little memory":      {Memory: 1<<20 - 1},
		"negative sync interval": {SyncInterval: -1},
		"negative lock timeout":  {LockTimeout: -1},
		"unknown compression":    {Compression: 4},
		"unknown durability":     {Durability: 2},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		err := openError(t, dir, opts)
		if !errors.Is(err, cairn.ErrInvalidOption) || !strings.Contains(err.Error(), " ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the directory was made", name)
		}
	}
	expect(t, openError(t, "", nil), cairn.ErrInvalidOption)
}

func TestDirectoryIsAFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	check(t, os.WriteFile(name, b("precious"), 0o600))
	before := contents(t, dir)
	for _, readOnly := range []bool{false, true} {
		for _, path := range []string{name, filepath.Join(name, "below")} {
			err := openError(t, path, &cairn.Options{ReadOnly: readOnly})
			if err == nil {
				t.Fatal("a file was opened as a store")
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not say which path", err)
			}
		}
	}
	expect(t, openError(t, name, nil), fs.ErrInvalid)
	unchanged(t, dir, before)
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing"), dir} {
		expect(t, openError(t, path, &cairn.Options{ReadOnly: true}), fs.ErrNotExist)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was made")
	}
}

// TestForeignDirectory: other files in the directory are not touched.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	foreign := map[string]string{"README": "hello", "1.sst": "mine", "data.log": "mine", "MANIFEST-x": "mine", ".hidden": ""}
	for name, data := range foreign {
		check(t, os.WriteFile(filepath.Join(dir, name), b(data), 0o600))
	}
	check(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	for range 3 {
		db := openAt(t, dir, nil)
		put(t, db, "a", "1")
		check(t, db.Compact(t.Context(), cairn.Range{}))
		check(t, db.Close())
	}
	for name, want := range foreign {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// plainFS is a file system that can do no more than it must: locks cannot be watched.
type plainFS struct{ vfs.FS }

// TestLocked: one writer and, where locks cannot be watched, no reader beside it.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir, nil)
	for _, readOnly := range []bool{false, true} {
		err := openError(t, dir, &cairn.Options{ReadOnly: readOnly, FS: plainFS{vfs.OS()}})
		var l *cairn.LockedError
		if !errors.As(err, &l) || !errors.Is(err, cairn.ErrLocked) || l.PID != os.Getpid() || l.Since.IsZero() || !strings.Contains(l.Path, dir) {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
	}
	for _, readOnly := range []bool{false, true} {
		start := time.Now()
		expect(t, openError(t, dir, &cairn.Options{ReadOnly: readOnly, FS: plainFS{vfs.OS()}, LockTimeout: 50 * time.Millisecond}), cairn.ErrLocked)
		if d := time.Since(start); d < 50*time.Millisecond {
			t.Errorf("read-only %v: gave up after %v", readOnly, d)
		}
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		db.Close()
	}()
	again := openAt(t, dir, &cairn.Options{LockTimeout: 10 * time.Second})
	put(t, again, "a", "1")
	check(t, again.Close())
	reader := openAt(t, dir, &cairn.Options{ReadOnly: true, FS: plainFS{vfs.OS()}})
	expect(t, openError(t, dir, nil), cairn.ErrLocked)
	wantValue(t, reader, "a", "1")
}
