package tree

import (
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/wal"
)

// Memory is a memtable with the segment it indexes and the buffers both use. It
// has references; the last one gives the buffers back.
type Memory struct {
	*memtable.Table
	Seg *wal.Segment // nil after recovery
	Buf []byte       // arena

	Replayed int64 // bytes of log it was made from, by recovery
	Heap     int64 // bytes of RangeDeleteBytes that are counted to the budget

	touched int64 // how far of the arena is touched, or is about to be

	refs atomic.Int64 // and in the upper half how many of them are pins
	free func(*Memory)
}

// NewMemory makes a memtable for that many records over buf, its index in index,
// which has IndexBytes(len(buf), records) bytes. It has one reference: the caller's. free is
// called when the last one goes.
func NewMemory(seg *wal.Segment, buf, index []byte, records int, free func(*Memory)) *Memory {
	m := &Memory{Table: memtable.New(buf, index, records), Seg: seg, Buf: buf, free: free}
	m.refs.Store(1)
	return m
}

// touchAhead is how far before a huge page it is touched, at most.
const touchAhead = arena.HugeBytes * 7 / 8

// LogBytes returns how much log the memtable stands for, as far as it is written.
func (m *Memory) LogBytes() int64 {
	if m.Seg == nil {
		return m.Replayed
	}
	return m.Seg.Written()
}

// usedBytes is LogBytes with what is not written yet.
func (m *Memory) usedBytes() int64 {
	if m.Seg == nil {
		return m.Replayed
	}
	return m.Seg.Appended()
}

// Used returns how many bytes of its segment are used, or as large a part of it as its records are of
// those there is room for.
func (m *Memory) Used() int {
	return max(int(m.usedBytes()), int(int64(m.Seg.Capacity())*int64(m.Len())/int64(m.Records())))
}

// mayTake returns how much log the memtable may come to stand for.
func (m *Memory) mayTake() int64 {
	if m.Seg == nil {
		return m.Replayed
	}
	return int64(m.Seg.Capacity())
}

// mapped reports whether the memtable is, or was, the mapping of its log.
func (m *Memory) mapped() bool { return m.Seg != nil && m.Seg.Mapped() }

// Fetch is for somebody who is about to read all of the memtable: the system may have dropped pages of a mapped log
// where memory is scarce.
func (m *Memory) Fetch() {
	if m.Seg != nil {
		m.Seg.Fetch()
	}
}

// AwaitsLink reports whether the segment of an empty memtable waits for its link to be
// written: with the commits behind it, if there are any. Until then it must stay open.
func (m *Memory) AwaitsLink() bool {
	if m.Len() > 0 || m.Seg == nil {
		return false
	}
	return m.Seg.Written() < m.Seg.Appended()
}

// AppendRows appends what a merge reads of the memtable, to which nothing is added any more: its rows, in order, and its
// range deletes.
func (m *Memory) AppendRows(rows []base.Iterator, tombs []*tombstone.List) ([]base.Iterator, []*tombstone.List) {
	m.Sort()
	return m.Iterators(rows), append(tombs, tombstone.Build(m.RangeDeletes()))
}

// Untouched returns what of the arena somebody should touch now (arena.Touch), beside the
// commits: the huge page behind the one that commits have come to. It returns nil if there
// is none, and each only once. The commit that touched it first would wait for it, 4.3 ms
// where memory is fresh. Zeros go ahead of commits to a mapped arena. The memtable's writer
// calls it.
func (m *Memory) Untouched() []byte {
	if m.Seg.Mapped() {
		return nil
	}
	tail := m.Seg.Appended()
	next := tail&^(arena.HugeBytes-1) + arena.HugeBytes
	if next-tail > touchAhead || next < m.touched || next >= int64(len(m.Buf)) {
		return nil
	}
	m.touched = min(next+arena.HugeBytes, int64(len(m.Buf)))
	return m.Buf[next:m.touched]
}

// Ref takes a reference. The caller holds one, or is inside the epoch.
func (m *Memory) Ref() { m.refs.Add(1) }

// Unref drops a reference.
func (m *Memory) Unref() {
	if m.refs.Add(-1) == 0 {
		m.free(m)
	}
}

// Pins is told how many bytes slices that were handed out keep in memory.
type Pins interface {
	// Pin reports whether n bytes more may be kept.
	Pin(n int64) bool
	// Unpin ends what Pin counted.
	Unpin(n int64)
}

const (
	onePin  = 1<<32 + 1 // in refs: it is a reference, too
	aPinned = 1 << 32   // refs of who is pinned are not less
)

