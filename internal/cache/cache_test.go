package cache

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/invariants"
)

const pageBytes = 36 << 10

// fixture is a cache with one participant and a check at the end that nothing
// stays mapped or counted.
type fixture struct {
	*Cache
	t     *testing.T
	b     *arena.Budget
	d     *epoch.Domain
	s     *epoch.Slot
	reads atomic.Int64
}

func newFixture(t *testing.T, limit int64) *fixture {
	t.Helper()
	before := arena.Mapped()
	f := &fixture{t: t, b: arena.NewBudget(limit), d: epoch.New()}
	f.Cache, f.s = New(f.b, f.d), f.d.Register()
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := arena.Mapped() - before; n != 0 || f.b.UsedBy(arena.ClassPages) != 0 {
			t.Errorf("after Close %d bytes are mapped, %d counted", n, f.b.UsedBy(arena.ClassPages))
		}
		if st := f.Stats(); st.PinnedBytes+st.ZombieBytes+st.RetiringBytes+st.ResidentBytes != 0 || st.Pages != 0 {
			t.Errorf("after Close: %+v", st)
		}
	})
	return f
}

// write makes the contents of page id.
func write(dst []byte, id uint64) {
	for i := 0; i+8 <= len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], id*0x9e3779b97f4a7c15+uint64(i))
	}
}

// intact samples a page for the contents write made.
func intact(b []byte, id uint64) bool {
	for i := 0; i+8 <= len(b); i += 1016 {
		if binary.LittleEndian.Uint64(b[i:]) != id*0x9e3779b97f4a7c15+uint64(i) {
			return false
		}
	}
	return true
}

// get is one read as an engine does it, of page id in slot s; hit says that it
// was resident.
func (f *fixture) get(s *Slot, id uint64, size int) (hit bool) {
	f.t.Helper()
	f.s.Enter()
	defer f.s.Exit()
	p := f.Load(s)
	if hit = p != nil; !hit {
		p = f.fill(s, id, size)
	}
	if len(p.Data()) != size || !intact(p.Data(), id) {
		f.t.Fatalf("page %d has other contents", id)
	}
	return hit
}

