package memtable

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/tombstone"
)

// rangeDeletes holds a table's range tombstones: lists of the first ones, and the few that came since.
type rangeDeletes struct {
	mu    sync.Mutex // guards all, which one goroutine changes
	all   []tombstone.Tombstone
	shown int // how many of all are in now
	now   atomic.Pointer[tombstones]
}

// tombstones are those of a table at one moment.
type tombstones struct {
	lists []listed
	tail  []tombstone.Tombstone          // the rest, oldest first
	last  atomic.Pointer[tombstone.List] // of the tail, once a scan has made it
	heap  int                            // bytes of the Go heap that all and the lists take
}

// listed is a list of n tombstones that came one after another.
type listed struct {
	*tombstone.List
	n int
}

// What is behind the lists becomes one when there are more than maxUnbuilt, together with the lists before it that hold
// at most listGrowth times as many, as long as it does not get more than mostListed. So there are few lists for who
// looks at all of them, as every read does: log n, and one more for each mostListed. Each tombstone is put into a list
// up to five times for each of the log n. Those of one commit come together: it waits for one list to be made, of
// mostListed at most, or of its own and maxUnbuilt more where these are more.
const (
	maxUnbuilt = 16
	listGrowth = 4
	mostListed = 8 << 10
)

// RangeDeleteBytes is about what one range delete takes of the Go heap in a
// memtable, its share of the built list included. If many lie in one another it is
// half as much again.
const RangeDeleteBytes = 256

// add adds one, which is readable after publish.
func (r *rangeDeletes) add(ts tombstone.Tombstone) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, ts)
}

// publish makes what was added readable.
func (r *rangeDeletes) publish() {
	if r.shown == len(r.all) {
		return
	}
	r.shown = len(r.all)
	next := new(tombstones)
	if old := r.now.Load(); old != nil {
		next.lists = old.lists
	}
	k, n := len(next.lists), len(r.all)
	for _, l := range next.lists {
		n -= l.n
	}
	if n > maxUnbuilt {
		for ; k > 0 && next.lists[k-1].n <= min(listGrowth*n, mostListed-n); k-- {
			n += next.lists[k-1].n
		}
		next.lists = append(next.lists[:k:k], listed{tombstone.Build(r.all[len(r.all)-n:]), n})
		n = 0
	}
	next.tail = r.all[len(r.all)-n:]
	next.heap = tombstone.Bytes * cap(r.all)
	for _, l := range next.lists {
		next.heap += int(l.Memory())
	}
	r.now.Store(next)
}

func (r *rangeDeletes) reset() {
	r.all, r.shown = nil, 0
	r.now.Store(nil)
}

// HasRangeDeletes reports whether the table holds any range tombstone.
func (t *Table) HasRangeDeletes() bool { return t.ranges.now.Load() != nil }

// RangeDeleteBytes returns how many bytes of the Go heap the range deletes take,
// besides the records that they are as well.
func (t *Table) RangeDeleteBytes() int {
	if r := t.ranges.now.Load(); r != nil {
		return r.heap
	}
	return 0
}

// RangeDeletes returns the table's range tombstones in order of insertion.
func (t *Table) RangeDeletes() []tombstone.Tombstone {
	t.ranges.mu.Lock()
	defer t.ranges.mu.Unlock()
	all := t.ranges.all
	for len(all) > 0 && all[len(all)-1].Seq > t.LastSeq() {
		all = all[:len(all)-1]
	}
	return all[:len(all):len(all)]
}

// Cover returns the greatest sequence that vis sees of a range tombstone covering
// key, 0 if there is none.
func (t *Table) Cover(key []byte, vis base.Visibility) (seq uint64) {
	r := t.ranges.now.Load()
	if r == nil {
		return 0
	}
	vis = t.limited(vis)
	for _, l := range r.lists {
		seq = max(seq, l.Cover(key, vis))
	}
	for _, ts := range r.tail {
		if ts.Seq > seq && vis.Sees(ts.Seq) && bytes.Compare(ts.Low, key) <= 0 && bytes.Compare(key, ts.High) < 0 {
			seq = ts.Seq
		}
	}
	return seq
}

// Covers answers Cover for keys that mostly stand close to each other. It is for one goroutine, and for who sees none of
// the range tombstones that come later.
type Covers struct {
	*tombstone.Cursor
	t *Table
}

// Cover is Table.Cover.
func (c *Covers) Cover(key []byte, vis base.Visibility) uint64 {
	return c.Cursor.Cover(key, c.t.limited(vis))
}

// Covers returns one over the range tombstones there are.
func (t *Table) Covers() *Covers {
	var lists []*tombstone.List
	r := t.ranges.now.Load()
	if r == nil {
		return &Covers{tombstone.NewCursor(), t}
	}
	for _, l := range r.lists {
		lists = append(lists, l.List)
	}
	if len(r.tail) > 0 {
		if r.last.Load() == nil {
			r.last.Store(tombstone.Build(r.tail))
		}
		lists = append(lists, r.last.Load())
	}
	return &Covers{tombstone.NewCursor(lists...), t}
}

// limited returns what vis sees of a table that was truncated.
func (t *Table) limited(vis base.Visibility) base.Visibility {
	if limit := t.limit.Load(); limit != math.MaxUint32 {
		end := t.base + uint64(limit)
		vis.Snapshot, vis.PrivateLimit = min(vis.Snapshot, end-1), min(vis.PrivateLimit, end)
	}
	return vis
}
