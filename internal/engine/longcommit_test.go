package engine

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestRestAfterALongCommit: a store that has come to rest keeps neither the memory of a commit longer than an
// ordinary segment nor space put aside for it.
func TestRestAfterALongCommit(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	e := mustOpen(t, config.Config{Dir: "/db", FS: m, Memory: 2 << 30, SyncInterval: time.Hour})
	defer e.Close()
	limit := int64(e.cfg.SegmentLimit())
	for _, n := range []int64{300 << 10, limit + 1<<20} { // for a little nothing is put aside
		if err := commitOne(e, base.KindPut, []byte("key"), make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	aside := func() int64 {
		info, err := m.Stat(e.path(base.FileReserve, 0))
		if err != nil {
			return 0
		}
		return info.Size
	}
	if n := aside(); n < limit {
		t.Errorf("%d bytes are put aside for its flush", n)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		kept, layers := e.buffers.Spare(), len(e.State().Layers)
		if kept < limit && layers == 0 && aside() < limit {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of memory are kept, %d put aside, %d layers", kept, aside(), layers)
		}
	}
}
