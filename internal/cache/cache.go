package cache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
)

// errAborted is what those who wait for a read get if it panicked.
var errAborted = errors.New("cache: the read of the page was aborted")

// Cache holds decoded pages off-heap within a memory budget that it may share.
// All methods may be called from any goroutine.
type Cache struct {
	budget  *arena.Budget
	dom     *epoch.Domain
	heap    *arena.Heap
	flights flights
	scarce  atomic.Bool // see SetScarce

	mu struct {
		sync.Mutex
		clock  clock
		born   uint8 // deals pages out to the shards of pinned
		closed bool
	}

	pinned   pinCounter
	zombie   atomic.Int64
	retiring atomic.Int64
	prepared atomic.Int64 // bytes of pages that are in no slot yet
	ahead    atomic.Int64 // see TakeAhead

	misses, fills, failures, evictions, overcommits atomic.Uint64
}

// New returns an empty cache whose pages count as arena.ClassPages of budget
// and are reclaimed through dom.
func New(budget *arena.Budget, dom *epoch.Domain) *Cache {
	c := &Cache{
		budget: budget,
		dom:    dom,
		heap:   arena.NewHeap(budget, arena.ClassPages),
	}
	c.heap.Keep(budget.Limit() / preparedDivisor)
	c.flights.init()
	c.mu.clock.init(c.soft() / 2)
	return c
}

// Register returns a new participant of the cache's epoch domain, which the caller releases.
func (c *Cache) Register() *epoch.Slot { return c.dom.Register() }

// SetScarce says whether the pages of all tables would take more than the budget. Then only
// those stay that are asked for again: see the package comment.
func (c *Cache) SetScarce(yes bool) { c.scarce.Store(yes) }

// Scarce reports what SetScarce said.
func (c *Cache) Scarce() bool { return c.scarce.Load() }

// Load returns the page of s, or nil if it is not resident, and marks it as
// recently used. The caller must be inside an epoch of the cache's domain; the
// page is valid until it leaves, unless pinned. Load takes no lock, allocates
// nothing and writes shared memory only to set a reference bit that was clear.
func (c *Cache) Load(s *Slot) *Page {
	p := s.p.Load()
	if p != nil {
		p.touch()
	}
	return p
}

// Peek is Load of a page that will not count as used for it.
func (s *Slot) Peek() *Page { return s.p.Load() }

// Fill returns the page of s, reading it if it is not resident: it makes room,
// calls read with size bytes of unspecified contents to overwrite, and publishes
// the page. Of concurrent callers for a slot one reads and all get its result.
// An error of read is returned as it is, and nothing is remembered of it. After
// Close it is base.ErrClosed. As with Load, the caller must be inside an epoch,
// and should leave soon: what was evicted meanwhile cannot be reused before.
func (c *Cache) Fill(s *Slot, size int, read func(dst []byte) error) (*Page, error) {
	return c.share(s, size, false, read)
}

// FillOnce is Fill for a page of which one row is asked for.
func (c *Cache) FillOnce(s *Slot, size int, read func(dst []byte) error) (*Page, error) {
	return c.share(s, size, c.scarce.Load(), read)
}

// share returns the page of s; who reads it shares it with who asks meanwhile.
func (c *Cache) share(s *Slot, size int, once bool, read func(dst []byte) error) (*Page, error) {
	if p := c.Load(s); p != nil {
		return p, nil
	}
	c.misses.Add(1)
	for {
		f, leader := c.flights.join(s)
		if leader {
			return c.lead(f, s, size, once, read)
		}
		<-f.done
		if f.err != nil {
			return nil, f.err
		}
		// The page is taken from the slot, never from the flight: invariant 4.
		if p := c.Load(s); p != nil {
			return p, nil
		}
	}
}

// lead carries out the flight f for slot s.
func (c *Cache) lead(f *flight, s *Slot, size int, once bool, read func(dst []byte) error) (p *Page, err error) {
	defer c.flights.finish(s, f)
	f.err = errAborted
	p, err = c.fill(s, size, once, read)
	f.err = err
	return p, err
}

