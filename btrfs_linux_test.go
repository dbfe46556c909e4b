package cairn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// mountBtrfs makes a btrfs of 256 MB and mounts it.
func mountBtrfs(t *testing.T) string {
	t.Helper()
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	script := `truncate -s 256M $1 && mkfs.btrfs -q $1 && mount -o loop $1 $2`
	if out, err := exec.Command("sh", "-c", script, "sh", image, dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: a full btrfs: %v: %s", err, out)
	}
	t.Cleanup(func() { whenFree(t, "umount", dir) })
	return dir
}

// TestFullBtrfs: what is written again takes other space on btrfs, also where the first space was reserved. The log and the manifest
// found none on a full disk, and the store was poisoned.
func TestFullBtrfs(t *testing.T) {
	dir := mountBtrfs(t)
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for life := range 4 {
			store, filled := filepath.Join(dir, fmt.Sprint(d, life)), filepath.Join(dir, "fill")
			db := openAt(t, store, &cairn.Options{Memory: 8 << 20, Durability: d})
			for i := range 400 {
				check(t, db.Put(fmt.Append(nil, "before", i), noise(1000)))
			}
			fillTo(t, filled)
			check(t, exec.Command("sync", filled).Run())
			var err error
			for i := 0; err == nil && i < 100_000; i++ {
				err = db.Put(fmt.Append(nil, "full", i), noise(1000))
			}
			expect(t, err, cairn.ErrNoSpace)
			if err := db.Delete(b("before1")); err != nil && !errors.Is(err, cairn.ErrNoSpace) {
				t.Errorf("a delete: %v", err)
			}
			check(t, os.Remove(filled))
			for start := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the file system frees it by and by
				if err = db.Put(b("later"), b("1")); err == nil {
					break
				} else if expect(t, err, cairn.ErrNoSpace); time.Since(start) > time.Minute {
					t.Fatal(err)
				}
			}
			check(t, db.Close())
			check(t, os.RemoveAll(store))
		}
	}
}
