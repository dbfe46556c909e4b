package engine

import (
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
)

// meetingFS lets nobody open a table before another one is being opened, and counts tables that are open.
type meetingFS struct {
	vfs.FS
	came atomic.Int32
	open atomic.Int64
	met  chan bool
}

func (m *meetingFS) Open(name string) (vfs.File, error) {
	if filepath.Ext(name) != ".sst" {
		return m.FS.Open(name)
	}
	if m.came.Add(1) == 2 {
		close(m.met)
	}
	select {
	case <-m.met:
	case <-time.After(20 * time.Second):
		return nil, errors.New("only one table is opened at a time")
	}
	f, err := m.FS.Open(name)
	if err != nil {
		return nil, err
	}
	m.open.Add(1)
	return countedFile{f, &m.open}, nil
}

// TestTablesAreOpenedSideBySide: and where one cannot be read those that were opened are closed.
func TestTablesAreOpenedSideBySide(t *testing.T) {
	cfg := indexTestConfig(t.TempDir(), 64<<20)
	e := mustOpen(t, cfg)
	value := make([]byte, 64<<10)
	for i := range 5 * merger.TargetTable / len(value) {
		rand.Read(value)
		if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	meeting := &meetingFS{FS: cfg.FS, met: make(chan bool)}
	cfg.FS = meeting
	e = mustOpen(t, cfg)
	tables := len(e.installer.Handles)
	if err := e.Close(); err != nil || tables < 4 {
		t.Fatalf("%d tables, %v", tables, err)
	}
	faults := faultfs.New(meeting)
	cfg.FS = faults
	injected := errors.New("injected")
	faults.Add(faultfs.Rule{Kinds: faultfs.Read, Name: "*.sst", At: 3, Do: faultfs.Fail(injected)})
	if _, err := Open(cfg); !errors.Is(err, injected) {
		t.Fatalf("a table cannot be read: %v", err)
	}
	if n := meeting.open.Load(); n != 0 {
		t.Errorf("%d tables are open after an Open that failed", n)
	}
	e = mustOpen(t, cfg)
	if v, err := e.GetTo(testBucket, indexTestKey(0), nil); err != nil || len(v) != len(value) {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
