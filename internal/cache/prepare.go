package cache

import "github.com/cairndb/cairn/internal/invariants"

// Prepared pages cannot be evicted, so they take a small part of the budget at any
// time, and none of its last quarter: what else grows needs no eviction first.
const (
	preparedDivisor = 16
	untakenDivisor  = 4
)

// Prepare makes p, which is new, a page of size bytes, which fill overwrites, that is in no
// slot yet: of a table that is being written. It returns nil in place of p if there is no
// room without evicting others. The caller passes the page to Adopt or to Discard.
func (c *Cache) Prepare(p *Page, size int, fill func(dst []byte)) *Page {
	limit := c.budget.Limit()
	if size == 0 || c.prepared.Load()+int64(size) > limit/preparedDivisor {
		return nil
	}
	b, err := c.heap.AllocWithin(size, c.soft()-limit/untakenDivisor)
	if err != nil {
		return nil
	}
	fill(b[:size:size])
	p.data, p.cache, p.cost = b[:size:size], c, int64(cap(b))
	c.prepared.Add(p.cost)
	return p
}

// Ready brings memory for pages of n bytes into the process, as far as Prepare would take it, unless
// goOn says no. Trim gives back what nothing was put into.
func (c *Cache) Ready(n int64, goOn func() bool) {
	limit := c.budget.Limit()
	c.heap.Ready(min(n, limit/preparedDivisor), c.soft()-limit/untakenDivisor, goOn)
}

// Age gives memory back that no page has needed since it was called before.
func (c *Cache) Age() { c.heap.Age() }

// Trim gives memory back that no page needs.
func (c *Cache) Trim() { c.heap.Trim() }

// Adopt makes a prepared page the one of s, which nobody has filled or is filling.
func (c *Cache) Adopt(s *Slot, p *Page) {
	invariants.Assert(s.p.Load() == nil, "cache: a page is adopted by a slot that has one")
	p.slot = s
	c.prepared.Add(-p.cost)
	if !c.publish(p) {
		c.release(p.data)
	}
}

// Discard frees a prepared page that no slot will have.
func (c *Cache) Discard(p *Page) {
	c.prepared.Add(-p.cost)
	c.release(p.data)
}
