package cairn_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// losingFS loses, as a kernel may, what a sync of the directory was to make durable that fails: the next one says nothing
// of it. It can stop whoever writes one of the tables.
type losingFS struct {
	vfs.FS
	stop  *gate
	at    atomic.Int64 // it is the table before which so many are written
	fails atomic.Int64 // so many syncs of the directory
	mu    sync.Mutex
	made  map[string]bool // names not durable yet
	lost  map[string]bool // names that never will be
}

func (l *losingFS) Create(name string) (vfs.File, error) {
	f, err := l.FS.Create(name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.made[name] = true
	l.mu.Unlock()
	return &losingFile{f, l, filepath.Ext(name) == ".sst"}, nil
}

type losingFile struct {
	vfs.File
	fs    *losingFS
	table bool // to which nothing was written
}

func (f *losingFile) WriteAt(p []byte, off int64) (int, error) {
	if f.table && f.fs.at.Add(-1) == -1 {
		f.fs.stop.pass()
	}
	f.table = false
	return f.File.WriteAt(p, off)
}

func (l *losingFS) SyncDir(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails.Add(-1) >= 0 {
		for name := range l.made {
			l.lost[name] = true
		}
		clear(l.made)
		return syscall.EIO
	}
	clear(l.made)
	return l.FS.SyncDir(dir)
}

// TestTablesMadeBeforeAFailedSyncOfTheDirectory: a flush or merge that writes its files when somebody else's sync of the
// directory fails does not trust the next one (E6): what it was made of stays, and Compact says that it failed.
func TestTablesMadeBeforeAFailedSyncOfTheDirectory(t *testing.T) {
	const most = 20
	for at := range int64(most) {
		if !mergeAcrossFailedSync(t, at) {
			if at < 2 {
				t.Fatalf("%d tables were made, not a flush's and a merge's", at)
			}
			return
		}
	}
	t.Fatalf("Compact has made %d tables", most)
}

// mergeAcrossFailedSync has a sync of the directory fail while Compact writes a table, before which it has written
// so many, and looks at what a power cut leaves. It reports whether there was one.
func mergeAcrossFailedSync(t *testing.T, at int64) bool {
	m := memfs.New()
	l := &losingFS{FS: m, stop: newGate(), made: map[string]bool{}, lost: map[string]bool{}}
	l.at.Store(1 << 40)
	db, err := cairn.Open("/db", &cairn.Options{FS: l, Memory: 16 << 20})
	check(t, err)
	defer db.Close()
	fillUp(t, db, "a", 20)
	check(t, db.Compact(nil, cairn.Range{}))
	fillUp(t, db, "b", 10)
	fillUp(t, db, "a", 10) // to be merged with the first table
	l.stop.armed.Store(true)
	l.at.Store(at)
	compacted := make(chan error, 1)
	go func() { compacted <- db.Compact(nil, cairn.Range{}) }()
	select {
	case <-l.stop.hit:
	case err := <-compacted:
		check(t, err)
		return false
	}
	l.fails.Store(1)
	for i := 0; err == nil; i++ {
		err = db.Put(fmt.Append(nil, "c", i), make([]byte, 10_000)) // until there has to be another segment
	}
	expect(t, err, cairn.ErrPoisoned)
	l.stop.open()
	if err := <-compacted; !errors.Is(err, cairn.ErrPoisoned) {
		t.Errorf("table %d: Compact returned %v, want ErrPoisoned", at, err)
	}
	expect(t, db.Close(), cairn.ErrPoisoned)

	cut := m.Crash(memfs.SyncedOnly())
	for name := range l.lost {
		_ = cut.Remove(name) // or it is not there
	}
	again, err := cairn.Open("/db", &cairn.Options{FS: cut, Memory: 16 << 20})
	if err != nil {
		t.Fatalf("table %d: after the power cut: %v", at, err)
	}
	defer again.Close()
	for _, prefix := range []string{"a", "b"} {
		for i := range map[string]int{"a": 20, "b": 10}[prefix] {
			if _, err := again.Get(fmt.Append(nil, prefix, i)); err != nil {
				t.Errorf("table %d: %s%d, which was durable: %v", at, prefix, i, err)
			}
		}
	}
	return true
}