func (f *fixture) fill(s *Slot, id uint64, size int) *Page {
	f.t.Helper()
	p, err := f.Fill(s, size, func(dst []byte) error {
		f.reads.Add(1)
		write(dst, id)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// needRelease skips a test on platforms that cannot give back single pages.
func needRelease(t *testing.T) {
	t.Helper()
	b, err := arena.Map(1)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Unmap(b)
	if !arena.Release(b) {
		t.Skip("the platform cannot give back single pages")
	}
}

// evictAll pushes out everything that can go.
func (f *fixture) evictAll() {
	f.t.Helper()
	f.Room(f.b.Limit())
}

func TestSlotIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Slot{}); n > 16 {
		t.Errorf("a slot has %d bytes", n)
	}
}

func TestFillThenLoad(t *testing.T) {
	f := newFixture(t, 16<<20)
	var slots [5]Slot
	for _, want := range []bool{false, true, true} {
		for i, size := range []int{1, 100, pageBytes, 3 << 20, 8} {
			if hit := f.get(&slots[i], uint64(i), size); hit != want {
				t.Errorf("page %d resident: %v, want %v", i, hit, want)
			}
		}
	}
	st := f.Stats()
	if f.reads.Load() != 5 || st.Fills != 5 || st.Misses != 5 || st.Pages != 5 || st.Overcommits+st.Evictions != 0 {
		t.Errorf("%d reads, %+v", f.reads.Load(), st)
	}
}

func TestFillOfNothing(t *testing.T) {
	f := newFixture(t, 1<<20)
	var s Slot
	p, err := f.Fill(&s, 0, func(dst []byte) error { return nil })
	if err != nil || len(p.Data()) != 0 || f.Load(&s) != p {
		t.Fatalf("empty page: %v", err)
	}
	f.Drop(&s)
	if f.Load(&s) != nil {
		t.Fatal("still there")
	}
}

func TestReadMustNotReachBeyondItsPage(t *testing.T) {
	f := newFixture(t, 1<<20)
	var s Slot
	if _, err := f.Fill(&s, 100, func(dst []byte) error {
		if len(dst) != 100 || cap(dst) != 100 {
			t.Errorf("len %d, cap %d", len(dst), cap(dst))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if p := f.Load(&s); cap(p.Data()) != 100 {
		t.Errorf("cap of the page is %d", cap(p.Data()))
	}
}

func TestConcurrentFillsShareOneRead(t *testing.T) {
	f := newFixture(t, 16<<20)
	var s Slot
	var got [8]*Page
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			e := f.d.Register()
			defer e.Release()
			e.Enter()
			defer e.Exit()
			p, err := f.Fill(&s, pageBytes, func(dst []byte) error {
				f.reads.Add(1)
				for f.misses.Load() < uint64(len(got)) { // until all have asked
				}
				write(dst, 1)
				return nil
			})
			if err != nil || !intact(p.Data(), 1) {
				t.Errorf("wrong page (%v)", err)
			}
			got[i] = p
		})
	}
	wg.Wait()
	if f.reads.Load() != 1 {
		t.Errorf("%d reads", f.reads.Load())
	}
	for _, p := range got {
		if p != got[0] {
			t.Error("two pages for one slot")
		}
	}
}

// The story: a reader entered its epoch after a page had been published and
// evicted again, but joined the read of it, whose leader had not finished. It was
// handed the page by the leader, and its epoch did not protect it.
func TestWaiterIsNotHandedAnEvictedPage(t *testing.T) {
	f := newFixture(t, 16<<20)
	var s Slot
	flight, leader := f.flights.join(&s)
	if !leader {
		t.Fatal("somebody else leads")
	}
	f.s.Enter()
	p, err := f.Cache.fill(&s, pageBytes, false, func(dst []byte) error { write(dst, 1); return nil })
	if err != nil {
		t.Fatal(err)
	}
	f.Drop(&s)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		e := f.d.Register()
		defer e.Release()
		e.Enter()
		defer e.Exit()
		got, err := f.Fill(&s, pageBytes, func(dst []byte) error { write(dst, 1); return nil })
		if err != nil || got == p || !intact(got.Data(), 1) {
			t.Errorf("the waiter got a page that its epoch does not protect (%v)", err)
		}
	})
	for f.misses.Load() == 0 {
		runtime.Gosched()
	}
	f.flights.finish(&s, flight)
	f.s.Exit()
	f.d.Collect()
	waiter.Wait()
}

func TestFailedReadLeavesNothing(t *testing.T) {
	f := newFixture(t, 16<<20)
	var s Slot
	boom := errors.New("boom")
	for range 3 {
		if p, err := f.Fill(&s, pageBytes, func([]byte) error { return boom }); p != nil || err != boom {
			t.Fatalf("got %v, %v", p, err)
		}
		if f.Load(&s) != nil || f.heap.InUse() != 0 {
			t.Fatal("a failed read left a page or its memory")
		}
	}
	if f.get(&s, 4, pageBytes); f.Stats().Failures != 3 || f.Stats().Fills != 1 {
		t.Errorf("%+v", f.Stats())
	}
}

func TestPanickingReadLeavesNothing(t *testing.T) {
	f := newFixture(t, 16<<20)
	var s Slot
	inside, waiter := make(chan bool), make(chan error)
	go func() {
		<-inside
		_, err := f.Fill(&s, pageBytes, func([]byte) error { return nil })
		waiter <- err
	}()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		f.Fill(&s, pageBytes, func([]byte) error {
			inside <- true
			for f.misses.Load() < 2 {
			}
			panic("boom")
		})
	}()
	// The waiter shared the aborted read, or came late and read for itself.
	if err := <-waiter; err != nil && err != errAborted {
		t.Errorf("the waiter got %v", err)
	} else if err != nil && (f.Load(&s) != nil || f.heap.InUse() != 0) {
		t.Error("the aborted read left a page or its memory")
	}
	f.Drop(&s)
	f.get(&s, 3, pageBytes)
}

