package cairn_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// numberedFS knows the greatest number of a file that was to be made.
type numberedFS struct {
	vfs.FS
	full     atomic.Bool // no file can be made
	greatest atomic.Int64
}

func (f *numberedFS) Create(name string) (vfs.File, error) {
	n := int64(0)
	if fmt.Sscanf(filepath.Base(name), "%d.", &n); strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".sst") {
		f.greatest.Store(max(n, f.greatest.Load()))
	}
	if f.full.Load() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: vfs.ErrNoSpace}
	}
	return f.FS.Create(name)
}

// TestNumbersOnAFullDisk: each commit that is refused since no file can be made, or none of its size, used up numbers of files, for good,
// of which there are 2^32.
func TestNumbersOnAFullDisk(t *testing.T) {
	for name, full := range map[string]bool{"no files": true, "no space": false} {
		t.Run(name, func(t *testing.T) {
			f := &numberedFS{FS: smallDisk(4 << 20)}
			db := openAt(t, "/db", &cairn.Options{FS: f, Memory: 2 << 20})
			put(t, db, "a", "1")
			f.full.Store(full)
			refused, begun := 0, int64(0)
			for i := 0; refused < 300; i++ {
				if err := db.Put(fmt.Appendf(nil, "k%d", i), noise(2000)); err != nil {
					expect(t, err, cairn.ErrNoSpace)
					if refused++; refused == 100 {
						begun = f.greatest.Load()
					}
				}
			}
			if n := f.greatest.Load() - begun; n > 20 {
				t.Errorf("200 commits that were refused have taken %d numbers", n)
			}
			f.full.Store(false)
			check(t, db.Delete(b("a")))
		})
	}
}
