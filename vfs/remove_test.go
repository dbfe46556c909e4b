package vfs_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// slowFree is an FS that frees space when it is told to.
type slowFree struct {
	vfs.FS
	freed chan bool
}

func (s slowFree) Unlink(name string) (free func(), err error) {
	return func() { s.freed <- true }, s.Remove(name)
}

func TestRemoveSoon(t *testing.T) {
	mem := memfs.New()
	slow := slowFree{mem, make(chan bool)}
	for _, fsys := range []vfs.FS{mem, slow} {
		f, err := fsys.Create("file")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := vfs.RemoveSoon(fsys, "file", false); err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Stat("file"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after RemoveSoon: %v", err)
		}
		if err := vfs.RemoveSoon(fsys, "file", false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not there: %v", err)
		}
	}
	for _, synced := range []bool{true, false} {
		f, err := mem.Create("large")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{1}, 1<<20); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := vfs.RemoveSoon(slow, "large", synced); err != nil {
			t.Fatal(err)
		}
		freed := 0
		if synced {
			freed = 2 // the small one too
		}
		for range freed {
			select {
			case <-slow.freed:
			case <-time.After(10 * time.Second):
				t.Error("nobody frees the space")
			}
		}
	}
	select {
	case <-slow.freed:
		t.Error("the space of a file that was not there, or is large and not synced, is freed later")
	case <-time.After(10 * time.Millisecond):
	}
}