func TestBudgetIsObeyed(t *testing.T) {
	for _, limit := range []int64{1 << 20, 9 << 20} {
		f := newFixture(t, limit)
		slots := make([]Slot, 600)
		for round := range 2 {
			for i := range slots {
				f.get(&slots[i], uint64(i), pageBytes-i%5*4096)
				if f.b.Used() > limit {
					t.Fatalf("round %d, page %d: %d bytes used of %d", round, i, f.b.Used(), limit)
				}
			}
		}
		if st := f.Stats(); st.Overcommits != 0 || st.ResidentBytes < limit/2 {
			t.Errorf("%+v", st)
		}
	}
}

// The budget is shared: what memtables take, pages must leave.
func TestPagesYieldToOtherClasses(t *testing.T) {
	needRelease(t)
	limit := int64(8 << 20)
	f := newFixture(t, limit)
	slots := make([]Slot, 300)
	for i := range slots {
		f.get(&slots[i], uint64(i), pageBytes)
	}
	if !f.Room(5 << 20) {
		t.Errorf("no room: %d used", f.b.Used())
	}
	f.b.Add(arena.ClassMemtable, 5<<20)
	for i := range slots {
		f.get(&slots[i], uint64(i), pageBytes)
		if f.b.Used() > limit {
			t.Fatalf("%d used of %d", f.b.Used(), limit)
		}
	}
	if st := f.Stats(); st.ResidentBytes < 2<<20 {
		t.Errorf("%d bytes resident where 3 MiB are left", st.ResidentBytes)
	}
	if f.Room(9 << 20) {
		t.Error("room for more than there is")
	}
}

func TestPinOutlivesEviction(t *testing.T) {
	f := newFixture(t, 1<<20)
	var slots [60]Slot
	f.s.Enter()
	p := f.fill(&slots[0], 0, pageBytes)
	p.Pin()
	f.s.Exit()
	f.Drop(&slots[0])
	if st := f.Stats(); st.PinnedBytes != pageBytes || st.ZombieBytes != pageBytes || st.RetiringBytes != 0 {
		t.Fatalf("%+v", st)
	}
	for i := range slots {
		f.get(&slots[i], uint64(i), pageBytes)
	}
	p.Pin()
	p.Unpin()
	if !intact(p.Data(), 0) {
		t.Fatal("a pinned page was overwritten")
	}
	inUse := f.heap.InUse()
	p.Unpin()
	if st := f.Stats(); st.PinnedBytes != 0 || st.ZombieBytes != 0 || f.heap.InUse() != inUse-pageBytes {
		t.Fatalf("the last Unpin did not free: %+v", st)
	}
}

func TestPinnedPagesArePassedOver(t *testing.T) {
	f := newFixture(t, 4<<20)
	slots := make([]Slot, 400)
	f.s.Enter()
	var pinned []*Page
	for i := range 20 {
		pinned = append(pinned, f.fill(&slots[i], uint64(i), pageBytes))
		pinned[i].Pin()
	}
	f.s.Exit()
	for i := range slots {
		f.get(&slots[i], uint64(i), pageBytes)
	}
	for i, p := range pinned {
		if f.Load(&slots[i]) != p {
			t.Errorf("pinned page %d was evicted", i)
		}
		p.Unpin()
	}
	if st := f.Stats(); st.Overcommits != 0 || st.PinnedBytes != 0 {
		t.Errorf("%+v", st)
	}
}

// Inside an epoch a page stays valid without a pin, whatever happens to it.
func TestEpochProtectsLoadedPages(t *testing.T) {
	f := newFixture(t, 1<<20)
	var s Slot
	f.s.Enter()
	p := f.fill(&s, 5, pageBytes)
	f.Drop(&s)
	if st := f.Stats(); st.RetiringBytes != pageBytes || !intact(p.Data(), 5) {
		t.Fatalf("freed under a reader: %+v", st)
	}
	f.s.Exit()
	f.d.Collect()
	if f.heap.InUse() != 0 || f.Stats().RetiringBytes != 0 {
		t.Fatal("not freed after the reader left")
	}
	if invariants.Enabled {
		defer func() {
			if recover() == nil {
				t.Error("a use after free went unnoticed")
			}
		}()
		p.Data()
	}
}

