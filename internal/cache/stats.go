package cache

import "sync/atomic"

// Stats is what the cache holds and has done. Hits are not counted: that would
// be a shared cache line written by every read. The fields are read one after
// another while others change them, so they need not add up.
type Stats struct {
	Pages         int   // resident pages
	ResidentBytes int64 // memory behind resident pages
	PinnedBytes   int64 // memory behind pages, resident or not, with pins
	RetiringBytes int64 // memory of unlinked pages that wait for readers to leave
	ZombieBytes   int64 // memory of unlinked pages that wait for their last Unpin

	Misses      uint64 // Fill calls that found no page
	Fills       uint64 // pages read
	Failures    uint64 // reads that returned an error
	Evictions   uint64 // pages unlinked to make room
	Overcommits uint64 // pages for which there was no room within the budget
}

// Stats returns the state of this moment.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	pages, resident := c.mu.clock.pages(), c.mu.clock.resident()
	c.mu.Unlock()
	return Stats{
		Pages:         pages,
		ResidentBytes: resident,
		PinnedBytes:   c.pinned.sum(),
		RetiringBytes: max(c.retiring.Load(), 0),
		ZombieBytes:   max(c.zombie.Load(), 0),
		Misses:        c.misses.Load(),
		Fills:         c.fills.Load(),
		Failures:      c.failures.Load(),
		Evictions:     c.evictions.Load(),
		Overcommits:   c.overcommits.Load(),
	}
}

// pinShards is how many counters share the count of pinned bytes.
const pinShards = 16

// pinCounter counts pinned bytes without a line that all readers write: pages are
// dealt out to the shards by their size and slot, and a page stays with its own.
type pinCounter [pinShards]struct {
	atomic.Int64
	_ [128 - 8]byte
}

func (n *pinCounter) add(p *Page, delta int64) { n[p.shard].Add(delta) }

func (n *pinCounter) sum() int64 {
	sum := int64(0)
	for i := range n {
		sum += n[i].Load()
	}
	return max(sum, 0)
}
