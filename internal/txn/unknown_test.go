package txn

import (
	"errors"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// liarFS does what it is asked to write to a log, but says that it failed, once armed; and then it has no space
// for another log.
type liarFS struct {
	vfs.FS
	armed  atomic.Bool
	tables atomic.Int32 // made since
}

type liarFile struct {
	vfs.File
	fs *liarFS
}

func (f *liarFS) Create(name string) (vfs.File, error) {
	log := path.Ext(name) == path.Ext(base.FileName(base.FileLog, 1))
	switch {
	case log && f.armed.Load():
		return nil, syscall.ENOSPC
	case isTable(name) && f.armed.Load():
		f.tables.Add(1)
	}
	file, err := f.FS.Create(name)
	if err == nil && log {
		return &liarFile{file, f}, nil
	}
	return file, err
}

func (f *liarFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if f.fs.armed.Load() {
		return 0, syscall.EIO
	}
	return n, err
}

// TestALongFrameOfUnknownOutcome: what may be there when the store is opened again is not tried another way,
// and its error says so, though it says too that a disk was full.
func TestALongFrameOfUnknownOutcome(t *testing.T) {
	large(t)
	for name, c := range longCommits {
		t.Run(name, func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			fsys := &liarFS{FS: m}
			e, err := engine.Open(config.Config{Dir: "/db", FS: fsys, SyncInterval: time.Hour, Memory: longMemory})
			check(t, err)
			n, size := c.n, c.size
			if n == 1 {
				size = c.size * 3 / 4 // as the others
			} else {
				n = n * 3 / 4
			}
			filler, values := make([]byte, 1400), make([][]byte, n)
			for i := range values {
				values[i] = noise(i, size)
			}
			for { // until there is a segment that has room for it
				check(t, Put(e, bucket, []byte("filler"), filler))
				if mem := e.State().Layers[0].Mem; mem.Seg.Room(n*(size+64)) && mem.Room(n) {
					break
				}
			}
			fsys.armed.Store(true)
			err = c.commit(e, n, size, func(i, _ int) []byte { return values[i] })
			if !errors.Is(err, base.ErrCommitUnknown) && !errors.Is(err, base.ErrNoSpace) { // the store came to rest meanwhile: then it begins another segment
				t.Errorf("the error is %v", err)
			}
			unknown := errors.Is(err, base.ErrCommitUnknown)
			if made := fsys.tables.Load(); unknown && made > 0 {
				t.Errorf("%d tables were made of it", made)
			}
			fsys.armed.Store(false)
			e.Close()
			again := openLong(t, m, false)
			found := holds(t, again, n, size, func(i, _ int) []byte { return values[i] })
			if !unknown && found > 0 || found > 0 && found < n {
				t.Errorf("the error was %v, %d of %d keys are there", err, found, n)
			}
			t.Logf("unknown %v, %d of %d keys are there", unknown, found, n)
		})
	}
}
