package tablefiles

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// failingFS makes no file, or makes it and says that it has not.
type failingFS struct {
	vfs.FS
	err  error
	made bool
}

func (f *failingFS) Create(name string) (vfs.File, error) {
	if f.made {
		file, err := f.FS.Create(name)
		if err != nil {
			return nil, err
		}
		file.Close()
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
}

// TestNumbersOfFailedTables: the number of a table is given back where there was no space for its file, and only there: of one that failed
// for another reason there may be a file.
func TestNumbersOfFailedTables(t *testing.T) {
	for _, c := range []struct {
		err  error
		made bool
		want uint64
	}{{vfs.ErrNoSpace, false, 1}, {syscall.EIO, false, 2}, {syscall.EIO, true, 2}} {
		disk, next := memfs.New(), uint64(1)
		newNum := func() uint64 { next++; return next - 1 }
		putBack := func(num uint64) { next = num }
		f := &Files{FS: &failingFS{disk, c.err, c.made}, Dir: "/", NewNum: newNum, PutBack: putBack}
		if f.MakeAhead(newNum, putBack); next != c.want {
			t.Errorf("%+v: behind a table made ahead comes %d", c, next)
		}
		next = 11
		if _, err := f.nextFile(true); !errors.Is(err, c.err) || next != 10+c.want {
			t.Errorf("%+v: %v, and behind table 11 comes %d", c, err, next)
		}
		f.FS = disk
		made, err := f.nextFile(false)
		if err != nil {
			t.Fatalf("%+v: the next one: %v", c, err)
		}
		made.file.Close()
	}
}
