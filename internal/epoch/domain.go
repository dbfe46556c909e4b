package epoch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// scanShare bounds the cost of Retire: it scans the slots only once per
// 1/scanShare of their number, so that ten thousand open snapshots do not make
// each Retire a walk over all of them. Collect, which evictions of pages call too, is not
// bounded so: it scans at each call while something waits.
const scanShare = 64

// fewRetired functions are run without allocating anything for them.
const fewRetired = 4

// queueKeep is the greatest capacity an empty queue keeps.
const queueKeep = 1024

// Domain is a set of readers and the objects that wait for them to leave.
// All methods may be called from any goroutine.
type Domain struct {
	global   atomic.Uint64 // the epoch; starts at 1, advances with each Retire and Used
	_        [slotBytes - 8]byte
	registry registry
	watched  atomic.Uint64 // the epoch that Used began last
	pending  atomic.Int64  // functions retired and not yet finished
	mu       struct {
		sync.Mutex
		queue     []retired // by epoch, oldest first
		head      int       // queue[:head] has been taken
		sinceScan int64     // functions retired since the slots were last scanned
	}
}

// retired is a function that waits for the readers of its epoch and before.
type retired struct {
	epoch uint64
	free  func()
}

// New returns a domain without participants.
func New() *Domain {
	d := &Domain{}
	d.global.Store(1)
	d.registry.chunkWithRoom(d) // not when the first reader comes, who is in a hurry
	return d
}

// Register returns a slot for a new participant, outside and without a
// snapshot. It takes a mutex; keep the slot and reuse it.
func (d *Domain) Register() *Slot { return d.registry.register(d) }

// Retire runs free, exactly once, when every participant that is inside at this
// moment has left: now, on this goroutine, if there is none, otherwise in a
// later Retire or Collect, on theirs. What free releases must already be
// unreachable for participants that enter from now on. free runs outside the
// domain's locks; it must not panic and must not expect the caller's locks, and
// the caller should hold none that a free function could take.
func (d *Domain) Retire(free func()) {
	d.pending.Add(1)
	d.mu.Lock()
	d.mu.queue = append(d.mu.queue, retired{epoch: d.global.Add(1) - 1, free: free})
	d.mu.sinceScan++
	var few [fewRetired]retired
	batch := few[:0]
	if d.mu.sinceScan*scanShare >= d.registry.count.Load() {
		batch = d.takeReady(batch)
	}
	d.mu.Unlock()
	d.run(batch)
}

// Later is Retire for a caller who holds locks that others wait for, or that free takes: it
// runs nothing. Somebody has to call Collect afterwards.
func (d *Domain) Later(free func()) {
	d.pending.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.queue = append(d.mu.queue, retired{epoch: d.global.Add(1) - 1, free: free})
}

// Collect runs every retired function whose readers have left. It never waits.
func (d *Domain) Collect() {
	if d.pending.Load() == 0 {
		return
	}
	var few [fewRetired]retired
	d.mu.Lock()
	batch := d.takeReady(few[:0])
	d.mu.Unlock()
	d.run(batch)
}

// Drain runs everything retired. Nobody reads any more, or all are about to stop.
func (d *Domain) Drain() {
	for d.Collect(); d.Pending() > 0; d.Collect() {
		time.Sleep(50 * time.Microsecond)
	}
}

// Pending returns how many retired functions have not finished running.
func (d *Domain) Pending() int { return int(d.pending.Load()) }

// Participants returns how many slots are registered.
func (d *Domain) Participants() int { return int(d.registry.count.Load()) }

// takeReady moves the functions that may run to dst. d.mu is held, so that everything in
// the queue was retired before the scan.
func (d *Domain) takeReady(dst []retired) []retired {
	d.mu.sinceScan = 0
	oldest := d.oldestInside()
	waiting := d.mu.queue[d.mu.head:]
	n := 0
	for n < len(waiting) && waiting[n].epoch < oldest {
		n++
	}
	if n == 0 {
		return dst
	}
	dst = append(dst, waiting[:n]...)
	clear(waiting[:n])
	d.mu.head += n
	d.trimQueue()
	return dst
}

// trimQueue gives back the taken part of the queue once it is half of it, so
// that its cost per function is constant. d.mu is held.
func (d *Domain) trimQueue() {
	switch {
	case d.mu.head == len(d.mu.queue) && cap(d.mu.queue) > queueKeep:
		d.mu.queue, d.mu.head = nil, 0
	case d.mu.head*2 >= len(d.mu.queue):
		d.mu.queue, d.mu.head = slices.Delete(d.mu.queue, 0, d.mu.head), 0
	}
}

// oldestInside returns the least epoch of a participant inside, the greatest
// number if there is none.
func (d *Domain) oldestInside() uint64 {
	oldest := ^uint64(0)
	for s := range d.registry.all() {
		if e := s.local.Load(); e&inside != 0 {
			oldest = min(oldest, e>>1)
		}
	}
	return oldest
}

func (d *Domain) run(batch []retired) {
	for i := range batch {
		batch[i].free()
		d.pending.Add(-1)
	}
}

// Used reports whether a participant has been inside since the last call, as far as that is known:
// one that entered while that call ran may be reported again.
func (d *Domain) Used() (used bool) {
	since := d.watched.Swap(d.global.Add(1))
	for s := range d.registry.all() {
		if e := s.local.Load(); e&inside != 0 || e>>1 >= since && e != 0 {
			used = true
		}
	}
	return used
}

// Holders returns how many snapshots are open or being begun.
func (d *Domain) Holders() (n int64) {
	for s := range d.registry.all() {
		if s.snapshot.Load() != snapshotNone {
			n++
		}
	}
	return n
}

// Snapshots appends to dst the sequence of every snapshot that is open, and
// returns it: in no order, though where thousands were begun one after another,
// and few have ended since, nearly in that, which is soon sorted. Pending registrations are waited out. A snapshot that
// is not among them, and still open or begun later by BeginSnapshot, sees at
// least what a load of the visible sequence before this call returned.
func (d *Domain) Snapshots(dst []uint64) []uint64 {
	for s := range d.registry.all() {
		if seq, ok := s.published(); ok {
			dst = append(dst, seq)
		}
	}
	return dst
}
