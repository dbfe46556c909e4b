package cache

// Shares of the resident bytes. Fresh pages are those whose touches still belong
// to the visit that brought them in; fresh and aged together are on probation.
const (
	freshDivisor     = 16 // fresh: 1/16
	probationDivisor = 8  // fresh and aged: 1/8
)

// While memory is scarce: what pages read once for one row share, a small part of small
// budgets, and the part of the room for those that are walked.
const (
	onceBytes   = 1 << 20
	onceDivisor = 8
	walkDivisor = 4
)

// pinnedTries is how many pinned pages a search for a victim passes over in
// succession before it looks elsewhere.
const pinnedTries = 64

// clock decides which page goes when room is needed; the package comment says
// by what rule. Cache.mu guards it.
type clock struct {
	once, fresh, aged, main queue
	room                    int64 // bytes that pages can count on, about
	hand                    int64 // bytes evicted so far: the time of the eviction clock
}

func (k *clock) init(room int64) {
	k.room = room
	for _, q := range k.queues() {
		q.init()
	}
}

func (k *clock) queues() [4]*queue { return [4]*queue{&k.once, &k.fresh, &k.aged, &k.main} }

// resident returns the bytes of all pages.
func (k *clock) resident() (n int64) {
	for _, q := range k.queues() {
		n += q.bytes
	}
	return n
}

// pages returns how many there are.
func (k *clock) pages() (n int) {
	for _, q := range k.queues() {
		n += q.pages
	}
	return n
}

// admit adds a page that has just been read: to the main part if it was evicted
// so recently that a slightly larger probation would have kept it, otherwise on
// probation, or among those that were read once.
func (k *clock) admit(p *Page) {
	switch {
	case k.returning(p):
		k.push(p, &k.main)
	case p.once:
		k.push(p, &k.once)
	default:
		k.push(p, &k.fresh)
		k.age()
	}
}

// push adds p to a queue and notes the time.
func (k *clock) push(p *Page, q *queue) {
	p.stamp = k.time()
	q.push(p)
}

// surplus removes and returns a page that scarce memory is not for: of those read once, and
// of those on probation, what is beyond their parts of the room; of the main part, what
// nobody has asked for while as many bytes as there is room for were evicted. Pages that
// are pinned, of pinned bytes in all, take nothing of what those read once share.
func (k *clock) surplus(pinned int64) *Page {
	if k.once.pages > 1 && k.once.bytes > min(onceBytes, k.room/onceDivisor)+pinned {
		if p := k.fromOnce(min(k.once.pages-1, pinnedTries)); p != nil {
			return p
		}
	}
	if k.fresh.bytes+k.aged.bytes > k.room/walkDivisor {
		if p := k.fromProbation(); p != nil {
			return p
		}
	}
	for p := k.main.oldest(); p != nil && k.since(p.stamp) > k.room; p = k.main.oldest() {
		if p.Pins() == 0 && p.touched.Load() == 0 {
			return k.evict(p)
		}
		k.again(p, &k.main)
	}
	return nil
}

// fromOnce takes the oldest page that was read once and is not pinned, of so many.
func (k *clock) fromOnce(tries int) *Page {
	for ; tries > 0; tries-- {
		p := k.once.oldest()
		if p.Pins() == 0 {
			return k.evict(p)
		}
		k.again(p, &k.once)
	}
	return nil
}

// age moves pages from fresh to aged, where a touch counts as a second visit.
func (k *clock) age() {
	for k.fresh.pages > 1 && k.fresh.bytes > k.resident()/freshDivisor {
		p := k.fresh.oldest()
		p.remove()
		p.touched.Store(0)
		k.push(p, &k.aged)
	}
}

// returning reports whether p was evicted no longer ago than 3/4 of the resident bytes; of
// the bytes that could be resident, if it is read for one row.
func (k *clock) returning(p *Page) bool {
	if p.slot.evicted == 0 {
		return false
	}
	kept := k.resident()
	if p.once {
		kept = max(kept, k.room)
	}
	return k.since(p.slot.evicted-1) <= kept/4*3
}

// clockUnit is how many evicted bytes make one tick of the eviction clock.
const clockUnit = 4 << 10

// time returns the eviction clock in ticks; it wraps around after 16 TiB.
func (k *clock) time() uint32 { return uint32(k.hand / clockUnit) }

// since returns how many bytes were evicted since a time.
func (k *clock) since(time uint32) int64 { return int64(k.time()-time) * clockUnit }

// victim removes and returns the page that should go next, nil if none can.
func (k *clock) victim() *Page {
	first, second := k.fromMain, k.fromProbation
	if k.fresh.bytes+k.aged.bytes > k.resident()/probationDivisor {
		first, second = second, first
	}
	if p := first(); p != nil {
		return p
	}
	if p := second(); p != nil {
		return p
	}
	return k.fromOnce(k.once.pages)
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
	k.push(p, q)
}

// evict removes p and notes the time.
func (k *clock) evict(p *Page) *Page {
	p.remove()
	k.hand += p.cost
	p.slot.evicted = k.time() + 1
	return p
}
