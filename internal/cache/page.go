package cache

import (
	"sync/atomic"

	"github.com/cairndb/cairn/internal/invariants"
)

// Slot is the direct pointer to one page of a table: nil while the page is not
// resident. A table embeds one per page and hands it to the cache; the zero
// value is ready. It must not be copied, nor moved while the cache knows it.
type Slot struct {
	p atomic.Pointer[Page] // stored with Cache.mu held, loaded without

	// evicted is when the page was last evicted, on the eviction clock, plus one;
	// 0 if never. Guarded by Cache.mu.
	evicted uint32
}

// Parts of Page.state: the number of pins, and what has become of the page.
const (
	pinMask    = int64(1)<<32 - 1
	stateDead  = int64(1) << 40 // unlinked, and the epoch of its readers has passed
	stateFreed = int64(1) << 41 // the bytes are gone; set only where assertions are on
)

// Page is the header of a decoded page; its bytes lie off-heap. It may be used
// inside the epoch in which it was loaded, and for as long as it is pinned. The
// bytes are immutable. All methods may be called from any goroutine.
type Page struct {
	data    []byte
	cache   *Cache
	slot    *Slot
	state   atomic.Int64  // pins and flags, see the argument in the package comment
	touched atomic.Uint32 // 1: used since the clock hand last passed

	// Guarded by Cache.mu; next of an unlinked page belongs to whoever retires it.
	next, prev *Page
	queue      *queue
	stamp      uint32 // when it came into the queue, on the eviction clock

	// Constant.
	cost  int64 // bytes of memory behind data
	shard uint8 // of Cache.pinned
	once  bool  // read for one row while memory was scarce
}

// Data returns the page's bytes, which nobody may modify. They are valid inside
// the epoch in which the page was loaded, and while the page is pinned.
func (p *Page) Data() []byte {
	if invariants.Enabled && p.state.Load()&stateFreed != 0 {
		panic("cairn: cache.Page used after it was freed")
	}
	return p.data
}

// Pin keeps the page's bytes valid until the matching Unpin, beyond the end of
// the epoch and even if the page is evicted. It is legal inside the epoch in
// which the page was loaded, or while the caller holds another pin of it.
func (p *Page) Pin() {
	n := p.state.Add(1)
	if n&pinMask == 1 {
		p.cache.pinned.add(p, p.cost)
		if invariants.Enabled && n&stateDead != 0 {
			panic("cairn: cache.Page pinned after its epoch")
		}
	}
}

// Unpin ends one Pin. The last Unpin of a page that was evicted meanwhile frees
// it.
func (p *Page) Unpin() {
	n := p.state.Add(-1)
	if invariants.Enabled && n&pinMask == pinMask {
		panic("cairn: cache.Page: Unpin without Pin")
	}
	if n&pinMask != 0 {
		return
	}
	p.cache.pinned.add(p, -p.cost)
	if n&stateDead != 0 {
		p.cache.zombie.Add(-p.cost)
		p.free()
	}
}

// Pins returns how many pins the page has at this instant.
func (p *Page) Pins() int { return int(p.state.Load() & pinMask) }

// expire is what the epoch domain runs when no reader can find the page any
// more. It frees the page, or leaves that to the last Unpin.
func (p *Page) expire() {
	p.cache.retiring.Add(-p.cost)
	if p.state.Or(stateDead)&pinMask != 0 {
		p.cache.zombie.Add(p.cost)
		return
	}
	p.free()
}

// free gives the bytes back. It is reached once: the state (no pins, dead) is
// entered once and never left.
func (p *Page) free() {
	if invariants.Enabled {
		p.state.Or(stateFreed)
	}
	p.cache.release(p.data)
}

// touch sets the reference bit. It is read first, since a store would take the
// cache line away from the other readers of a hot page each time.
func (p *Page) touch() {
	if p.touched.Load() == 0 {
		p.touched.Store(1)
	}
}
