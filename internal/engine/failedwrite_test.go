package engine

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// failingLog is a file system on which the first write to a log fails once failNext is set,
// and whose syncs of logs take their time from then on. It notes whether a table was made
// meanwhile.
type failingLog struct {
	vfs.FS
	failNext, failed, syncing atomic.Bool
	tables                    atomic.Int32 // made during such a sync
}

func (f *failingLog) Create(name string) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && f.syncing.Load() {
		f.tables.Add(1)
	}
	file, err := f.FS.Create(name)
	if err == nil && strings.HasSuffix(name, ".log") {
		file = &failingFile{file, f}
	}
	return file, err
}

type failingFile struct {
	vfs.File
	fs *failingLog
}

func (f *failingFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.failNext.CompareAndSwap(true, false) {
		f.fs.failed.Store(true)
		return 0, syscall.EIO
	}
	return f.File.WriteAt(p, off)
}

func (f *failingFile) Sync() error {
	if f.fs.failed.Load() {
		f.fs.syncing.Store(true)
		defer f.fs.syncing.Store(false)
		time.Sleep(50 * time.Millisecond)
	}
	return f.File.Sync()
}

// TestFlushAwaitsTheLink: a memtable of which failed commits had been cut off was flushed
// before the link of the segment that follows was durable, and the log then began with the
// next segment. If that held commits of the failed round too, a power cut at that moment left
// a log whose first frame has the wrong sequence: the store did not open.
func TestFlushAwaitsTheLink(t *testing.T) {
	fsys := &failingLog{FS: memfs.New()}
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour})
	put := func(key string) error {
		return commitOne(e, base.KindPut, []byte(key), []byte("value"))
	}
	if err := put("good"); err != nil {
		t.Fatal(err)
	}
	fsys.failNext.Store(true)
	if err := put("bad"); err == nil || !fsys.failed.Load() {
		t.Fatalf("the write did not fail: %v", err)
	}
	if n := fsys.tables.Load(); n > 0 {
		t.Errorf("%d tables were made before the link was durable", n)
	}
	if err := put("after"); err != nil {
		t.Fatal(err)
	}
}
