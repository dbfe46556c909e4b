package tablefiles

import (
	"fmt"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// newFile is the file of a table to be written.
type newFile struct {
	num   uint64
	file  vfs.File
	named bool // its name is durable
}

// ahead is the file of a table to come, empty. Whoever makes a log segment syncs the
// directory anyway, so the table that the segment becomes need not.
type ahead struct {
	mu sync.Mutex
	newFile
}

// MakeAhead makes the file of the next table, unless there is one. NameAhead says that the
// directory has been synced since. Without the file nothing is lost but time. What
// it is given is NewNum and PutBack for who calls it.
func (f *Files) MakeAhead(newNum func() uint64, putBack func(uint64)) {
	a := &f.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		return
	}
	if made, err := f.newFile(newNum(), putBack); err == nil {
		a.newFile = made
	}
}

// NameAhead says that the directory was synced after MakeAhead.
func (f *Files) NameAhead() {
	f.ahead.mu.Lock()
	defer f.ahead.mu.Unlock()
	f.ahead.named = f.ahead.file != nil
}

// DropAhead removes the file that was made ahead.
func (f *Files) DropAhead() {
	a := &f.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		a.file.Close()
		f.FS.Remove(f.Path(a.num)) // or the next Open does
		a.newFile = newFile{}
	}
}

// nextFile returns the file of a table to be written: if it may be, the one that was made
// ahead, whose name is durable.
func (f *Files) nextFile(mayBeAhead bool) (newFile, error) {
	if mayBeAhead {
		f.ahead.mu.Lock()
		made := f.ahead.newFile
		if made.named {
			f.ahead.newFile = newFile{}
		}
		f.ahead.mu.Unlock()
		if made.named {
			return made, nil
		}
	}
	return f.newFile(f.NewNum(), f.PutBack)
}

func (f *Files) newFile(num uint64, putBack func(uint64)) (newFile, error) {
	file, err := f.FS.Create(f.Path(num))
	if err != nil {
		if vfs.IsNoSpace(err) {
			putBack(num)
		}
		err = fmt.Errorf("create table %s: %w", base.FileName(base.FileTable, num), err)
	}
	return newFile{num: num, file: file}, err
}
