package cache

import (
	"errors"
	"runtime"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
)

// Of the budget a margin is kept free, since an evicted page gives its memory
// back only when the readers inside the epoch have left: 5 %, but for small
// budgets a quarter, up to marginFloor.
const (
	marginDivisor = 20
	marginFloor   = 256 << 10
)

// yields is how often an allocation lets other goroutines run before it exceeds
// the budget: a reader that was interrupted inside its epoch may hold back the
// memory of everything evicted since.
const yields = 4

// A reader stuck inside its epoch, say in a stalled read, must not let the others
// fill memory without end: beyond one part in heldBackDivisor of the budget, within
// bounds, each allocation that finds no room sleeps for stuckPause, up to yields
// times.
const (
	heldBackDivisor = 8
	leastHeldBack   = 2 << 20
	mostHeldBack    = 32 << 20
	stuckPause      = 250 * time.Microsecond
)

// heldBack returns how many bytes evicted pages that readers may still use can take before the others sleep.
func (c *Cache) heldBack() int64 {
	return min(max(c.budget.Limit()/heldBackDivisor, leastHeldBack), mostHeldBack)
}

// aheadDivisor: what is read ahead of all walks together, and not wanted yet, takes one part in this many of the
// budget, a part of what pages on probation have where memory is scarce: else it were evicted before it is wanted.
const aheadDivisor = 32

// AheadLimit returns how many bytes of pages may be read ahead of walks.
func (c *Cache) AheadLimit() int64 { return c.budget.Limit() / aheadDivisor }

// TakeAhead reports whether n bytes more may be read ahead. If so, GiveAhead says when the walk has come to them.
func (c *Cache) TakeAhead(n int) bool {
	if c.ahead.Add(int64(n)) <= c.AheadLimit() {
		return true
	}
	c.GiveAhead(n)
	return false
}

// GiveAhead takes back a TakeAhead.
func (c *Cache) GiveAhead(n int) { c.ahead.Add(int64(-n)) }

// soft returns the bytes of the budget up to which pages are admitted without evicting.
func (c *Cache) soft() int64 {
	limit := c.budget.Limit()
	return limit - max(limit/marginDivisor, min(limit/4, marginFloor))
}

// Room evicts until need more bytes fit into the budget with the margin to
// spare, as far as pages can go, and gives their memory back to the system. It
// reports whether need bytes fit now. For those who spend of the same budget
// otherwise; Fill makes room by itself. Pages that readers inside the epoch may
// still use are waited for a moment; they go back when these have left, at the next Room,
// Fill or Collect.
func (c *Cache) Room(need int64) bool {
	c.evictFor(need)
	for try := 0; c.budget.Used()+need-c.heap.Spare() > c.budget.Limit() && c.retiring.Load() > 0 && try < yields; try++ {
		c.letReadersOut()
	}
	if over := c.budget.Used() + need - c.soft(); over > 0 {
		c.heap.Scavenge(over)
	}
	return c.budget.Used()+need <= c.budget.Limit()
}

// giveWays is how often GiveWay evicts before there is nothing left: a 16th first, and at last everything.
const giveWays = 5

// Cramped reports whether there are pages that should give way, since the system gives less than need bytes and some for others.
func (c *Cache) Cramped(need int64) bool {
	return c.budget.UsedBy(arena.ClassPages) > 0 && c.heap.Cramped(need)
}

// GiveWay is for somebody whom the system has given no need bytes though there was room in the budget: it lowers the
// limit and evicts, the more the more often that was tried, and unmaps what is free by then. It reports whether to try
// again. The caller is outside the epoch.
func (c *Cache) GiveWay(need int64, tried int) bool {
	pages := c.budget.UsedBy(arena.ClassPages)
	if tried >= giveWays || tried > 0 && pages == 0 {
		return false
	}
	c.budget.Lower(c.budget.Used() - pages>>(giveWays-1-tried))
	c.Room(need)
	c.heap.Shrink()
	return true
}

// allocate returns n bytes, evicting pages as needed. The budget is exceeded
// only if nothing more can be evicted, or what was is still in use.
func (c *Cache) allocate(n int) ([]byte, error) {
	if n == 0 {
		return []byte{}, nil
	}
	b, err := c.heap.AllocWithin(n, c.soft())
	if errors.Is(err, arena.ErrNoRoom) {
		c.evictFor(int64(n))
		b, err = c.heap.AllocWithin(n, c.budget.Limit())
	}
	for try := 0; errors.Is(err, arena.ErrNoRoom) && c.retiring.Load() > 0 && try < yields; try++ {
		c.letReadersOut()
		b, err = c.heap.AllocWithin(n, c.budget.Limit())
	}
	if errors.Is(err, arena.ErrNoRoom) {
		c.overcommits.Add(1)
		b, err = c.heap.Alloc(n)
	}
	if errors.Is(err, arena.ErrHeapClosed) {
		err = base.ErrClosed
	}
	return b, err
}

// letReadersOut gives those inside an epoch time to leave, and collects.
func (c *Cache) letReadersOut() {
	if c.retiring.Load() > c.heldBack() {
		time.Sleep(stuckPause)
	} else {
		runtime.Gosched()
	}
	c.dom.Collect()
}

// release returns what allocate gave.
func (c *Cache) release(b []byte) {
	if cap(b) > 0 {
		_ = c.heap.Free(b) // asserts by itself; there is nobody to tell
	}
}

// evictFor unlinks pages until need bytes would fit, counting what is on its way
// out already, and retires them. It lets the epoch domain free what it can.
func (c *Cache) evictFor(need int64) {
	c.dom.Collect()
	victims := c.unlinkVictims(need)
	c.evictions.Add(victims.n)
	c.retire(victims)
}

// unlinkVictims takes pages out of their queues and slots.
func (c *Cache) unlinkVictims(need int64) (victims unlinked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := c.budget.Used() + need - c.soft() - c.heap.Spare() - c.retiring.Load()
	for over > 0 {
		p := c.mu.clock.victim()
		if p == nil {
			break
		}
		c.unlink(p, &victims)
		over -= p.cost
	}
	return victims
}

// unlinked is pages that no slot and no queue has any more: a list by their next.
type unlinked struct {
	first *Page
	n     uint64
}

// unlink empties the slot of p, which is in no queue any more, and adds it to u. Readers may still
// hold the page, so u must be retired next. c.mu is held.
func (c *Cache) unlink(p *Page, u *unlinked) {
	p.slot.p.Store(nil)
	c.retiring.Add(p.cost)
	p.next, u.first = u.first, p
	u.n++
}

// retire hands unlinked pages to the epoch domain. c.mu is not held, as the
// domain may run anybody's functions.
func (c *Cache) retire(u unlinked) {
	if u.first != nil {
		c.dom.Retire(u.first.expireAll)
	}
}

// expireAll is expire of p and the pages unlinked with it.
func (p *Page) expireAll() {
	for p != nil {
		next := p.next
		p.next = nil
		p.expire()
		p = next
	}
}
