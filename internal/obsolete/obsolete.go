// Package obsolete keeps the files that an edit of the manifest has made useless until
// they may be removed.
//
// # Invariants
//
// A file is removed once a later synced record of the manifest covers the edit that made
// it useless (invariant E5 of docs/INVARIANTS.md) and nobody reads it.
//
// # Concurrency
//
// All methods may be called at once.
package obsolete

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/wal"
)

// File is one such file.
type File struct {
	Path   string
	Edit   uint64       // ordinal of the edit in the manifest; 0: any
	Closed *atomic.Bool // nobody reads it; nil: nobody did
	Size   int64        // of a table
	Log    *wal.Used    // of a log segment that may be used again; nil: it is closed

	wait  time.Duration // between the last two attempts to remove it
	again time.Time     // not before
}

// Files are those that are still there. The zero value has none.
type Files struct {
	mu   sync.Mutex
	list []File
}

// Add notes that f is useless.
func (o *Files) Add(f File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, f)
}

// How long a file is left alone that could not be removed: the first time, and at most.
const (
	firstWait = 100 * time.Millisecond
	mostWait  = time.Minute
)

// Again notes that f could not be removed: it is to be tried again, after a while.
func (o *Files) Again(f File) {
	f.wait = min(max(2*f.wait, firstWait), mostWait)
	f.again = time.Now().Add(f.wait)
	o.Add(f)
}

// Tried reports whether it was tried to remove f before.
func (f *File) Tried() bool { return f.wait > 0 }

// Hurry has files that are left alone for a while tried once more now.
func (o *Files) Hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		o.list[i].again = time.Time{}
	}
}

// Waiting reports whether files wait for a record later than the edit sealed.
func (o *Files) Waiting(sealed uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.list {
		if f.Edit > sealed {
			return true
		}
	}
	return false
}

// TableBytes returns how much the tables take that are still there.
func (o *Files) TableBytes() (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.list {
		n += f.Size
	}
	return n
}

// Take returns the files that may be removed now that records cover all edits up to
// sealed, and forgets them.
func (o *Files) Take(sealed uint64) (files []File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var later []File
	for _, f := range o.list {
		if f.Edit <= sealed && (f.Closed == nil || f.Closed.Load()) && !time.Now().Before(f.again) {
			files = append(files, f)
		} else {
			later = append(later, f)
		}
	}
	o.list = later
	return files
}