// Pin takes a reference for slices of m that are handed out, unless that were too much for p,
// for which m counts once, however many have pinned it. The caller holds a reference, or is
// inside the epoch.
func (m *Memory) Pin(p Pins) bool {
	for {
		n := m.refs.Load()
		if n < aPinned && !p.Pin(int64(len(m.Buf))) {
			return false
		}
		if m.refs.CompareAndSwap(n, n+onePin) {
			return true
		}
		if n < aPinned {
			p.Unpin(int64(len(m.Buf)))
		}
	}
}

// Unpin drops the reference of a Pin.
func (m *Memory) Unpin(p Pins) {
	n := m.refs.Add(-onePin)
	if n < aPinned {
		p.Unpin(int64(len(m.Buf)))
	}
	if n == 0 {
		m.free(m)
	}
}

// Buffers is where memtables get their memory, and take it back to.
type Buffers struct {
	*arena.Pool
	budget *arena.Budget
	size   atomic.Int64 // of the last arena
	ending sync.RWMutex // held for reading by whoever ends a mapping
}

// NewBuffers returns Buffers whose memory counts toward b.
func NewBuffers(b *arena.Budget) *Buffers {
	return &Buffers{Pool: arena.NewPool(b, arena.ClassMemtable).Leave(), budget: b}
}

// Memory makes a memtable for that many records over a segment of size bytes, which create
// makes. It takes its arena from buffer, unless that is its file. With touch a large index is
// brought into memory first.
func (b *Buffers) Memory(size, records int, touch bool, create func(buffer func() ([]byte, error)) (*wal.Segment, error)) (*Memory, error) {
	b.size.Store(int64(size))
	index, err := b.Get(IndexBytes(size, records))
	if err != nil {
		return nil, err
	}
	if touch && len(index) > arena.HugeBytes {
		arena.Touch(index)
	}
	var buf []byte
	seg, err := create(func() (_ []byte, err error) {
		buf, err = b.Get(size)
		return buf, err
	})
	if err != nil {
		b.Put(buf)
		b.Put(index)
		return nil, err
	}
	if seg.Mapped() {
		b.budget.Add(arena.ClassMemtable, int64(size))
		b.Shed(max(size, len(index)+1)) // arenas of others, or of the log that was replayed
	}
	return NewMemory(seg, seg.Buffer(), index, records, b.Free), nil
}

// Over makes a memtable for that many records over bytes that somebody else has mapped. done is called when nobody
// reads it any more.
func (b *Buffers) Over(buf []byte, records int, done func()) (*Memory, error) {
	size := int64(len(buf))
	index, err := b.Get(IndexBytes(len(buf), records))
	if err != nil {
		return nil, err
	}
	b.budget.Add(arena.ClassMemtable, size)
	m := NewMemory(nil, buf, index, records, func(m *Memory) {
		b.budget.Add(arena.ClassMemtable, -size-m.Heap)
		b.Put(m.Table.Memory())
		b.unmap(done)
	})
	m.Replayed = size
	return m, nil
}

// unmap calls what may end a mapping, which every processor is told: that takes 40 us, or milliseconds if it is
// large.
func (b *Buffers) unmap(end func()) {
	b.ending.RLock()
	go func() {
		end()
		b.ending.RUnlock()
	}()
}

// CountRangeDeletes counts what the range deletes of an active memtable take of the Go heap, besides its
// arena and its index. At most a quarter of the arena, and what one commit adds: see memtable.Table.Room.
// Its writer calls it.
func (b *Buffers) CountRangeDeletes(m *Memory) {
	n := int64(m.RangeDeleteBytes())
	b.budget.Add(arena.ClassMemtable, n-m.Heap)
	m.Heap = n
}

// Free takes back the memory of a memtable that nobody reads. It is for the next one, unless
// segments have outgrown it.
func (b *Buffers) Free(m *Memory) {
	b.budget.Add(arena.ClassMemtable, -m.Heap)
	put := b.Put
	if next := int(b.size.Load()); next > 0 && !arena.Serves(len(m.Buf), next) {
		put = b.Discard
	}
	if m.mapped() {
		b.budget.Add(arena.ClassMemtable, -int64(len(m.Buf)))
		b.unmap(m.Seg.Unmap)
	} else {
		put(m.Buf)
	}
	put(m.Table.Memory())
}

// AwaitUnmapped returns when the mappings of memtables that were taken back so far have ended:
// until then the space of their files is not free.
func (b *Buffers) AwaitUnmapped() {
	b.ending.Lock()
	defer b.ending.Unlock()
}

// IndexBytes returns the size of the index of a memtable of that many records over an
// arena of size bytes, in whole pages.
func IndexBytes(size, records int) int {
	return (memtable.Layout(records) + memtable.CopyBytes(records, size) + 4095) &^ 4095
}
