package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// relaxedOn opens a store whose log is mapped, and returns it with what puts a key.
func relaxedOn(t *testing.T, fsys vfs.FS) (*Engine, func(key string, durable bool)) {
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, Relaxed: true, SyncInterval: time.Hour})
	return e, func(key string, durable bool) {
		t.Helper()
		var entries frame.Entries
		entries.Add(base.KindPut, testBucket, []byte(key), []byte("value"))
		if _, err := e.Commit(&Write{Entries: entries.Parts(), Bytes: entries.Bytes(), Count: 1, Durable: durable}); err != nil {
			t.Fatal(err)
		}
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
	fsys := memfs.New()
	fsys.AllowMaps()
	e, put := relaxedOn(t, fsys)
	for i := range 100 {
		put(fmt.Sprint("key", i), false)
	}
	at := e.commit.mem.Seg.Written() - 60
	if !e.commit.mem.Seg.Mapped() {
		t.Fatal("the log is not mapped")
	}
	log := logNames(t, fsys)[0]
	if err := fsys.Corrupt(log, at, 1); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("Close: %v", err)
	}
	if names := logNames(t, fsys); len(names) == 0 || names[0] != log {
		t.Errorf("the log is gone: %q", names)
	}
	if err := fsys.Corrupt(log, at, 1); err != nil { // the disk has what was committed
		t.Fatal(err)
	}
	again, _ := relaxedOn(t, fsys)
	if n := again.Visible(); n < 100 {
		t.Errorf("%d commits of 100 are there", n)
	}
}

// TestLogFollowsDurability: the log is mapped where most commits are relaxed, from the segment
// on that follows.
func TestLogFollowsDurability(t *testing.T) {
	fsys := memfs.New()
	fsys.AllowMaps()
	e, put := relaxedOn(t, fsys)
	for i, durable := range []bool{false, true, true, false, false} {
		want := []bool{true, true, false, false, true}[i] // what the segment before asks for
		put("a", durable)
		if got := e.commit.mem.Seg.Mapped(); got != want {
			t.Errorf("segment %d: mapped %v, want %v", i, got, want)
		}
		for c := &e.commit; ; {
			seg := c.mem.Seg
			put(strings.Repeat("b", 50_000), durable)
			if c.mem.Seg != seg {
				break
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
