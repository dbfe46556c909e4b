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
	full     atomic.Pointer[string] // pattern of the names that no file can be made with
	greatest atomic.Int64
}

func (f *numberedFS) Create(name string) (vfs.File, error) {
	n, base := int64(0), filepath.Base(name)
	fmt.Sscanf(strings.TrimPrefix(base, "MANIFEST-"), "%d", &n)
	f.greatest.Store(max(n, f.greatest.Load()))
	if full, _ := filepath.Match(*f.full.Load(), base); full {
		return nil, &fs.PathError{Op: "open", Path: name, Err: vfs.ErrNoSpace}
	}
	return f.FS.Create(name)
}

// TestNumbersOnAFullDisk: each commit that is refused since no file can be made, or none of its size, or no manifest behind Open, used up
// numbers of files, for good, of which there are 2^32.
func TestNumbersOnAFullDisk(t *testing.T) {
	nothing := ""
	for _, c := range []struct {
		name, full string
		reopen     bool
		durability cairn.Durability
	}{
		{"no files", "*", false, cairn.Durable}, {"no space", nothing, false, cairn.Durable},
		{"no manifest", "MANIFEST-*", true, cairn.Durable}, {"no manifest", "MANIFEST-*", true, cairn.Relaxed},
		{"no new CURRENT", "*.tmp", true, cairn.Durable}, {"no new CURRENT", "*.tmp", true, cairn.Relaxed},
	} {
		t.Run(fmt.Sprint(c.name, ", ", c.durability), func(t *testing.T) {
			f := &numberedFS{FS: smallDisk(2 << 20)}
			f.full.Store(&nothing)
			o := &cairn.Options{FS: f, Memory: 1 << 20, Durability: c.durability}
			db := openAt(t, "/db", o)
			put(t, db, "a", "1")
			if c.reopen {
				check(t, db.Close())
				db = openAt(t, "/db", o)
			}
			f.full.Store(&c.full)
			refused, begun := 0, int64(0)
			for i := 0; refused < 60; i++ {
				if err := db.Put(fmt.Appendf(nil, "k%d", i), noise(2000)); err != nil {
					expect(t, err, cairn.ErrNoSpace)
					if refused++; refused == 20 {
						begun = f.greatest.Load()
					}
				}
			}
			if n := f.greatest.Load() - begun; n > 10 {
				t.Errorf("40 commits that were refused have taken %d numbers", n)
			}
			f.full.Store(&nothing)
			check(t, db.Delete(b("a")))
		})
	}
}
