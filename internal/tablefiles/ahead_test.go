package tablefiles

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestNumbersOfFailedTables: the number of a table is given back where there was no space for its file, and only there: of one that failed
// for another reason there may be a file.
func TestNumbersOfFailedTables(t *testing.T) {
	for _, c := range []struct {
		do   faultfs.Action
		err  error
		want uint64
	}{{faultfs.NoSpace(), vfs.ErrNoSpace, 1}, {faultfs.Fail(syscall.EIO), syscall.EIO, 2}, {faultfs.DoneBut(syscall.EIO), syscall.EIO, 2}} {
		disk, next := memfs.New(), uint64(1)
		faults := faultfs.New(disk)
		faults.Add(faultfs.Rule{Kinds: faultfs.Create, Sticky: true, Do: c.do})
		newNum := func() uint64 { next++; return next - 1 }
		putBack := func(num uint64) { next = num }
		f := &Files{FS: faults, Dir: "/", NewNum: newNum, PutBack: putBack}
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
