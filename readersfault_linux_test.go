//go:build !race

package cairn_test

// The race detector stores in C, where a memory fault ends the process.

import (
	"context"
	"io"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// heldPageFS knows the page of the lock file that a writer stores to.
type heldPageFS struct {
	vfs.FS
	page []byte
}

type heldPageLock struct {
	io.Closer
	vfs.Sharer
	vfs.Guard
	vfs.DirKeeper
	f *heldPageFS
}

func (f *heldPageFS) Lock(name string, shared bool) (io.Closer, error) {
	l, err := f.FS.Lock(name, shared)
	if err == nil {
		l = &heldPageLock{l, l.(vfs.Sharer), l.(vfs.Guard), l.(vfs.DirKeeper), f}
	}
	return l, err
}

func (l *heldPageLock) Share() ([]byte, error) {
	b, err := l.Sharer.Share()
	if err == nil {
		within := int(uintptr(unsafe.Pointer(&b[0])) % uintptr(os.Getpagesize()))
		l.f.page = unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&b[0]), -within)), os.Getpagesize())
	}
	return b, err
}

// protect makes the page one that takes no store, or one that does.
func (f *heldPageFS) protect(t *testing.T, how int) {
	t.Helper()
	if f.page == nil {
		t.Skip("NOT TESTED: a page that takes no store: nothing is shared")
	}
	check(t, unix.Mprotect(f.page, how))
}

// TestReadersWhereTheirPageTakesNoStore: where the lock file's page takes no store, as where its block is another file's, too, and
// the disk is full, the writer went on, and readers with what they had seen. What they cannot be shown is not acknowledged, nor
// does it come into tables, which they would see; and when the page takes stores again all goes on.
func TestReadersWhereTheirPageTakesNoStore(t *testing.T) {
	dir, fsys := t.TempDir(), &heldPageFS{FS: vfs.OS()}
	w := openAt(t, dir, &cairn.Options{FS: fsys})
	put(t, w, "a", "0")
	r := openAt(t, dir, &cairn.Options{ReadOnly: true})
	wantValue(t, r, "a", "0")
	fsys.protect(t, unix.PROT_READ)
	expect(t, w.Put(b("a"), b("1")), cairn.ErrCommitUnknown)
	wantValue(t, w, "a", "1")
	expect(t, w.Put(b("a"), b("2")), cairn.ErrNoSpace)
	expect(t, w.Delete(b("a")), cairn.ErrNoSpace)
	expect(t, w.Compact(context.Background(), cairn.Range{}), cairn.ErrNoSpace)
	wantValue(t, w, "a", "1")
	wantValue(t, r, "a", "0")
	late := openAt(t, dir, &cairn.Options{ReadOnly: true})
	wantValue(t, late, "a", "0")
	fsys.protect(t, unix.PROT_READ|unix.PROT_WRITE)
	put(t, w, "b", "3")
	for _, db := range []*cairn.DB{w, r, late} {
		wantValue(t, db, "a", "1")
		wantValue(t, db, "b", "3")
	}
	check(t, w.Compact(context.Background(), cairn.Range{}))
	put(t, w, "a", "4")
	wantValue(t, r, "a", "4")
	check(t, w.Close())
	wantValue(t, late, "a", "4")
}

// TestClosedWhereReadersPageTakesNoStore: what readers could not be shown stays in the log, and is there when the store is opened again.
func TestClosedWhereReadersPageTakesNoStore(t *testing.T) {
	dir, fsys := t.TempDir(), &heldPageFS{FS: vfs.OS()}
	w, err := cairn.Open(dir, &cairn.Options{FS: fsys})
	check(t, err)
	put(t, w, "a", "0")
	r := openAt(t, dir, &cairn.Options{ReadOnly: true})
	wantValue(t, r, "a", "0")
	fsys.protect(t, unix.PROT_READ)
	expect(t, w.Put(b("a"), b("1")), cairn.ErrCommitUnknown)
	expect(t, w.Close(), cairn.ErrNoSpace)
	w = openAt(t, dir, nil)
	wantValue(t, w, "a", "1")
	put(t, w, "a", "2")
	wantValue(t, r, "a", "2")
}
