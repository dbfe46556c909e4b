package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/cairndb/cairn/vfs"
)

func (x *fixture) fails(err, want error, what string) {
	x.Helper()
	if !errors.Is(err, want) {
		x.Fatalf("%s: error %v, want one matching %v", what, err, want)
	}
}

// named checks that an error says which file it is about.
func (x *fixture) named(err error, name string) {
	x.Helper()
	if err == nil || !strings.Contains(err.Error(), name) {
		x.Fatalf("error %v does not name %s", err, name)
	}
}

func createIsExclusive(x *fixture) {
	x.create("a", "old")
	_, err := x.fs.Create(x.path("a"))
	x.fails(err, fs.ErrExist, "Create of an existing file")
	x.named(err, x.path("a"))
	x.holds("a", "old")
	x.ok(x.fs.MkdirAll(x.path("d")))
	_, err = x.fs.Create(x.path("d"))
	x.fails(err, fs.ErrExist, "Create of an existing directory")
	_, err = x.fs.Create(x.path("none", "a"))
	x.fails(err, fs.ErrNotExist, "Create in a missing directory")
}

func openMissing(x *fixture) {
	_, err := x.fs.Open(x.path("none"))
	x.fails(err, fs.ErrNotExist, "Open")
	x.named(err, x.path("none"))
	_, err = x.fs.OpenReadWrite(x.path("none"))
	x.fails(err, fs.ErrNotExist, "OpenReadWrite")
}

func openDirectory(x *fixture) {
	_, err := x.fs.Open(x.dir)
	x.fails(err, vfs.ErrNotRegular, "Open of a directory")
	x.named(err, "directory")
	_, err = x.fs.OpenReadWrite(x.dir)
	x.fails(err, vfs.ErrNotRegular, "OpenReadWrite of a directory")
}

func readOnlyHandle(x *fixture) {
	x.create("a", "abc")
	f, err := x.fs.Open(x.path("a"))
	x.ok(err)
	x.closing(f)
	if n, err := f.WriteAt([]byte("x"), 0); err == nil || n != 0 {
		x.Fatalf("write through Open: %d, %v", n, err)
	}
	x.holds("a", "abc")
	w, err := x.fs.OpenReadWrite(x.path("a"))
	x.ok(err)
	x.closing(w)
	x.write(w, "x", 1)
	x.holds("a", "axc")
	if got := x.bytes(f); got != "axc" {
		x.Fatalf("the other handle sees %q", got)
	}
}

func readWrite(x *fixture) {
	f := x.create("a", "hello, world")
	x.write(f, "HELL", 0)
	if n, err := f.WriteAt(nil, 3); n != 0 || err != nil {
		x.Fatalf("empty write: %d, %v", n, err)
	}
	x.size(f, 12)
	x.ok(f.Close())
	x.holds("a", "HELLo, world")
}

func readPastEnd(x *fixture) {
	f := x.create("a", "abc")
	buf := make([]byte, 10)
	for _, c := range []struct {
		off  int64
		n    int
		want int
		err  error
	}{{0, 3, 3, nil}, {0, 10, 3, io.EOF}, {1, 10, 2, io.EOF}, {3, 1, 0, io.EOF}, {1 << 40, 1, 0, io.EOF}} {
		n, err := f.ReadAt(buf[:c.n], c.off)
		if n != c.want || err != nil && !errors.Is(err, c.err) || err == nil && c.err != nil {
			x.Errorf("ReadAt(%d bytes, %d) = %d, %v; want %d, %v", c.n, c.off, n, err, c.want, c.err)
		}
	}
}

func writeLeavesHole(x *fixture) {
	f := x.create("a", "abc")
	x.write(f, "z", 10000)
	x.size(f, 10001)
	x.holds("a", "abc"+string(make([]byte, 9997))+"z")
}

func badOffsets(x *fixture) {
	f := x.create("a", "abc")
	if n, err := f.WriteAt([]byte("x"), -1); n != 0 || err == nil {
		x.Errorf("write at -1: %d, %v", n, err)
	}
	if n, err := f.ReadAt(make([]byte, 1), -1); n != 0 || err == nil || err == io.EOF {
		x.Errorf("read at -1: %d, %v", n, err)
	}
	if err := f.Preallocate(-1, 10); err == nil {
		x.Error("preallocation at -1")
	}
	if err := f.Preallocate(1, 1<<63-1); err == nil {
		x.Error("preallocation of an overflowing range")
	}
	x.size(f, 3)
}

