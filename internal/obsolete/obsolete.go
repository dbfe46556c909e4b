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

	"github.com/cairndb/cairn/internal/wal"
)

// File is one such file.
type File struct {
	Path   string
	Edit   uint64       // ordinal of the edit in the manifest; 0: any
	Closed *atomic.Bool // nobody reads it; nil: nobody did
	Log    *wal.Used    // of a log segment that may be used again; nil: it is closed
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

// Take returns the files that may be removed now that records cover all edits up to
// sealed, and forgets them.
func (o *Files) Take(sealed uint64) (files []File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var later []File
	for _, f := range o.list {
		if f.Edit <= sealed && (f.Closed == nil || f.Closed.Load()) {
			files = append(files, f)
		} else {
			later = append(later, f)
		}
	}
	o.list = later
	return files
}
