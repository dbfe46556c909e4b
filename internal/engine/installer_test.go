package engine

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// slowLog is a file system on which, once armed, the sync of the log that there is takes
// until it is told to go on.
type slowLog struct {
	vfs.FS
	armed   atomic.Bool
	begun   chan struct{}
	goingOn chan struct{}
}

func (s *slowLog) Create(name string) (vfs.File, error) {
	file, err := s.FS.Create(name)
	if err == nil && strings.HasSuffix(name, ".log") && !s.armed.Load() {
		file = &slowFile{file, s}
	}
	return file, err
}

type slowFile struct {
	vfs.File
	fs *slowLog
}

func (f *slowFile) Cached(int64) bool { return true }

func (f *slowFile) Sync() error {
	if f.fs.armed.Load() {
		close(f.fs.begun)
		<-f.fs.goingOn
	}
	return f.File.Sync()
}

// TestCommitsDoNotAwaitASegment: a memtable was made a table while its segment was being
// synced in the background. The segment was closed, which waits for the sync, under the lock
// that commits wait for; and so was freed what nobody needed any more.
func TestCommitsDoNotAwaitASegment(t *testing.T) {
	fsys := &slowLog{FS: memfs.New(), begun: make(chan struct{}), goingOn: make(chan struct{})}
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour, Relaxed: true})
	commit := func() {
		if err := commitOne(e, base.KindPut, []byte("key"), []byte("value")); err != nil {
			t.Error(err)
		}
	}
	commit()
	fsys.armed.Store(true)
	synced, compacted, committed := make(chan error), make(chan error), make(chan struct{})
	go func() { synced <- e.Sync() }()
	<-fsys.begun
	go func() { compacted <- e.Compact(t.Context(), nil, nil) }()
	goOn := sync.OnceFunc(func() { close(fsys.goingOn) })
	defer goOn()
	eventually(t, "the memtable is a table", func() bool { return len(e.State().Handles) == 1 })
	go func() { commit(); close(committed) }()
	select {
	case <-committed:
	case <-time.After(10 * time.Second):
		t.Error("a commit waits for the sync of a segment that is a table")
	}
	goOn()
	if err := <-synced; err != nil {
		t.Error(err)
	}
	if err := <-compacted; err != nil {
		t.Error(err)
	}
	<-committed
}

// ofNothing is a job that changes nothing.
var ofNothing = &compact.Job{Move: true}

// TestRetiredByAnother: while the segment of a memtable that was made a table is being
// synced, another edit retires it. The file, which could have been used again, was then kept
// open until Close, with its space, though its name was gone.
func TestRetiredByAnother(t *testing.T) {
	for what, another := range map[string]func(*Engine){
		"a merge": func(e *Engine) {
			if _, err := e.installer.Job(ofNothing, nil); err != nil {
				t.Error(err)
			}
		},
		"the end of the log": func(e *Engine) { e.installer.EndLog() },
	} {
		t.Run(what, func(t *testing.T) {
			fsys := &slowLog{FS: memfs.New(), begun: make(chan struct{}), goingOn: make(chan struct{})}
			e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour, Relaxed: true})
			if err := commitOne(e, base.KindPut, []byte("key"), []byte("value")); err != nil {
				t.Fatal(err)
			}
			fsys.armed.Store(true)
			synced, compacted := make(chan error), make(chan error)
			go func() { synced <- e.Sync() }()
			<-fsys.begun
			go func() { compacted <- e.Compact(t.Context(), nil, nil) }()
			eventually(t, "the memtable is a table", func() bool { return len(e.State().Handles) == 1 })
			another(e)
			close(fsys.goingOn)
			if err := <-synced; err != nil {
				t.Error(err)
			}
			if err := <-compacted; err != nil {
				t.Error(err)
			}
			if segments, used := e.logs.Live(); used > 0 || segments > 1 { // none once the store rests
				t.Errorf("%d files are kept open, there are %d segments", used, segments)
			}
		})
	}
}

// TestPoisonedInstallsNothing: on a store that was poisoned meanwhile no flush or merge is recorded, and none is begun;
// Compact says so. It returned nil, and merged.
func TestPoisonedInstallsNothing(t *testing.T) {
	disk := faultfs.New(memfs.New())
	e := mustOpen(t, config.Config{Dir: "/db", FS: disk, Memory: 4 << 20})
	for range 2 { // two runs, and nothing in memory
		for _, key := range []string{"a", "b"} {
			if err := commitOne(e, base.KindPut, []byte(key), make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.flushAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.poisonNow(syscall.EIO)
	changes := disk.Add(faultfs.Rule{Kinds: faultfs.Create | faultfs.Write | faultfs.Remove, Name: "[0-9M]*[0-9t]"})
	if _, err := e.installer.Job(ofNothing, nil); !errors.Is(err, base.ErrPoisoned) {
		t.Errorf("a job: %v, want ErrPoisoned", err)
	}
	if err := e.Compact(t.Context(), nil, nil); !errors.Is(err, base.ErrPoisoned) {
		t.Errorf("Compact: %v, want ErrPoisoned", err)
	}
	if n := changes.Seen(); n > 0 {
		t.Errorf("%d changes to tables and manifests", n)
	}
}
