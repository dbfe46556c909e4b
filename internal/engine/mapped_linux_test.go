package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
	"golang.org/x/sys/unix"
)

// mappedLogs returns how many log files in dir are mapped, those without a name included.
func mappedLogs(t *testing.T, dir string) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("SKIPPED: the system does not say what is mapped: ", err)
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if strings.Contains(line, dir) && strings.Contains(line, ".log") {
			n++
		}
	}
	return n
}

// onFiles opens a relaxed store in dir.
func onFiles(t *testing.T, dir string) *Engine {
	t.Helper()
	return relaxedOn(t, dir, vfs.OS())
}

// TestMappedLogGoes: what is mapped of a log, and counted, goes with the memtable when it has
// become a table, and all of it with Close.
func TestMappedLogGoes(t *testing.T) {
	dir := t.TempDir()
	e := onFiles(t, dir)
	putOne(t, e, "first", 10, false)
	mapsLogs(t, e)
	const n = 3000
	for i := range n {
		putOne(t, e, fmt.Sprint("key", i), 10_000, false)
	}
	if mappedLogs(t, dir) == 0 || e.budget.UsedBy(arena.ClassMemtable) == 0 {
		t.Error("a log that is in use is not mapped, or not counted")
	}
	within := func(what string, done func() bool) {
		t.Helper()
		for start := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatalf("%s: %d logs are mapped, %d bytes counted", what, mappedLogs(t, dir), e.budget.UsedBy(arena.ClassMemtable))
			}
		}
	}
	within("at rest", func() bool {
		e.Epochs.Collect()
		return mappedLogs(t, dir) == 0 && e.budget.UsedBy(arena.ClassMemtable) == e.buffers.Spare()
	})
	putOne(t, e, "last", 10, false)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	within("closed", func() bool { return mappedLogs(t, dir) == 0 && e.budget.UsedBy(arena.ClassMemtable) == 0 })
}

// TestDetachedLog: a log to which nothing can be stored any more is written, and a store that
// was killed then has what was acknowledged.
func TestDetachedLog(t *testing.T) {
	dir := t.TempDir()
	e := onFiles(t, dir)
	release := holdMerges(t, e)
	putOne(t, e, "before", 10, false)
	mapsLogs(t, e)
	seg := e.commit.mem.Seg
	if err := unix.Mprotect(seg.Buffer(), unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		putOne(t, e, fmt.Sprint("after", i), 1000, false)
	}
	if e.commit.mem.Seg != seg || seg.Written() < 50_000 {
		t.Errorf("written to %d, or to another segment", seg.Written())
	}
	killed := t.TempDir()
	err := os.CopyFS(killed, os.DirFS(dir))
	release()
	if err != nil {
		t.Fatal(err)
	}
	for at, dir := range map[string]string{"closed": dir, "killed": killed} {
		if at == "closed" {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		again := onFiles(t, dir)
		if n := again.Visible(); n < 51 {
			t.Errorf("%s: %d commits of 51 are there", at, n)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
