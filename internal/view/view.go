package view

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/tree"
)

// View is what readers see of an open store. Init makes it.
type View struct {
	// visible is the greatest sequence readers may see. It only grows (E2).
	visible atomic.Uint64
	state   atomic.Pointer[tree.State]
	closed  atomic.Bool

	// Order is that of the State's memtables, for scans.
	Order memtable.Stack
	rows  rows
	Gaps  Gaps
	count func(delta int64) // bytes of the Go heap

	Epochs  *epoch.Domain // who reads now, and what is freed when they no longer do
	readers sync.Pool     // *Reader
	made    *made

	oldest oldest

	mayPin int64        // bytes
	pinned atomic.Int64 // bytes kept in memory by slices handed out

	open     atomic.Int64  // calls in progress that Hold; transactions are known by their snapshots
	openDone chan struct{} // who waits for them should look again

	// What another process writes is brought here by catchUp, before a read begins; nil: this one writes. The
	// tables of such a store are merged without regard to who reads here, so a State and the sequence that may
	// be seen in it go together: they are replaced and taken under pair.
	catchUp       func() error
	catchUpTables func() error // is catchUp, and brings the tables of now, too
	pair          sync.Mutex
	dropped       bool // there will be no State any more; guarded by pair
}

// orderShare: orders for scans take up to one part in so many of what slices may pin, each.
const orderShare = 4

// Init makes v the view of a store of which nothing is seen yet. Slices handed out may
// keep as many bytes in memory as mayPin, and the order of memtables, like sorted rows, takes
// up to a quarter of that, which it tells count.
func (v *View) Init(mayPin int64, count func(delta int64)) {
	v.mayPin, v.count = mayPin, count
	v.Order.Init(mayPin/orderShare, count, v.oldestSnapshot)
	v.Gaps.Longest = LongestGap(mayPin)
	v.Epochs = epoch.New()
	v.made = &made{epochs: v.Epochs, all: make(map[weak.Pointer[Reader]]lent)}
	v.readers.New = func() any { return v.made.newReader() }
	v.openDone = make(chan struct{}, 1)
}

// oldest is what oldestSnapshot has found out.
type oldest struct {
	mu   sync.Mutex
	seq  uint64
	uses int // it may be returned so many more times
	open []uint64
}

// lookShare: where thousands of snapshots are open, to look at one costs as much as an eighth of what whoever asks
// does, which is to sort a few records more.
const lookShare = 8

// oldestSnapshot returns a sequence that everybody sees who has a snapshot, or begins one later: the visible one is
// loaded first (see epoch.Domain.Snapshots). What was so once stays so: it looks again the more seldom the more
// snapshots are open.
func (v *View) oldestSnapshot() uint64 {
	o := &v.oldest
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uses--; o.uses >= 0 {
		return o.seq
	}
	o.seq = v.visible.Load()
	o.open = v.Epochs.Snapshots(o.open[:0])
	for _, seq := range o.open {
		o.seq = min(o.seq, seq)
	}
	o.uses = len(o.open) / lookShare
	return o.seq
}

// Visible returns the greatest sequence that may be seen.
func (v *View) Visible() uint64 { return v.visible.Load() }

// Show lets readers see everything up to seq.
func (v *View) Show(seq uint64) { v.visible.Store(seq) }

// State returns the current State, nil once the store is closed. To read its memtables and
// tables the caller is inside the epoch, or holds what keeps them; to look at what it says
// of them nothing is needed.
func (v *View) State() *tree.State { return v.state.Load() }

// Acquire returns the current State with a reference the caller must drop.
func (v *View) Acquire(slot *epoch.Slot) *tree.State {
	slot.Enter()
	rs := v.state.Load()
	rs.Ref()
	slot.Exit()
	return rs
}