// fill reads and publishes the page of s. The caller leads the flight of s, so
// nobody else publishes there.
func (c *Cache) fill(s *Slot, size int, once bool, read func(dst []byte) error) (*Page, error) {
	if p := c.Load(s); p != nil {
		return p, nil
	}
	b, err := c.allocate(size)
	if err != nil {
		return nil, err
	}
	published := false
	defer func() {
		if !published {
			c.release(b)
		}
	}()
	if err := read(b[:size:size]); err != nil {
		c.failures.Add(1)
		return nil, err
	}
	p := &Page{data: b[:size:size], cache: c, slot: s, cost: int64(cap(b)), once: once}
	published = c.publish(p)
	if !published {
		return nil, base.ErrClosed
	}
	c.fills.Add(1)
	return p, nil
}

// publish makes p resident, unless the cache is closed.
func (c *Cache) publish(p *Page) bool {
	ok, surplus := c.admit(p)
	c.evictions.Add(surplus.n)
	c.retire(surplus)
	return ok
}

// admit gives p its place, unless the cache is closed, and unlinks what memory is too scarce
// for.
func (c *Cache) admit(p *Page) (ok bool, surplus unlinked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false, surplus
	}
	c.mu.born++
	p.shard = c.mu.born % pinShards
	c.mu.clock.admit(p)
	p.slot.p.Store(p)
	if !c.scarce.Load() {
		return true, surplus
	}
	pinned := c.pinned.sum()
	for old := c.mu.clock.surplus(pinned); old != nil; old = c.mu.clock.surplus(pinned) {
		c.unlink(old, &surplus)
	}
	return true, surplus
}

// Drop unlinks the page of s, whose table is gone, and retires it. Nobody may
// be filling s; a page that is filled in spite of it stays until it is evicted.
func (c *Cache) Drop(s *Slot) {
	var u unlinked
	c.detach(s, &u)
	c.retire(u)
}

// DropAll is Drop for all slots of a table at once.
func (c *Cache) DropAll(slots []Slot) {
	var u unlinked
	for i := range slots {
		c.detach(&slots[i], &u)
	}
	c.retire(u)
}

// Move makes the pages of from those of to, as many slots, which are empty and whose pages
// nobody else fills.
func (c *Cache) Move(to, from []Slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range from {
		if p := from[i].p.Load(); p != nil {
			from[i].p.Store(nil)
			p.slot = &to[i]
			to[i].p.Store(p)
		}
	}
}

// detach takes the page of s out of its queue and slot, if it is resident, and adds it to u.
func (c *Cache) detach(s *Slot, u *unlinked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := s.p.Load(); p != nil {
		p.remove()
		c.unlink(p, u)
	}
}

// Leave makes Close leave the memory to whoever needs some in the next second. It returns c.
func (c *Cache) Leave() *Cache {
	c.heap.Leave()
	return c
}

// Close unlinks and frees every page; later Fills fail with base.ErrClosed. If
// pages are still pinned, or readers still inside their epoch, it returns an
// error that says so: that memory stays valid until the last Unpin or until the
// domain collects it, and is unmapped then. Closing again reports what is left.
func (c *Cache) Close() error {
	all, pins := c.unlinkAll()
	c.retire(all)
	c.dom.Collect()
	err := c.heap.Close()
	if n := c.pinned.sum(); n > 0 {
		return fmt.Errorf("cache: closed with %d resident pages pinned, %d bytes pinned in all", pins, n)
	}
	return err
}

// unlinkAll unlinks every page, and returns how many of them are pinned.
func (c *Cache) unlinkAll() (all unlinked, pins int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	for _, q := range c.mu.clock.queues() {
		for p := q.oldest(); p != nil; p = q.oldest() {
			p.remove()
			c.unlink(p, &all)
			if p.Pins() > 0 {
				pins++
			}
		}
	}
	return all, pins
}
