package view

import (
	"errors"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/sorted"
	"github.com/cairndb/cairn/internal/tree"
)

// rows puts the rows of the State in order beforehand, when scans have walked so many from
// several sources that this costs no more than they did.
type rows struct {
	now      atomic.Pointer[sorted.Rows]
	walked   atomic.Int64 // rows that scans have walked since rows were last sorted
	due      atomic.Int64 // when to look at that
	building atomic.Bool
}

// Bounds of when rows are sorted.
const (
	leastWalked = 1 << 10 // rows
	walkedShare = 6       // walked are one part in so many of the entries, which take 100 ns each to sort, and 200 to 600 more to walk unsorted
	laterShare  = 8       // of the rows there are: fewer commits since then are no reason to sort them again
)

// Sorted returns the rows of a State sorted beforehand, for a snapshot, nil if there are none.
func (v *View) Sorted(rs *tree.State, snapshot uint64) *sorted.Rows {
	if r := v.rows.now.Load(); r != nil && r.Snapshot <= snapshot && r.Of(rs) {
		return r
	}
	return nil
}

// NoteWalked counts n rows that a scan has put together from several sources, and reports
// whether it is time to SortRows.
func (v *View) NoteWalked(n int) bool {
	walked := v.rows.walked.Add(int64(n))
	if walked < v.rows.due.Load() {
		return false
	}
	rs := v.State()
	if rs == nil {
		return false
	}
	entries := rs.Entries()
	due := max(entries/walkedShare, leastWalked)
	v.rows.due.Store(due)
	switch r := v.Sorted(rs, v.Visible()); {
	case walked < due:
		return false
	case len(rs.Runs) == 0 || len(rs.Runs)+len(rs.Layers) < 2 || entries > int64(v.mostRows()),
		r != nil && v.Visible()-r.Snapshot < uint64(r.Len()/laterShare):
		v.rows.walked.Store(0)
		return false
	}
	return v.rows.building.CompareAndSwap(false, true)
}

// mostRows is how many rows are sorted, at most.
func (v *View) mostRows() int { return int(v.mayPin / orderShare / sorted.RowBytes) }

// errReplaced ends the sorting of rows of a State whose tables are no longer those of the store.
var errReplaced = errors.New("view: the state has been replaced")

// SortRows sorts the rows there are, once NoteWalked has reported true. stop is asked whether to
// go on.
func (v *View) SortRows(stop func() error) {
	defer v.rows.building.Store(false)
	v.rows.walked.Store(0)
	r := v.Reader()
	defer v.Done(r)
	r.Slot.Enter()
	rs, seq := v.now() // the State before the sequence (E7)
	rs.Ref()
	r.Slot.Exit()
	defer rs.Unref()
	b := sorted.Builder{Order: &v.Order, Slot: r.Slot, Most: v.mostRows(), Stop: func() error {
		if now := v.State(); now == nil || now.Version != rs.Version {
			return errReplaced
		}
		return stop()
	}}
	if sorted := b.Build(rs, seq); sorted != nil {
		v.setSorted(v.rows.now.Load(), sorted)
		v.keepSorted(v.State()) // it may have been replaced meanwhile
	}
}

// setSorted puts next, which may be nil, in the place of old, if that is still there.
func (v *View) setSorted(old, next *sorted.Rows) {
	if !v.rows.now.CompareAndSwap(old, next) {
		return
	}
	if old != nil {
		old.Drop()
	}
	v.count(int64(next.Len()-old.Len()) * sorted.RowBytes)
}

// keepSorted lets go of sorted rows that are not those of a State.
func (v *View) keepSorted(rs *tree.State) {
	if r := v.rows.now.Load(); r != nil && !r.Of(rs) {
		v.setSorted(r, nil)
	}
}
