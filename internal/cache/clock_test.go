package cache

import (
	"container/list"
	"math/rand/v2"
	"testing"
)

// The pages a test calls hot, and those it only passes over once.
const (
	hotPages  = 60
	scanPages = 2300 // ten times the budget
	scanLimit = 8 << 20
)

// hits reads the hot pages once and counts those that were resident.
func (f *fixture) hits(slots []Slot) int {
	n := 0
	for i := range slots {
		if f.get(&slots[i], uint64(i), pageBytes) {
			n++
		}
	}
	return n
}

// scan reads each page once, all its rows in a row.
func (f *fixture) scan(slots []Slot, touches int) {
	for i := range slots {
		for range touches {
			f.get(&slots[i], uint64(i), pageBytes)
		}
	}
}

// The working set is read now and then while a scan of ten times the budget
// passes: it must stay.
func TestScanSparesPagesInUse(t *testing.T) {
	f := newFixture(t, scanLimit)
	hot, cold := make([]Slot, hotPages), make([]Slot, scanPages)
	f.hits(hot)
	r := rand.New(rand.NewPCG(1, 1))
	hits, reads := 0, 0
	for i := range cold {
		for range 3 {
			f.get(&cold[i], uint64(i), pageBytes)
		}
		for range 2 {
			k := r.IntN(hotPages)
			if reads++; f.get(&hot[k], uint64(k), pageBytes) {
				hits++
			}
		}
	}
	if misses := reads - hits; misses > hotPages/10 {
		t.Errorf("%d of %d reads of the working set missed during a scan", misses, reads)
	}
}

// The working set was used, then rests while the scan passes: it must stay, too.
func TestScanSparesPagesAtRest(t *testing.T) {
	f := newFixture(t, scanLimit)
	hot, cold := make([]Slot, hotPages), make([]Slot, scanPages)
	for range 3 {
		f.hits(hot)
	}
	f.scan(cold, 3)
	if n := f.hits(hot); n < hotPages*9/10 {
		t.Errorf("%d of %d hot pages survived a scan", n, hotPages)
	}
	f.scan(cold, 1)
	if n := f.hits(hot); n < hotPages*9/10 {
		t.Errorf("%d of %d hot pages survived a second scan", n, hotPages)
	}
}

// What a scan leaves behind must make way for a new working set.
func TestNewWorkingSetDisplacesTheOld(t *testing.T) {
	f := newFixture(t, scanLimit)
	old, young := make([]Slot, 200), make([]Slot, 150)
	for range 5 {
		f.hits(old)
	}
	for range 6 {
		f.hits(young)
	}
	if n := f.hits(young); n < len(young)*9/10 {
		t.Errorf("%d of %d pages of the new working set are resident", n, len(young))
	}
}

// Touches of the visit that brought a page in do not make it hot.
func TestBurstOfTouchesProvesNothing(t *testing.T) {
	f := newFixture(t, scanLimit)
	cold := make([]Slot, scanPages)
	f.scan(cold, 5)
	if f.mu.clock.main.pages != 0 {
		t.Errorf("%d pages of a scan were taken for hot", f.mu.clock.main.pages)
	}
}

// A page read again soon after its eviction goes to main without a trial; one
// read again much later does not.
func TestReturningPagesSkipProbation(t *testing.T) {
	f := newFixture(t, scanLimit)
	slots := make([]Slot, scanPages)
	f.scan(slots[:300], 1) // the first ones are evicted by now
	last := 0
	for slots[last].p.Load() == nil {
		last++
	}
	soon := &slots[last-1]
	f.get(soon, uint64(last-1), pageBytes)
	if p := soon.p.Load(); p == nil || p.queue != &f.mu.clock.main {
		t.Error("a page that came back at once is on probation")
	}
	f.scan(slots[300:1000], 1)
	f.get(&slots[0], 0, pageBytes)
	if p := slots[0].p.Load(); p == nil || p.queue == &f.mu.clock.main {
		t.Error("a page that came back late is not on probation")
	}
}

