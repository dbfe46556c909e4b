package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// logs returns how many log files there are, and how many of them were used before.
func logs(t *testing.T, fsys *memfs.FS) (all, reused int) {
	t.Helper()
	names, err := fsys.List("/db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if kind, _ := base.ParseFileName(name); kind != base.FileLog {
			continue
		}
		buf, err := fsys.ReadFile(filepath.Join("/db", name))
		if err != nil {
			continue // removed meanwhile
		}
		all++
		if h, err := base.DecodeFileHeader(buf, base.FileLog, name); err == nil && h.Reused {
			reused++
		}
	}
	return all, reused
}

// TestLogFilesAreUsedAgain by a store that is written to and whose commits wait for syncs,
// and are gone when nobody writes, and after Close; and a process that dies at any moment
// leaves a log in which all is found, and nothing seems to be lost.
func TestLogFilesAreUsedAgain(t *testing.T) {
	fsys := memfs.New()
	fsys.StopJournal()
	cfg := config.Config{Dir: "/db", FS: fsys, Memory: 1 << 20, SyncInterval: time.Hour} // segments of 64 KiB
	e := mustOpen(t, cfg)
	put, most, seen := 0, 0, 0
	for ; put < 3000; put++ {
		if err := commitOne(e, base.KindPut, fmt.Appendf(nil, "%06d", put), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if put%10 > 0 {
			continue
		}
		all, reused := logs(t, fsys)
		most, seen = max(most, all), seen+reused
		if put%500 == 490 {
			died := cfg
			died.FS = fsys.Clone()
			found, err := Open(died)
			if err != nil {
				t.Fatalf("after %d puts: %v", put+1, err)
			}
			if s := found.Stats(); s.Seq != uint64(put+1) || s.Recovery.DroppedBytes != 0 {
				t.Errorf("after %d puts: %d are found, %d bytes are reported as dropped", put+1, s.Seq, s.Recovery.DroppedBytes)
			}
			if err := found.Close(); err != nil {
				t.Fatal(err)
			}
			if all, _ := logs(t, died.FS.(*memfs.FS)); all > 0 {
				t.Errorf("%d log files are left", all)
			}
		}
	}
	if seen == 0 || most > 12 {
		t.Errorf("at most %d log files at a time; used again were %d", most, seen)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		live, _ := e.logs.Live()
		all, _ := logs(t, fsys)
		if all == live {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d log files are there, %d of them of the log, though nobody writes", all, live)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNothingWaitsThatCannotBeUsed: a log file that the system's cache has not whole does
// not wait to be used again.
func TestNothingWaitsThatCannotBeUsed(t *testing.T) {
	fsys := &coldLogs{FS: memfs.New()}
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 1 << 20, SyncInterval: time.Hour})
	for put := range 1000 {
		if err := commitOne(e, base.KindPut, fmt.Appendf(nil, "%06d", put), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		e.logs.Shelf.Clear(func(name string) { t.Errorf("%s waits", name) })
	}
	if fsys.asked.Load() == 0 {
		t.Error("nobody has asked what of a log file is in memory")
	}
}

// coldLogs is a file system whose cache has nothing.
type coldLogs struct {
	vfs.FS
	asked atomic.Int64
}

func (c *coldLogs) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	return coldFile{f, &c.asked}, err
}

type coldFile struct {
	vfs.File
	asked *atomic.Int64
}

func (f coldFile) Cached(int64) bool { f.asked.Add(1); return false }

// TestShelfGivesWay: where there is no space for a segment, the files that wait to be used
// again are removed.
func TestShelfGivesWay(t *testing.T) {
	fsys := memfs.New()
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour})
	e.merging.Lock() // the compactor waits, and the store does not come to rest
	defer e.merging.Unlock()
	if err := commitOne(e, base.KindPut, []byte("key"), make([]byte, 300<<10)); err != nil { // from now on space is put aside
		t.Fatal(err)
	}
	const size = 2 << 20
	waiting, err := wal.Create(fsys, "/db/000099.log", 99, e.ledger.Store, make([]byte, size), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := waiting.Sync(); err != nil {
		t.Fatal(err)
	}
	e.logs.Shelf.Put(waiting.Retire())
	fsys.SetCapacity(fsys.Used() + 3*size) // with the file there is space for the segment and for what is put aside for the flush of one twice as large
	if err := commitOne(e, base.KindPut, []byte("large"), make([]byte, size)); err != nil {
		t.Errorf("with a file of %d bytes to be removed: %v", size, err)
	}
	fsys.SetCapacity(0)
}

// TestReuseWithoutAnswer: a file that has got its new name, though an error was reported,
// is no obstacle to the next commit, and not left behind.
func TestReuseWithoutAnswer(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 1 << 20, SyncInterval: time.Hour})
	rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Rename, Name: "*.log", Sticky: true, Do: faultfs.DoneBut(syscall.EIO)})
	for put := range 3000 {
		if err := commitOne(e, base.KindPut, fmt.Appendf(nil, "%06d", put), make([]byte, 1000)); err != nil {
			t.Fatalf("put %d: %v", put, err)
		}
	}
	if rule.Fired() == 0 {
		t.Error("no file was to be used again")
	}
	rule.Stop()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if all, _ := logs(t, disk); all > 0 {
		t.Errorf("%d log files are left", all)
	}
}

// TestFailedCloseClosesTheLog: what could not be flushed stays in the log, whose files are
// closed all the same.
func TestFailedCloseClosesTheLog(t *testing.T) {
	counted := &countedLogs{FS: memfs.New()}
	fsys := faultfs.New(counted)
	fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.sst", Sticky: true, Do: faultfs.Fail(syscall.EIO)})
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 1 << 20, SyncInterval: time.Hour})
	for put := range 150 {
		if err := commitOne(e, base.KindPut, fmt.Appendf(nil, "%06d", put), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Close: %v", err)
	}
	if counted.made < 3 || counted.open.Load() != 0 {
		t.Errorf("of %d log files %d are open after Close", counted.made, counted.open.Load())
	}
}

// countedLogs counts log files that are open.
type countedLogs struct {
	vfs.FS
	made int
	open atomic.Int64
}

func (c *countedLogs) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	if kind, _ := base.ParseFileName(filepath.Base(name)); err == nil && kind == base.FileLog {
		c.made++
		c.open.Add(1)
		f = countedFile{f, &c.open}
	}
	return f, err
}

type countedFile struct {
	vfs.File
	open *atomic.Int64
}

func (f countedFile) Close() error { f.open.Add(-1); return f.File.Close() }
