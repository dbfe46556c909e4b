package merger

import (
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// noting is a file system that counts how often mappings are fetched.
type noting struct {
	vfs.FS
	fetched int
}

func (n *noting) Create(name string) (vfs.File, error) {
	f, err := n.FS.Create(name)
	return notingFile{f, n}, err
}

type notingFile struct {
	vfs.File
	of *noting
}

func (f notingFile) Map(off int64, n int) (vfs.Mapping, error) {
	m, err := f.File.(vfs.Mapper).Map(off, n)
	return notingMapping{m, f.of}, err
}

type notingMapping struct {
	vfs.Mapping
	of *noting
}

func (m notingMapping) Fetch(int64, int64) { m.of.fetched++ }

// TestFetched: the logs of a merge are fetched at once and four times while as much is written as they hold, where
// memory is scarce, and never elsewhere. A memtable without a log has none.
func TestFetched(t *testing.T) {
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	m := memfs.New()
	m.AllowMaps()
	disk := &noting{FS: m}
	const size, long = 16 << 20, 15 << 20
	seg, err := wal.CreateMapped(disk, "1.log", 1, base.ID{}, size, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Drop()
	seg.Link(0, 0, 0)
	seg.Append(frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1}, make([]byte, long))
	if err := seg.WriteOut(); err != nil {
		t.Fatal(err)
	}
	index := make([]byte, tree.IndexBytes(size, 100))
	mems := []*tree.Memory{
		tree.NewMemory(seg, make([]byte, size), index, 100, nil),
		tree.NewMemory(nil, make([]byte, 1<<10), make([]byte, tree.IndexBytes(1<<10, 1)), 1, nil),
	}
	pages := cache.New(arena.NewBudget(1<<20), epoch.New())
	defer pages.Close()
	merger := &Merger{Tables: &tablefiles.Files{Pages: pages}}
	stop := errors.New("stop")
	for _, scarce := range []bool{false, true} {
		pages.SetScarce(scarce)
		asked := 0
		check := merger.fetched(mems, func() error { asked++; return stop })
		if first := disk.fetched; first != map[bool]int{true: 1}[scarce] {
			t.Fatalf("scarce: %v: fetched %d times at once", scarce, first)
		}
		for range long >> 20 {
			if err := check(); err != stop {
				t.Fatal(err)
			}
		}
		if n := disk.fetched; asked != long>>20 || scarce && (n < 1+fetches || n > 2+fetches) || !scarce && n != 0 {
			t.Errorf("scarce: %v: asked %d times, fetched %d times", scarce, asked, n)
		}
	}
}