// getOnce is get of one row, without other touches.
func (f *fixture) getOnce(s *Slot, id uint64) *Page {
	f.t.Helper()
	f.s.Enter()
	defer f.s.Exit()
	p, err := f.FillOnce(s, pageBytes, func(dst []byte) error { write(dst, id); return nil })
	if err != nil || !intact(p.Data(), id) {
		f.t.Fatalf("page %d: %v, or other contents", id, err)
	}
	return p
}

// While memory is scarce, pages read for one row take little of it, unless they come back.
func TestPagesReadOnce(t *testing.T) {
	f := newFixture(t, scanLimit)
	f.SetScarce(true)
	slots := make([]Slot, scanPages)
	for i := range slots {
		f.getOnce(&slots[i], uint64(i))
		f.getOnce(&slots[i], uint64(i)) // of the same visit
		if n := f.Stats().ResidentBytes; n > onceBytes {
			t.Fatalf("%d bytes are resident after %d pages", n, i+1)
		}
	}
	soon := len(slots) - 2*onceBytes/pageBytes
	if slots[soon].p.Load() != nil {
		t.Fatal("a page stays that was read once")
	}
	if p := f.getOnce(&slots[soon], uint64(soon)); p.queue != &f.mu.clock.main {
		t.Error("a page that came back is not taken for hot")
	}
	if p := f.getOnce(&slots[0], 0); p.queue != &f.mu.clock.once {
		t.Error("a page that came back late is taken for hot")
	}
	f.get(&slots[1], 1, pageBytes)
	if p := slots[1].p.Load(); p.queue != &f.mu.clock.fresh {
		t.Error("a page that is walked is not on probation")
	}
	f.SetScarce(false)
	if p := f.getOnce(&slots[2], 2); p.queue != &f.mu.clock.fresh {
		t.Error("with memory enough a page read for one row is not on probation")
	}
	f.checkBooks(slots)
}

// While memory is scarce it is for what is asked for again soon: neither a walk fills it, nor
// what was asked for twice a long time ago.
func TestScarceMemoryIsNotFilled(t *testing.T) {
	f := newFixture(t, scanLimit)
	f.SetScarce(true)
	slots, hot := make([]Slot, scanPages), make([]Slot, 5)
	room := f.mu.clock.room
	f.scan(slots, 3)
	if n := f.Stats().ResidentBytes; n > room/walkDivisor {
		t.Errorf("%d bytes are resident after a walk, of %d", n, room)
	}
	r := rand.New(rand.NewPCG(7, 7))
	most, misses := int64(0), 0
	for i := range 20 * scanPages { // ten uniform reads for one of what is hot
		k := r.IntN(scanPages)
		f.getOnce(&slots[k], uint64(k))
		if i%10 == 0 {
			if k = i / 10 % len(hot); hot[k].p.Load() == nil {
				misses++
			}
			f.getOnce(&hot[k], uint64(k))
		}
		most = max(most, f.Stats().ResidentBytes)
	}
	// A page comes back within 3/4 of the room (79 pages, of 2300), and stays for the room;
	// what was walked last has its quarter.
	if most > room*2/3 {
		t.Errorf("%d bytes were resident at times, of %d", most, room)
	}
	if misses > 3*len(hot) {
		t.Errorf("%d of %d reads of what is hot missed", misses, 2*scanPages)
	}
}

// Pinned pages stay, though they were read once; the others go in their place.
func TestPinnedPagesReadOnce(t *testing.T) {
	f := newFixture(t, scanLimit)
	f.SetScarce(true)
	slots := make([]Slot, 200)
	var pinned []*Page
	for i := range slots {
		f.s.Enter()
		p := f.getOnce(&slots[i], uint64(i))
		if i < 50 {
			p.Pin()
			pinned = append(pinned, p)
		}
		f.s.Exit()
	}
	for i, p := range pinned {
		if slots[i].p.Load() != p {
			t.Errorf("pinned page %d was evicted", i)
		}
		p.Unpin()
	}
	if n := f.Stats().Pages; n > len(pinned)+1+onceBytes/pageBytes {
		t.Errorf("%d pages, %d of them pinned", n, len(pinned))
	}
	f.getOnce(&slots[100], 100)
	if n := f.Stats().ResidentBytes; n > onceBytes {
		t.Errorf("%d bytes are resident when nothing is pinned any more", n)
	}
	f.evictAll()
	if n := f.Stats().Pages; n != 0 {
		t.Errorf("%d pages cannot be evicted", n)
	}
}