func TestPinInsideTheEpochOfAnEvictedPage(t *testing.T) {
	f := newFixture(t, 1<<20)
	var s Slot
	f.s.Enter()
	p := f.fill(&s, 6, pageBytes)
	f.Drop(&s)
	p.Pin()
	f.s.Exit()
	f.d.Collect()
	if !intact(p.Data(), 6) || f.heap.InUse() == 0 {
		t.Fatal("freed in spite of the pin")
	}
	p.Unpin()
	if f.heap.InUse() != 0 {
		t.Fatal("not freed by the last Unpin")
	}
}

func TestOvercommitRatherThanFail(t *testing.T) {
	needRelease(t)
	f := newFixture(t, 512<<10)
	slots := make([]Slot, 40)
	var pages []*Page
	for i := range slots {
		f.s.Enter()
		p := f.fill(&slots[i], uint64(i), pageBytes)
		p.Pin()
		pages = append(pages, p)
		f.s.Exit()
	}
	st := f.Stats()
	if st.Overcommits == 0 || st.PinnedBytes != int64(len(slots))*pageBytes {
		t.Errorf("%+v", st)
	}
	for i, p := range pages {
		if !intact(p.Data(), uint64(i)) {
			t.Errorf("page %d was overwritten", i)
		}
		p.Unpin()
	}
	var s Slot
	for i := range 3 {
		f.get(&s, 1, pageBytes)
		f.Drop(&s)
		if f.b.Used() > f.b.Limit() {
			t.Errorf("step %d: the excess stays: %d of %d", i, f.b.Used(), f.b.Limit())
		}
	}
}

// A reader that does not leave holds all memory back that is evicted meanwhile.
// The others go on, slowly once much is held back; afterwards it all returns.
func TestStuckReaderSlowsOthersDown(t *testing.T) {
	limit := int64(4 << 20)
	f := newFixture(t, limit)
	stuck := f.d.Register()
	stuck.Enter()
	slots := make([]Slot, 48)
	for i := range slots {
		start := time.Now()
		f.get(&slots[i], uint64(i), 1<<20)
		held := int64(i-4) << 20
		if d := time.Since(start); held > f.heldBack() && d < yields*stuckPause {
			t.Errorf("with %d MiB held back a fill took only %v", held>>20, d)
		}
	}
	if st := f.Stats(); st.RetiringBytes < 32<<20 || st.Overcommits == 0 || st.ResidentBytes < limit/2 {
		t.Errorf("%+v", st)
	}
	stuck.Exit()
	f.get(&slots[0], 0, 1<<20)
	if f.b.Used() > limit || f.Stats().RetiringBytes > 1<<20 {
		t.Errorf("%d used of %d, %+v", f.b.Used(), limit, f.Stats())
	}
}

func TestDropAll(t *testing.T) {
	f := newFixture(t, 8<<20)
	slots := make([]Slot, 50)
	for i := range slots {
		if i%3 != 0 {
			f.get(&slots[i], uint64(i), 8192)
		}
	}
	f.DropAll(slots)
	f.DropAll(slots)
	for i := range slots {
		if f.Load(&slots[i]) != nil {
			t.Fatalf("slot %d is not empty", i)
		}
	}
	if st := f.Stats(); st.ResidentBytes != 0 || f.heap.InUse() != 0 || st.Evictions != 0 {
		t.Errorf("%+v", st)
	}
}

