package vfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t testing.TB) (vfs.FS, string) { return vfs.OS(), t.TempDir() })
}

func TestIsNoSpace(t *testing.T) {
	wrapped := &os.PathError{Op: "write", Path: "a", Err: vfs.ErrNoSpace}
	if !vfs.IsNoSpace(wrapped) || !vfs.IsNoSpace(errors.Join(os.ErrClosed, wrapped)) {
		t.Error("a wrapped ErrNoSpace is not recognised")
	}
	if vfs.IsNoSpace(nil) || vfs.IsNoSpace(os.ErrExist) {
		t.Error("something else is taken for a full disk")
	}
}

func TestOpenRefusesSymlink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	for name, open := range openers {
		if err := open(link); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s of a symbolic link: %v", name, err)
		}
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "made"), dangling); err != nil {
		t.Fatal(err)
	}
	if err := openers["Lock"](dangling); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("Lock of a dangling link: %v", err)
	}
	if _, err := vfs.OS().Create(dangling); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create of a dangling link: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("a link was followed and its target made")
	}
}

// openers open a name and report the error.
var openers = map[string]func(name string) error{
	"Open": func(name string) error {
		f, err := vfs.OS().Open(name)
		if err == nil {
			f.Close()
		}
		return err
	},
	"OpenReadWrite": func(name string) error {
		f, err := vfs.OS().OpenReadWrite(name)
		if err == nil {
			f.Close()
		}
		return err
	},
	"Lock":        func(name string) error { return lockOnce(name, false) },
	"Lock shared": func(name string) error { return lockOnce(name, true) },
}

func lockOnce(name string, shared bool) error {
	l, err := vfs.OS().Lock(name, shared)
	if err == nil {
		l.Close()
	}
	return err
}