// However many pages are pinned, a page that was just read stays for what follows at once,
// and a read does not look at all of them.
func TestManyPinnedPagesReadOnce(t *testing.T) {
	f := newFixture(t, 64<<20)
	f.SetScarce(true)
	slots := make([]Slot, 10*pinnedTries)
	f.s.Enter()
	for i := range slots {
		p := f.getOnce(&slots[i], uint64(i))
		p.Pin()
		defer p.Unpin()
	}
	f.s.Exit()
	near := make([]Slot, 1+onceBytes/pageBytes)
	for i := range near {
		f.getOnce(&near[i], uint64(i))
		if i > 0 && near[i-1].p.Load() == nil {
			t.Fatalf("page %d went when the next was read", i-1)
		}
	}
	passed := 0
	for oldest := f.mu.clock.once.oldest(); passed < len(slots) && slots[passed].p.Load() != oldest; {
		passed++
	}
	if passed == 0 || passed > 2*pinnedTries {
		t.Errorf("%d pinned pages were passed over", passed)
	}
}

// lruHits is what plain LRU with room for n pages would make of the accesses.
func lruHits(accesses []uint64, n int) (hits int) {
	order := list.New()
	at := map[uint64]*list.Element{}
	for _, k := range accesses {
		if e, ok := at[k]; ok {
			hits++
			order.MoveToFront(e)
			continue
		}
		at[k] = order.PushFront(k)
		if order.Len() > n {
			delete(at, order.Remove(order.Back()).(uint64))
		}
	}
	return hits
}

// Under a skewed load without any scan the clock must not lose against LRU.
func TestSkewedReadsHitMoreThanWithLRU(t *testing.T) {
	f := newFixture(t, scanLimit)
	slots := make([]Slot, 1000)
	z := rand.NewZipf(rand.New(rand.NewPCG(3, 3)), 1.2, 8, uint64(len(slots)-1))
	accesses := make([]uint64, 20000)
	hits := 0
	for i := range accesses {
		accesses[i] = z.Uint64()
		if f.get(&slots[accesses[i]], accesses[i], pageBytes) {
			hits++
		}
	}
	lru := lruHits(accesses, scanLimit/pageBytes)
	t.Logf("%d of %d reads hit, %d with LRU", hits, len(accesses), lru)
	if hits < lru {
		t.Errorf("%d of %d reads hit, LRU has %d", hits, len(accesses), lru)
	}
}

// Queues and slots agree after any history.
func TestClockBooks(t *testing.T) {
	f := newFixture(t, 2<<20)
	slots, once := make([]Slot, 150), make([]Slot, 150)
	r := rand.New(rand.NewPCG(5, 5))
	for step := range 4000 {
		k := r.IntN(len(slots))
		switch r.IntN(20) {
		case 0:
			f.Drop(&slots[k])
		case 1:
			f.evictAll()
		case 2:
			f.SetScarce(step%2 == 0)
			f.getOnce(&once[k], uint64(k))
		default:
			f.get(&slots[k], uint64(k), 4096*(1+k%11))
		}
		if step%97 == 0 {
			f.checkBooks(slots, once)
		}
	}
	f.checkBooks(slots, once)
}

func (f *fixture) checkBooks(tables ...[]Slot) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	k := &f.mu.clock
	queued := 0
	for _, q := range k.queues() {
		bytes, pages := int64(0), 0
		for p := q.root.next; p != &q.root; p = p.next {
			if p.queue != q || p.slot.p.Load() != p || p.next.prev != p {
				f.t.Fatal("a queued page is not the one in its slot")
			}
			bytes, pages = bytes+p.cost, pages+1
		}
		if bytes != q.bytes || pages != q.pages {
			f.t.Fatalf("%d pages of %d bytes, books say %d of %d", pages, bytes, q.pages, q.bytes)
		}
		queued += pages
	}
	for _, slots := range tables {
		for i := range slots {
			if slots[i].p.Load() != nil {
				queued--
			}
		}
	}
	if queued != 0 {
		f.t.Fatalf("%d more pages in queues than in slots", queued)
	}
}
