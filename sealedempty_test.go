package cairn_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// slowLogFS lets a write to a log segment, once armed, wait for somebody to close that
// segment, which nobody should. What is written to a segment before its use is not meant:
// its header and zeros.
type slowLogFS struct {
	vfs.FS
	armed atomic.Bool
}

type slowLog struct {
	vfs.File
	fs     *slowLogFS
	closed chan struct{}
}

func (f *slowLogFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &slowLog{file, f, make(chan struct{})}, nil
}

func (f *slowLog) WriteAt(p []byte, off int64) (int, error) {
	filling := len(bytes.TrimLeft(p, "\x00")) == 0
	if off > 0 && !filling && f.fs.armed.CompareAndSwap(true, false) {
		select {
		case <-f.closed:
		case <-time.After(300 * time.Millisecond):
		}
	}
	return f.File.WriteAt(p, off)
}

func (f *slowLog) Close() error {
	close(f.closed)
	return f.File.Close()
}

// TestEmptySegmentStaysOpen: Compact leaves an empty segment whose link is not written
// yet. A commit too large for it began the next one, and while both were being written
// the flusher closed the first, which held nothing: the commit failed.
func TestEmptySegmentStaysOpen(t *testing.T) {
	fs := &slowLogFS{FS: memfs.New()}
	db := openAt(t, "/db", &cairn.Options{FS: fs})
	check(t, db.Put(b("k"), b("v")))
	check(t, db.Compact(t.Context(), cairn.Range{}))
	fs.armed.Store(true)
	check(t, db.Put(b("large"), make([]byte, 3<<20)))
	if fs.armed.Load() {
		t.Error("no write to the log was delayed")
	}
}
