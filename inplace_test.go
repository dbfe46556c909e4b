package cairn_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// tellsFS is a disk that notes which files are said to be written more than once, before anything is in them.
type tellsFS struct {
	*memfs.FS
	t    *testing.T
	mu   sync.Mutex
	made map[string]bool // by the letters the name begins or ends with: was it said?
}

func (f *tellsFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(filepath.Base(name), "-")
	if ext := filepath.Ext(name); ext != "" {
		kind = ext
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[kind] = f.made[kind]
	return &tellsFile{file, f, kind}, nil
}

type tellsFile struct {
	vfs.File
	fs   *tellsFS
	kind string
}

func (f *tellsFile) WriteInPlace() {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.made[f.kind] = true
	if n, err := f.Size(); n > 0 || err != nil {
		f.fs.t.Errorf("%s of %d bytes, %v", f.kind, n, err)
	}
}

// TestWhatIsWrittenInPlace: file systems are told of logs and manifests, parts of which are written again and again, while there is
// nothing in them, and not of tables, which are written once.
func TestWhatIsWrittenInPlace(t *testing.T) {
	f := &tellsFS{FS: smallDisk(64 << 20), t: t, made: map[string]bool{}}
	db := openAt(t, "/db", &cairn.Options{FS: f, Memory: 8 << 20})
	for i := range 500 {
		check(t, db.Put(fmt.Append(nil, i), noise(1000)))
	}
	check(t, db.Close())
	if table, ok := f.made[".sst"]; !f.made[".log"] || !f.made["MANIFEST"] || table || !ok {
		t.Errorf("told: %v", f.made)
	}
}
