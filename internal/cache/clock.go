package cache

// Shares of the resident bytes. Fresh pages are those whose touches still belong
// to the visit that brought them in; fresh and aged together are on probation.
const (
	freshDivisor     = 16 // fresh: 1/16
	probationDivisor = 8  // fresh and aged: 1/8
)

// pinnedTries is how many pinned pages a search for a victim passes over in
// succession before it looks elsewhere.
const pinnedTries = 64

// clock decides which page goes when room is needed; the package comment says
// by what rule. Cache.mu guards it.
type clock struct {
	fresh, aged, main queue
	hand              int64 // bytes evicted so far: the time of the eviction clock
}

func (k *clock) init() {
	k.fresh.init()
	k.aged.init()
	k.main.init()
}

// resident returns the bytes of all pages.
func (k *clock) resident() int64 { return k.fresh.bytes + k.aged.bytes + k.main.bytes }

// admit adds a page that has just been read: to the main part if it was evicted
// so recently that a slightly larger probation would have kept it, otherwise on
// probation.
func (k *clock) admit(p *Page) {
	if k.returning(p.slot) {
		k.main.push(p)
		return
	}
	k.fresh.push(p)
	k.age()
}

// age moves pages from fresh to aged, where a touch counts as a second visit.
func (k *clock) age() {
	for k.fresh.pages > 1 && k.fresh.bytes > k.resident()/freshDivisor {
		p := k.fresh.oldest()
		p.remove()
		p.touched.Store(0)
		k.aged.push(p)
	}
}

// returning reports whether the page of s was evicted no longer ago than 3/4 of
// the resident bytes.
func (k *clock) returning(s *Slot) bool {
	if s.evicted == 0 {
		return false
	}
	return int64(k.time()-(s.evicted-1))*clockUnit <= k.resident()/4*3
}

// clockUnit is how many evicted bytes make one tick of the eviction clock.
const clockUnit = 4 << 10

// time returns the eviction clock in ticks; it wraps around after 16 TiB.
func (k *clock) time() uint32 { return uint32(k.hand / clockUnit) }

// victim removes and returns the page that should go next, nil if none can.
func (k *clock) victim() *Page {
	probation := k.fresh.bytes + k.aged.bytes
	if probation > k.resident()/probationDivisor {
		if p := k.fromProbation(); p != nil {
			return p
		}
		return k.fromMain()
	}
	if p := k.fromMain(); p != nil {
		return p
	}
	return k.fromProbation()
}

// fromProbation takes the oldest page on probation that was not touched after it
// left fresh; those that were move to the main part.
func (k *clock) fromProbation() *Page {
	pinned := 0
	for tries := 2*k.aged.pages + k.fresh.pages; tries > 0 && pinned < pinnedTries; tries-- {
		p := k.aged.oldest()
		if p == nil {
			p = k.fresh.oldest()
		}
		switch {
		case p == nil:
			return nil
		case p.Pins() > 0:
			pinned++
			k.again(p, p.queue)
		case p.queue == &k.aged && p.touched.Load() != 0:
			k.again(p, &k.main)
		default:
			return k.evict(p)
		}
	}
	return nil
}

// fromMain takes the oldest page of the main part that was not touched since
// the hand last passed it.
func (k *clock) fromMain() *Page {
	pinned := 0
	for tries := 2 * k.main.pages; tries > 0 && pinned < pinnedTries; tries-- {
		p := k.main.oldest()
		switch {
		case p.Pins() > 0:
			pinned++
			k.again(p, &k.main)
		case p.touched.Load() != 0:
			k.again(p, &k.main)
		default:
			return k.evict(p)
		}
	}
	return nil
}

// again gives p another round in queue q, in which it has to be touched anew.
func (k *clock) again(p *Page, q *queue) {
	p.remove()
	p.touched.Store(0)
	q.push(p)
}

// evict removes p and notes the time.
func (k *clock) evict(p *Page) *Page {
	p.remove()
	k.hand += p.cost
	p.slot.evicted = k.time() + 1
	return p
}
