package memtable

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/tombstone"
)

// rangeDeletes holds a table's range tombstones: a fragmented list of the first
// ones, and the few that came since.
type rangeDeletes struct {
	mu  sync.Mutex // guards adding and building, not reading
	all []tombstone.Tombstone
	now atomic.Pointer[tombstones]
}

type tombstones struct {
	built *tombstone.List
	n     int                   // tombstones in built
	tail  []tombstone.Tombstone // the rest, oldest first
	heap  int                   // bytes of the Go heap that all and built take
}

const maxUnbuilt = 16

// RangeDeleteBytes is about what one range delete takes of the Go heap in a
// memtable, its share of the built list included. If many lie in one another it is
// half as much again.
const RangeDeleteBytes = 256

func (r *rangeDeletes) add(ts tombstone.Tombstone, _ uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, ts)
	r.publish()
}

// publish makes the new tail readable; the list is rebuilt when the tail has
// grown to a quarter of it, which keeps the total work of n additions O(n log n).
func (r *rangeDeletes) publish() {
	next := &tombstones{}
	if old := r.now.Load(); old != nil {
		*next = *old
	}
	next.tail = r.all[next.n:]
	if len(next.tail) > max(maxUnbuilt, next.n/4) {
		next.built, next.n, next.tail = tombstone.Build(r.all), len(r.all), nil
	}
	next.heap = tombstone.Bytes*cap(r.all) + int(next.built.Memory())
	r.now.Store(next)
}

func (r *rangeDeletes) reset() {
	r.all = nil
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
func (t *Table) Cover(key []byte, vis base.Visibility) uint64 {
	r := t.ranges.now.Load()
	if r == nil {
		return 0
	}
	if limit := t.limit.Load(); limit != math.MaxUint32 {
		end := t.base + uint64(limit)
		vis.Snapshot, vis.PrivateLimit = min(vis.Snapshot, end-1), min(vis.PrivateLimit, end)
	}
	seq := r.built.Cover(key, vis)
	for _, ts := range r.tail {
		if ts.Seq > seq && vis.Sees(ts.Seq) && bytes.Compare(ts.Low, key) <= 0 && bytes.Compare(key, ts.High) < 0 {
			seq = ts.Seq
		}
	}
	return seq
}
