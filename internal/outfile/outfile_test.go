package outfile

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// device is a file that takes no more than most bytes at a time, and notes what it is asked to begin with.
type device struct {
	vfs.File
	most    int
	writes  int
	started int64
	gaps    bool // it was asked twice for the same, or not for all before
}

func (d *device) WriteAt(p []byte, off int64) (int, error) {
	d.writes++
	return d.File.WriteAt(p[:min(len(p), d.most)], off)
}

func (d *device) StartWriteback(off, n int64) {
	d.gaps = d.gaps || off != d.started || n < startBytes
	d.started = off + n
}

func create(t *testing.T, disk vfs.FS) vfs.File {
	t.Helper()
	f, err := disk.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPieces: what is appended in pieces of any length is in the file, in few writes, and on its way to the device
// while more is appended.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int{1 << 30, 1 << 13} {
		disk := memfs.New()
		d := &device{File: create(t, disk), most: most}
		o := New(d, "f")
		var want []byte
		for len(want) < 3*startBytes {
			piece := bytes.Repeat([]byte{byte(len(want))}, rng.IntN(1<<(1+rng.IntN(18))))
			*o.Buf = append(*o.Buf, piece...)
			want = append(want, piece...)
			if err := o.Settle(); err != nil || o.Offset() != int64(len(want)) || len(*o.Buf) >= gatheredBytes {
				t.Fatalf("offset %d, %d bytes gathered, want offset %d: %v", o.Offset(), len(*o.Buf), len(want), err)
			}
		}
		if d.gaps || d.started < 2*startBytes {
			t.Errorf("the device was asked to begin with %d bytes, gaps %v", d.started, d.gaps)
		}
		if n := len(want)/min(gatheredBytes, most) + 1; most > gatheredBytes && d.writes > n {
			t.Errorf("%d writes of %d bytes", d.writes, len(want))
		}
		if err := o.Finish(); err != nil {
			t.Fatal(err)
		}
		if got, err := disk.Crash(memfs.SyncedOnly().EntriesKept()).ReadFile("f"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes are durable, not the %d that were appended: %v", len(got), len(want), err)
		}
	}
}

// TestNothingTaken: a file that takes nothing, and says nothing, is an error and no endless loop.
func TestNothingTaken(t *testing.T) {
	o := New(&device{File: create(t, memfs.New())}, "f")
	defer o.Close()
	*o.Buf = append(*o.Buf, 1)
	if err := o.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// TestErrors: each step that fails says so, with the name, and the file is closed once in any case.
func TestErrors(t *testing.T) {
	for kind, what := range map[faultfs.Kind]string{faultfs.Write: "write", faultfs.Sync: "sync", faultfs.Close: "close"} {
		disk := faultfs.New(memfs.New())
		o := New(create(t, disk), "the name")
		*o.Buf = append(*o.Buf, "bytes"...)
		disk.Add(faultfs.Rule{Kinds: kind, Do: faultfs.Fail(syscall.EIO)})
		closes := disk.Add(faultfs.Rule{Kinds: faultfs.Close})
		if err := o.Finish(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), what+" the name") {
			t.Errorf("%s: %v", what, err)
		}
		for range 2 {
			if err := o.Close(); err != nil || closes.Seen() != 1 || o.Buf != nil {
				t.Errorf("%s: closed %d times: %v", what, closes.Seen(), err)
			}
		}
	}
}

// TestBuffers: a buffer that is used again begins empty, whatever was not written of the last file.
func TestBuffers(t *testing.T) {
	for range 3 {
		o := New(create(t, memfs.New()), "f")
		if o.Offset() != 0 || cap(*o.Buf) < room || cap(*o.Buf) > mostKept {
			t.Errorf("a new file begins at %d with a buffer of %d bytes", o.Offset(), cap(*o.Buf))
		}
		*o.Buf = append(*o.Buf, make([]byte, 2*mostKept)...)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o = New(create(t, memfs.New()), "f")
		*o.Buf = append(*o.Buf, "is not written"...)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