// modelOfBytes compares random writes with a slice.
func modelOfBytes(x *fixture) {
	f, model := x.create("a", ""), []byte(nil)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		off, n := r.IntN(40000), r.IntN(9000)
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		x.write(f, string(p), int64(off))
		if grow := off + n - len(model); n > 0 && grow > 0 {
			model = append(model, make([]byte, grow)...)
		}
		if n > 0 {
			copy(model[off:], p)
		}
		at := r.IntN(len(model) + 10)
		buf := make([]byte, 5000)
		got, _ := f.ReadAt(buf, int64(at))
		if want := model[min(at, len(model)):min(at+5000, len(model))]; !bytes.Equal(buf[:got], want) {
			x.Fatalf("read at %d differs from the model", at)
		}
	}
	x.holds("a", string(model))
}

func parallelWrites(x *fixture) {
	f := x.create("a", "")
	const writers, blocks = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := range blocks {
				text := fmt.Sprintf("%02d.%03d.", w, b)
				if _, err := f.WriteAt([]byte(text), int64(b*writers+w)*7); err != nil {
					x.Error(err)
				}
				if b%10 == 0 {
					if err := f.Sync(); err != nil {
						x.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	var want strings.Builder
	for b := range blocks {
		for w := range writers {
			fmt.Fprintf(&want, "%02d.%03d.", w, b)
		}
	}
	x.holds("a", want.String())
}

func syncFile(x *fixture) {
	f := x.create("a", "abc")
	x.ok(f.Sync())
	x.ok(f.Sync())
	x.holds("a", "abc")
}

func useAfterClose(x *fixture) {
	f := x.create("a", "abc")
	x.ok(f.Close())
	_, err := f.WriteAt([]byte("x"), 0)
	x.fails(err, fs.ErrClosed, "WriteAt")
	_, err = f.ReadAt(make([]byte, 1), 0)
	x.fails(err, fs.ErrClosed, "ReadAt")
	_, err = f.Size()
	x.fails(err, fs.ErrClosed, "Size")
	x.fails(f.Sync(), fs.ErrClosed, "Sync")
	if err := f.Preallocate(0, 4096); !errors.Is(err, fs.ErrClosed) && !errors.Is(err, errors.ErrUnsupported) {
		x.Fatalf("Preallocate: %v", err)
	}
	x.fails(f.Close(), fs.ErrClosed, "Close")
}

func preallocate(x *fixture) {
	f := x.create("a", "abc")
	if err := f.Preallocate(0, 1<<16); errors.Is(err, errors.ErrUnsupported) {
		x.size(f, 3)
		return
	} else if err != nil {
		x.Fatal(err)
	}
	x.size(f, 1<<16)
	x.ok(f.Preallocate(0, 100)) // never shrinks
	x.size(f, 1<<16)
	x.ok(f.Preallocate(1<<16, 0))
	x.size(f, 1<<16)
	x.holds("a", "abc"+string(make([]byte, 1<<16-3)))
	x.write(f, "xyz", 40000)
	x.size(f, 1<<16)
	info, err := x.fs.Stat(x.path("a"))
	x.ok(err)
	if info.Allocated < 1<<16 {
		x.Fatalf("only %d bytes are allocated", info.Allocated)
	}
	r, err := x.fs.Open(x.path("a"))
	x.ok(err)
	x.closing(r)
	if r.Preallocate(0, 1<<17) == nil {
		x.Fatal("preallocation through a handle for reading")
	}
}

func shorten(x *fixture) {
	f := x.create("a", "abc")
	s, ok := f.(vfs.Shortener)
	if !ok {
		return
	}
	const long, short = 1 << 20, 1 << 16
	if err := f.Preallocate(0, long); errors.Is(err, errors.ErrUnsupported) {
		x.write(f, string(make([]byte, long-3)), 3)
	} else {
		x.ok(err)
	}
	x.ok(s.Shorten(short))
	x.size(f, short)
	x.holds("a", "abc"+string(make([]byte, short-3)))
	info, err := x.fs.Stat(x.path("a"))
	x.ok(err)
	if info.Allocated >= long {
		x.Fatalf("%d bytes are allocated", info.Allocated)
	}
	x.ok(f.Close())
	if s.Shorten(1) == nil {
		x.Fatal("a closed file was cut")
	}
}

func allocatedBytes(x *fixture) {
	f := x.create("a", string(bytes.Repeat([]byte("x"), 20000)))
	x.ok(f.Sync()) // delayed allocation ends here
	info, err := x.fs.Stat(x.path("a"))
	x.ok(err)
	if info.Size != 20000 || info.Allocated < 20000 || info.Allocated > 1<<20 {
		x.Fatalf("%+v", info)
	}
}
