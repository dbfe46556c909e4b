package engine

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
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
		buf, err := fsys.ReadFile(path.Join("/db", name))
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
		e.commit.mu.Lock()
		live := len(e.segments)
		e.commit.mu.Unlock()
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
