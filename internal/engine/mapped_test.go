package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// relaxedOn opens a relaxed store that nothing syncs by itself.
func relaxedOn(t *testing.T, dir string, fsys vfs.FS) *Engine {
	t.Helper()
	return mustOpen(t, config.Config{Dir: dir, FS: fsys, Memory: 64 << 20, Relaxed: true, SyncInterval: time.Hour})
}

// mapsLogs skips the test where no log is mapped.
func mapsLogs(t *testing.T, e *Engine) {
	t.Helper()
	if !e.commit.mem.Seg.Mapped() {
		t.Skip("SKIPPED: the log is not mapped in ", e.cfg.Dir)
	}
}

// putOne commits a value of size bytes.
func putOne(t *testing.T, e *Engine, key string, size int, durable bool) {
	t.Helper()
	if err := tryPut(e, key, size, durable); err != nil {
		t.Fatal(err)
	}
}

func logNames(t *testing.T, fsys *memfs.FS) (names []string) {
	t.Helper()
	for _, name := range fsys.Files() {
		if strings.HasSuffix(name, ".log") {
			names = append(names, name)
		}
	}
	return names
}

// TestLogThatWasLostIsNoTable: what the system has lost of a mapped log, which readers would
// see as it is now, becomes part of no table. The store is poisoned, and the log stays.
func TestLogThatWasLostIsNoTable(t *testing.T) {
	fsys, _ := mapped(t)
	e := relaxedOn(t, "/db", fsys)
	release := holdMerges(t, e)
	for i := range 100 {
		putOne(t, e, fmt.Sprint("key", i), 5, false)
	}
	if !e.commit.mem.Seg.Mapped() {
		t.Fatal("the log is not mapped")
	}
	at := e.commit.mem.Seg.Written() - 60
	log := logNames(t, fsys)[0]
	if err := fsys.Corrupt(log, at, 1); err != nil {
		t.Fatal(err)
	}
	release()
	if err := e.Close(); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("Close: %v", err)
	}
	if names := logNames(t, fsys); len(names) == 0 || names[0] != log {
		t.Errorf("the log is gone: %q", names)
	}
	if err := fsys.Corrupt(log, at, 1); err != nil { // the disk has what was committed
		t.Fatal(err)
	}
	again := relaxedOn(t, "/db", fsys)
	if n := again.Visible(); n < 100 {
		t.Errorf("%d commits of 100 are there", n)
	}
}

// TestLogFollowsDurability: the log is mapped where most commits are relaxed, from the segment
// on that follows.
func TestLogFollowsDurability(t *testing.T) {
	fsys, _ := mapped(t)
	e := relaxedOn(t, "/db", fsys)
	release := holdMerges(t, e)
	for i, durable := range []bool{false, true, true, false, false} {
		want := []bool{true, true, false, false, true}[i] // what the segment before asks for
		putOne(t, e, "a", 5, durable)
		if got := e.commit.mem.Seg.Mapped(); got != want {
			t.Errorf("segment %d: mapped %v, want %v", i, got, want)
		}
		for c := &e.commit; ; {
			seg := c.mem.Seg
			putOne(t, e, "b", 50_000, durable)
			if c.mem.Seg != seg {
				break
			}
		}
	}
	release()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// fetching is a file system that counts how often each mapped log is fetched.
type fetching struct {
	vfs.FS
	mu    sync.Mutex
	times []int
}

func (f *fetching) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return fetchingFile{file, f}, err
}

type fetchingFile struct {
	vfs.File
	of *fetching
}

func (f fetchingFile) Map(off int64, n int) (vfs.Mapping, error) {
	m, err := f.File.(vfs.Mapper).Map(off, n)
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.times = append(f.of.times, 0)
	return fetchingMapping{m, f.of, len(f.of.times) - 1}, err
}

type fetchingMapping struct {
	vfs.Mapping
	of *fetching
	i  int
}

func (m fetchingMapping) Fetch(int64, int64) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.times[m.i]++
}

// TestLogsAreFetched: where the store does not fit into memory the logs of what is flushed, and of what Close merges,
// are fetched before they are read; elsewhere only to be looked at afterwards.
func TestLogsAreFetched(t *testing.T) {
	for _, scarce := range []bool{true, false} {
		inner, _ := mapped(t)
		inner.StopJournal()
		disk := &fetching{FS: inner}
		memory := map[bool]int64{true: 1 << 20, false: 256 << 20}[scarce]
		e, err := Open(config.Config{Dir: "/db", FS: disk, Memory: memory, Relaxed: true, SyncInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		release := holdMerges(t, e)
		for i := range 4000 {
			putOne(t, e, fmt.Sprint("key", i), 1000, false)
		}
		eventually(t, "memtables are flushed", func() bool {
			e.commit.mu.Lock()
			defer e.commit.mu.Unlock()
			return e.oldestSealed() == nil || !scarce
		})
		twice := func() (n int) {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			for _, times := range disk.times {
				n += times / 2
			}
			return n
		}
		flushed := twice()
		disk.mu.Lock()
		if enough := len(disk.times) / 2; scarce && flushed < enough || !scarce && flushed > 0 {
			t.Errorf("scarce: %v: fetched: %v", scarce, disk.times)
		}
		disk.mu.Unlock()
		release()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if n := twice() - flushed; scarce && n == 0 || !scarce && n > 0 {
			t.Errorf("scarce: %v: fetched: %v", scarce, disk.times)
		}
	}
}

// TestLongCommitsAreMapped: the log of synced commits is mapped where they are long, and nothing of them is in memory
// twice. They are there after a power cut, like the short ones behind them, which find no zeros.
func TestLongCommitsAreMapped(t *testing.T) {
	fsys, _ := mapped(t)
	fsys.StartJournal()
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 256 << 20, SyncInterval: time.Hour})
	putOne(t, e, "short", 10, true)
	if e.commit.mem.Seg.Mapped() {
		t.Error("the log of a short commit is mapped")
	}
	putOne(t, e, "long", max(tree.LongCommit, tree.MinSegment), true) // the first segment has no room for it
	if s := e.commit.mem.Seg; !s.Mapped() || s.Provisional() {
		t.Errorf("a long commit: mapped %v, provisional %v", s.Mapped(), s.Provisional())
	}
	putOne(t, e, "behind it", 10, true)
	for name, choice := range map[string]memfs.Choice{"all there was": memfs.Everything(), "synced only": memfs.SyncedOnly()} {
		if seq := reopened(t, fsys, choice); seq != 3 {
			t.Errorf("%s: %d commits are there", name, seq)
		}
	}
}