// Follow makes v the view of a store that another process may write: before a read begins catchUp is
// called, before Verify looks at tables catchUpTables, and what they return is the error of that. It is called before
// anybody reads.
func (v *View) Follow(catchUp, catchUpTables func() error) {
	v.catchUp, v.catchUpTables = catchUp, catchUpTables
}

// Replace is Publish of a State, if it is not nil, and Show of a sequence in one, for a view that follows.
func (v *View) Replace(rs *tree.State, seq uint64) {
	v.pair.Lock()
	defer v.pair.Unlock()
	switch {
	case !v.dropped && rs != nil:
		v.Publish(rs)
	case rs != nil:
		v.Epochs.Later(rs.Unref)
	}
	v.Show(seq)
}

// now returns the State, and then the visible sequence (E7), of one moment if the view follows. The caller is
// inside the epoch.
func (v *View) now() (rs *tree.State, seq uint64) {
	if v.catchUp != nil {
		v.pair.Lock()
		defer v.pair.Unlock()
	}
	rs = v.state.Load()
	return rs, v.visible.Load()
}

// Publish makes rs the current State. Its reference becomes the view's. The one before is
// given back by whoever calls Epochs.Collect next, and not here, where locks are held: to
// free tables and their pages takes milliseconds.
func (v *View) Publish(rs *tree.State) {
	if old := v.state.Swap(rs); old != nil {
		v.Epochs.Later(old.Unref)
	}
	v.Order.Keep(rs.OldestMemtable())
	v.keepSorted(rs)
}

// Drop leaves no State, and waits until nobody reads the last one.
func (v *View) Drop() {
	v.pair.Lock()
	v.dropped = true
	v.Publish(nil)
	v.pair.Unlock()
	v.Epochs.Drain()
}

// Hold keeps Close waiting until Release: for commits, and what else has no snapshot.
func (v *View) Hold() error {
	v.open.Add(1)
	if v.closed.Load() {
		v.Release()
		return base.ErrClosed
	}
	return nil
}

// Release ends what Hold began.
func (v *View) Release() {
	v.open.Add(-1)
	v.released()
}

// released wakes Shut, if it is there. Whoever calls it has let go of the store before: either Shut's look comes
// after that, or closed is set by now.
func (v *View) released() {
	if v.closed.Load() {
		select {
		case v.openDone <- struct{}{}:
		default:
		}
	}
}

// Held returns how many hold the store: by Hold, or by a snapshot.
func (v *View) Held() int64 { return v.open.Load() + v.Epochs.Holders() }

// lookAgain is how long Shut waits before it looks by itself: a transaction that was forgotten tells nobody
// when the collector has found it.
const lookAgain = 100 * time.Millisecond

// Shut turns away whoever comes from now on, and waits until nobody holds the store.
func (v *View) Shut() {
	v.closed.Store(true)
	for v.Held() > 0 {
		select {
		case <-v.openDone:
		case <-time.After(lookAgain):
			v.made.collected()
		}
	}
}

// Closed reports whether Shut has been called.
func (v *View) Closed() bool { return v.closed.Load() }

// Pin counts n bytes as kept in memory by slices handed out, unless too many are
// already.
func (v *View) Pin(n int64) bool {
	if v.pinned.Load()+n > v.mayPin {
		return false
	}
	v.pinned.Add(n)
	return true
}

// Unpin ends what Pin counted.
func (v *View) Unpin(n int64) { v.pinned.Add(-n) }

// Retire calls free once nobody who reads now still does.
func (v *View) Retire(free func()) { v.Epochs.Retire(free) }

// TableOf returns the youngest table that is wanted, with a reference, or nil. Inside the epoch
// the state holds its tables, so that one more reference may be taken.
func (v *View) TableOf(wanted func(*tree.Handle) bool) *tree.Handle {
	r := v.Reader()
	r.Slot.Enter()
	defer v.Leave(r)
	rs := v.State()
	if rs == nil {
		return nil
	}
	for _, h := range rs.Handles {
		if wanted(h) {
			h.Ref()
			return h
		}
	}
	return nil
}
