//go:build unix

package cairn_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// crampedFS has no descriptor left for directories for a while.
type crampedFS struct {
	vfs.FS
	cramped atomic.Bool
}

func (f *crampedFS) SyncDir(dir string) error {
	if f.cramped.Load() {
		return fmt.Errorf("%w: %w", vfs.ErrNotAttempted, &os.PathError{Op: "open", Path: dir, Err: syscall.EMFILE})
	}
	return f.FS.SyncDir(dir)
}

// TestNoDescriptorForASync: a directory that could not even be opened to be synced poisoned the
// store for good, at once, and later only if commits waited for it half a second. The directory
// stays open now.
func TestNoDescriptorForASync(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(durability.String(), func(t *testing.T) {
			fs := &crampedFS{FS: vfs.OS()}
			db := openAt(t, t.TempDir(), &cairn.Options{FS: fs, Memory: 8 << 20, Durability: durability})
			put(t, db, "a", strings.Repeat("1", 300<<10))
			fs.cramped.Store(true)
			check(t, db.Update(func(tx *cairn.Tx) error {
				tx.SetDurability(cairn.Durable)
				return tx.Put(b("b"), b("2"))
			}))
			check(t, db.Compact(t.Context(), cairn.Range{}))
			put(t, db, "c", "3")
		})
	}
}

// TestNoDescriptorForTheFirstCommit: neither does a manifest that cannot be made.
func TestNoDescriptorForTheFirstCommit(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, db.Close())
	fs := &crampedFS{FS: vfs.OS()}
	db = openAt(t, dir, &cairn.Options{FS: fs})
	fs.cramped.Store(true)
	if err := db.Put(b("b"), b("2")); !errors.Is(err, syscall.EMFILE) || errors.Is(err, cairn.ErrPoisoned) {
		t.Fatal(err)
	}
	fs.cramped.Store(false)
	put(t, db, "b", "2")
}

// TestSyncOfWhatCannotBeOpened says that it was not attempted.
func TestSyncOfWhatCannotBeOpened(t *testing.T) {
	if err := vfs.OS().SyncDir("/nowhere/at/all"); !errors.Is(err, vfs.ErrNotAttempted) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
