// Package logfiles keeps the log files of one open store: made, used again, removed.
//
// # What it provides
//
// Files: the segments that are there, the files of old ones that wait for the next segment, and
// the removing of whatever the manifest has made useless.
//
// # Invariants
//
// Of docs/INVARIANTS.md: E5 (nothing is removed, or used again, too early).
//
// # Concurrency
//
// Create is called by one goroutine at a time, who may use file numbers; all other methods may be
// called at once.
package logfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Files are the log files of a store. The exported fields are set before it is used.
type Files struct {
	FS       vfs.FS
	Dir      string
	Store    base.ID
	Obsolete *obsolete.Files
	NewNum   func() uint64       // an unused file number
	GiveBack func(num uint64)    // of a number that NewNum has returned, for whose file there is no space
	MayUse   func(size int) bool // whether the next segment may be made of an old one's file of that size
	Failed   func(error)         // is told what went wrong where nobody waits for it

	Shelf wal.Shelf // files for the next segments

	mu       sync.Mutex
	live     []uint64             // segments made and not yet useless
	used     map[uint64]*wal.Used // files of flushed ones of these, by number
	unsynced []string             // see NeverSynced
}

// Path returns the name of a segment's file.
func (f *Files) Path(num uint64) string {
	return base.FilePath(f.Dir, base.FileLog, num)
}

// Form is what the file of a segment is to be like.
type Form struct {
	Size        int  // bytes
	Mapped      bool // for its arena
	Provisional bool // nothing of it is synced, if it can be mapped
	Zeros       bool // the first ones go with the header, of one that is not mapped
}

// Create makes the file of a segment: if it is not to be mapped, of that of an old one if there is one as large.
// If there is not, those there are will not serve: their space is freed beside what goes on here, which others
// wait for.
func (f *Files) Create(form Form, buffer func() ([]byte, error)) (seg *wal.Segment, err error) {
	num := f.NewNum()
	if form.Mapped {
		seg, err = wal.CreateMapped(f.FS, f.Path(num), num, f.Store, form.Size, form.Provisional, buffer)
	} else {
		var buf []byte
		if buf, err = buffer(); err != nil {
			return nil, err
		}
		if u := f.Shelf.Take(form.Size); u != nil {
			if seg, err = wal.Reuse(f.FS, u, f.Path(num), num, f.Store, buf); err == nil {
				return seg, nil
			}
			f.Failed(err)
			f.remove(f.soon, obsolete.File{Path: u.Name()})
			num = f.NewNum()
		}
		seg, err = wal.Create(f.FS, f.Path(num), num, f.Store, buf, form.Zeros)
	}
	if err == nil {
		f.Clear(f.soon)
	} else if wal.NotMade(err) {
		f.GiveBack(num)
	}
	return seg, err
}

// soon removes a file, if it is there, beside what goes on here.
func (f *Files) soon(path string) error {
	if err := vfs.RemoveSoon(f.FS, path, true); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Add notes that a segment is there.
func (f *Files) Add(num uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = append(f.live, num)
}

// Live returns how many segments there are, and how many files of them are open only to be used
// again.
func (f *Files) Live() (segments, used int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.live), len(f.used)
}

// LetGo closes segments whose memtables are flushed, and notes that those before start are useless
// since the edit at. It may have to wait for a sync.
func (f *Files) LetGo(flushed []*wal.Segment, start, at uint64) {
	files := map[uint64]*wal.Used{}
	for _, seg := range flushed {
		files[seg.Num] = seg.Retire()
	}
	f.mu.Lock()
	for num, u := range files {
		if u != nil && slices.Contains(f.live, num) {
			f.keep(num, u)
			delete(files, num)
		}
	}
	f.retire(start, at)
	f.mu.Unlock()
	for _, u := range files {
		if u != nil {
			u.Close() // the edit of somebody else, who came meanwhile, has retired it
		}
	}
}

func (f *Files) keep(num uint64, u *wal.Used) {
	if f.used == nil {
		f.used = map[uint64]*wal.Used{}
	}
	f.used[num] = u
}

// retire notes that segments before start are useless since the edit at. mu is held.
func (f *Files) retire(start, at uint64) {
	f.live = slices.DeleteFunc(f.live, func(num uint64) bool {
		if num >= start {
			return false
		}
		f.Obsolete.Add(obsolete.File{Path: f.Path(num), Edit: at, Log: f.used[num]})
		delete(f.used, num)
		return true
	})
}

// Remove removes files that are useless by now, but for those of segments that the next ones
// will use.
func (f *Files) Remove(remove func(path string) error, useless []obsolete.File) {
	for _, o := range useless {
		if o.Log != nil {
			if f.MayUse(o.Log.Size()) && o.Log.Cached() && f.Shelf.Put(o.Log) {
				continue
			}
			o.Log.Close()
		}
		o.Log = nil
		f.remove(remove, o)
	}
}

// Clear removes the files that wait to be used again, and reports whether there were any.
func (f *Files) Clear(remove func(path string) error) (any bool) {
	f.Shelf.Clear(func(path string) {
		any = true
		f.remove(remove, obsolete.File{Path: path})
	})
	return any
}

func (f *Files) remove(remove func(path string) error, o obsolete.File) {
	err := remove(o.Path)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil || gone && o.Tried(): // the error of the last time was wrong
		return
	case !gone:
		f.Obsolete.Again(o)
	}
	f.Failed(fmt.Errorf("remove obsolete file: %w", err))
}

// NeverSynced notes that a segment's file, of which Close has no use, is in the system's cache only.
func (f *Files) NeverSynced(num uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsynced = append(f.unsynced, f.Path(num))
}

// Seal notes that all segments before start are useless, whoever reads the manifest, and returns
// how the files are removed then: those whose space the device knows of, beside what goes on here.
func (f *Files) Seal(start uint64) (remove func(path string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retire(start, 0)
	unsynced := f.unsynced
	return func(path string) error {
		return vfs.RemoveSoon(f.FS, path, !slices.Contains(unsynced, path))
	}
}

// Close closes the files of segments that could have been used again, and are still there since
// closing the store has failed.
func (f *Files) Close() {
	f.Shelf.Clear(func(string) {})
	for _, u := range f.used {
		u.Close()
	}
	for _, o := range f.Obsolete.Take(^uint64(0)) {
		if o.Log != nil {
			o.Log.Close()
		}
	}
}