func TestCloseReportsPinnedPages(t *testing.T) {
	before := arena.Mapped()
	b, d := arena.NewBudget(4<<20), epoch.New()
	c := New(b, d)
	slots := make([]Slot, 10)
	for i := range slots {
		p, err := c.Fill(&slots[i], pageBytes, func(dst []byte) error { write(dst, 1); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			p.Pin()
		}
	}
	p := c.Load(&slots[3])
	if err := c.Close(); err == nil {
		t.Error("Close said nothing of a pinned page")
	}
	if c.Load(&slots[3]) != nil || !intact(p.Data(), 1) {
		t.Error("a closed cache should be empty, and the pinned page intact")
	}
	if _, err := c.Fill(&slots[0], 10, func([]byte) error { return nil }); !errors.Is(err, base.ErrClosed) {
		t.Errorf("Fill after Close: %v", err)
	}
	p.Unpin()
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if n := arena.Mapped() - before; n != 0 || b.Used() != 0 {
		t.Errorf("%d mapped, %d counted", n, b.Used())
	}
}

// A read that is under way when the cache closes must not publish its page.
func TestCloseDuringFill(t *testing.T) {
	before := arena.Mapped()
	c := New(arena.NewBudget(4<<20), epoch.New())
	var s Slot
	_, err := c.Fill(&s, pageBytes, func([]byte) error {
		if err := c.Close(); err == nil {
			t.Error("Close said nothing of the memory being read into")
		}
		return nil
	})
	if !errors.Is(err, base.ErrClosed) || c.Load(&s) != nil {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); err != nil || arena.Mapped() != before {
		t.Errorf("%v, %d bytes mapped", err, arena.Mapped()-before)
	}
}

func TestMisuseIsAsserted(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("assertions are off")
	}
	f := newFixture(t, 1<<20)
	var s Slot
	f.s.Enter()
	p := f.fill(&s, 1, 100)
	f.s.Exit()
	for name, misuse := range map[string]func(){
		"Unpin without Pin": p.Unpin,
		"Pin after the end": func() { f.Drop(&s); p.Pin() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: not noticed", name)
				}
			}()
			misuse()
		}()
		p.state.Store(p.state.Load() &^ pinMask)
		for i := range f.pinned {
			f.pinned[i].Store(0)
		}
		if f.Load(&s) == nil {
			p = f.fill(&s, 1, 100)
		}
	}
}

func TestHitsDoNotAllocate(t *testing.T) {
	f := newFixture(t, 4<<20)
	var s Slot
	f.get(&s, 1, pageBytes)
	sum := 0
	if n := testing.AllocsPerRun(200, func() {
		f.s.Enter()
		p := f.Load(&s)
		p.Pin()
		sum += len(p.Data())
		p.Unpin()
		f.s.Exit()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMovedPages: they are found in the slots they were moved to, and nowhere else, and
// are evicted from there.
func TestMovedPages(t *testing.T) {
	f := newFixture(t, 16*pageBytes)
	from, to := make([]Slot, 6), make([]Slot, 6)
	for i := range 4 { // the others are empty
		f.get(&from[i], uint64(i), pageBytes)
	}
	f.Move(to, from)
	for i := range from {
		if from[i].Peek() != nil || (to[i].Peek() != nil) != (i < 4) {
			t.Fatalf("slot %d: %v before, %v now", i, from[i].Peek(), to[i].Peek())
		}
	}
	for i := range 4 {
		if !f.get(&to[i], uint64(i), pageBytes) {
			t.Errorf("page %d was read again", i)
		}
		if f.get(&from[i], uint64(i), pageBytes) {
			t.Errorf("page %d is where it was", i)
		}
	}
	f.DropAll(from)
	f.Room(16 * pageBytes)
	for i := range to {
		if to[i].Peek() != nil {
			t.Errorf("page %d was not evicted", i)
		}
	}
}

// Who gets no memory from the system is helped by pages, at last by all of them, and not for ever; the limit says so.
func TestPagesGiveWay(t *testing.T) {
	f := newFixture(t, 64<<20)
	slots := make([]Slot, 200)
	for i := range slots {
		f.get(&slots[i], uint64(i), pageBytes)
	}
	before := f.Stats().ResidentBytes
	if !f.GiveWay(0, 0) || f.Stats().ResidentBytes < before*3/4 {
		t.Errorf("%d of %d are left of the first", f.Stats().ResidentBytes, before)
	}
	tried := 1
	for f.GiveWay(0, tried) && tried < 100 {
		tried++
	}
	if left := f.Stats().ResidentBytes; tried > giveWays || left > 1<<20 || f.b.Limit() >= before {
		t.Errorf("after %d tries %d are left, the limit is %d", tried, left, f.b.Limit())
	}
}
