package cairn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
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
