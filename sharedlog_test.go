package cairn_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// sharedLogs is a disk on which another file has a part in the blocks of the logs that are there when shared is set, as after a
// copy by reference: what is written to them takes other blocks, of which a full disk has none.
type sharedLogs struct {
	*memfs.FS
	shared atomic.Pointer[map[string]bool]
	begun  sync.Map // logs that were written to, by name
}

func (f *sharedLogs) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if err == nil {
		file = &sharedFile{file, f, name}
	}
	return file, err
}

// SyncDir takes its time: who copies the directory meanwhile has a part in what is still to become a segment.
func (f *sharedLogs) SyncDir(dir string) error {
	time.Sleep(5 * time.Millisecond)
	return f.FS.SyncDir(dir)
}

// logs returns the logs that are there, with their headers.
func (f *sharedLogs) logs() map[string]bool {
	logs := map[string]bool{}
	f.begun.Range(func(name, _ any) bool {
		if _, err := f.Stat(name.(string)); err == nil {
			logs[name.(string)] = true
		}
		return true
	})
	return logs
}

type sharedFile struct {
	vfs.File
	fs   *sharedLogs
	name string
}

func (f *sharedFile) WriteAt(p []byte, off int64) (int, error) {
	if shared := f.fs.shared.Load(); shared != nil && (*shared)[f.name] {
		return 0, vfs.ErrNoSpace
	}
	if strings.HasSuffix(f.name, ".log") {
		defer f.fs.begun.Store(f.name, nil)
	}
	return f.File.WriteAt(p, off)
}

// TestFullDiskWithSharedLogs: a put to a log that has no space though it was reserved is refused, and the store goes on, also with
// what deletes. There was no space for the segment behind it either, but what is put aside, and the store was poisoned.
func TestFullDiskWithSharedLogs(t *testing.T) {
	for _, c := range []struct{ puts, logs int }{{400, 2}, {3000, 1}} {
		m := &sharedLogs{FS: smallDisk(64 << 20)}
		o := &cairn.Options{FS: m, Memory: 8 << 20}
		db := openAt(t, "/db", o)
		for i := range c.puts {
			check(t, db.Put(fmt.Append(nil, "before", i), noise(1000)))
		}
		shared := m.logs()
		for start := time.Now(); len(shared) < c.logs && time.Since(start) < 10*time.Second; shared = m.logs() {
			runtime.Gosched() // the keeper makes the next one
		}
		m.shared.Store(&shared)
		m.SetCapacity(m.Used())
		expect(t, db.Put(b("refused"), b("1")), cairn.ErrNoSpace)
		wantValue(t, db, "before57", string(noise(1000)))
		check(t, db.Delete(b("before58")))
		m.SetCapacity(64 << 20)
		put(t, db, "after", "1")
		check(t, db.Close())
		db = openAt(t, "/db", o)
		wantValue(t, db, "refused", "")
		wantValue(t, db, "before58", "")
		wantValue(t, db, "after", "1")
	}
}
