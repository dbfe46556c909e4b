package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
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
