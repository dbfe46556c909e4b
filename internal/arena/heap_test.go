package arena

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cairndb/cairn/internal/invariants"
)

// noLeak fails the test if it ends with more bytes mapped than it began with.
func noLeak(t *testing.T) {
	t.Helper()
	before := Mapped()
	t.Cleanup(func() {
		if n := Mapped() - before; n != 0 {
			t.Errorf("%d bytes still mapped", n)
		}
	})
}

func mustAlloc(t *testing.T, h *Heap, n int) []byte {
	t.Helper()
	b, err := h.Alloc(n)
	if err != nil || len(b) != n {
		t.Fatalf("Alloc(%d): %d bytes, %v", n, len(b), err)
	}
	return b
}

func mustFree(t *testing.T, h *Heap, b []byte) {
	t.Helper()
	if err := h.Free(b); err != nil {
		t.Fatal(err)
	}
}

// check compares the heap's books with what its chunks say.
func (h *Heap) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var counted, inUse, mapped int64
	idle := 0
	for i, c := range h.mu.chunks {
		if c.used == 0 {
			idle++
		}
		counted += c.counted()
		inUse += int64(c.used) * int64(frameBytes)
		mapped += int64(len(c.mem))
		checkChunk(t, c)
		if h.mu.runs.at(i) != c.runs() {
			t.Fatalf("chunk %d: runs %v recorded, %v are there", i, h.mu.runs.at(i), c.runs())
		}
		if i > 0 && h.mu.chunks[i-1].base >= c.base {
			t.Fatal("chunks out of order")
		}
	}
	if idle != h.mu.idle || h.mu.runs.n != len(h.mu.chunks) {
		t.Fatalf("%d chunks, %d of them idle, recorded %d and %d", len(h.mu.chunks), idle, h.mu.runs.n, h.mu.idle)
	}
	for _, b := range h.mu.large {
		counted, inUse, mapped = counted+int64(len(b)), inUse+int64(len(b)), mapped+int64(len(b))
	}
	if counted != h.mu.counted || inUse != h.mu.inUse || mapped != h.mu.mapped {
		t.Fatalf("books say counted %d, in use %d, mapped %d; found %d, %d, %d",
			h.mu.counted, h.mu.inUse, h.mu.mapped, counted, inUse, mapped)
	}
	if used := h.budget.UsedBy(h.class); used != counted {
		t.Fatalf("the budget says %d, the heap %d", used, counted)
	}
}

func checkChunk(t *testing.T, c *chunk) {
	t.Helper()
	frames := len(c.mem) / frameBytes
	used := 0
	for i := 0; i < frames; i++ {
		n := int(c.spans[i])
		if n > 0 && c.free.count(i, n) != 0 {
			t.Fatalf("frames %d+%d are allocated and free", i, n)
		}
		used += n
	}
	if used != c.used || c.free.count(0, frames) != frames-used {
		t.Fatalf("%d frames allocated, %d on the books, %d free", used, c.used, c.free.count(0, frames))
	}
	if dirty := c.free.without(c.clean); dirty.count(0, frames) != c.dirty {
		t.Fatalf("%d dirty frames, %d on the books", dirty.count(0, frames), c.dirty)
	}
	if stray := c.clean.without(c.free); stray != (frameMap{}) {
		t.Fatal("a clean frame is not free")
	}
}

func TestHeapFirstFitReusesTheLowestHole(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	var all [][]byte
	for range 8 {
		all = append(all, mustAlloc(t, h, 3*frameBytes))
	}
	mustFree(t, h, all[5])
	mustFree(t, h, all[2])
	if b := mustAlloc(t, h, 2*frameBytes); address(b) != address(all[2]) {
		t.Error("a hole that is big enough was passed by")
	} else {
		all[2] = b
	}
	if b := mustAlloc(t, h, 3*frameBytes); address(b) != address(all[5]) {
		t.Error("the next hole that fits was passed by")
	} else {
		all[5] = b
	}
	h.check(t)
	for _, b := range all {
		mustFree(t, h, b)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeapMergesNeighbours(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	a, b, c := mustAlloc(t, h, frameBytes), mustAlloc(t, h, frameBytes), mustAlloc(t, h, frameBytes)
	stay := mustAlloc(t, h, frameBytes)
	mustFree(t, h, a)
	mustFree(t, h, c)
	mustFree(t, h, b)
	if d := mustAlloc(t, h, 3*frameBytes); address(d) != address(a) {
		t.Error("three neighbouring frames did not become one run")
	} else {
		mustFree(t, h, d)
	}
	mustFree(t, h, stay)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeapKeepsOneSpareChunk(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	var all [][]byte
	for range 5 {
		all = append(all, mustAlloc(t, h, HugeBytes))
	}
	if h.Mapped() != 5*HugeBytes {
		t.Fatalf("%d bytes mapped", h.Mapped())
	}
	for _, b := range all {
		mustFree(t, h, b)
	}
	if h.Mapped() != HugeBytes {
		t.Errorf("%d bytes mapped with nothing allocated, want one chunk", h.Mapped())
	}
	h.check(t)
	if err := h.Close(); err != nil || h.Mapped() != 0 {
		t.Fatalf("Close: %v, %d bytes mapped", err, h.Mapped())
	}
}

// TestHeapKeep: a heap keeps as much free memory as it was told, until nobody has wanted it for a while
// or it is needed elsewhere.
func TestHeapKeep(t *testing.T) {
	noLeak(t)
	b := NewBudget(10 * HugeBytes)
	h := NewHeap(b, ClassPages)
	h.Keep(3 * HugeBytes)
	use := func(n int) {
		var all [][]byte
		for range n {
			all = append(all, mustAlloc(t, h, HugeBytes))
		}
		for _, b := range all {
			mustFree(t, h, b)
		}
	}
	mapped := func(when string, want int64) {
		t.Helper()
		if got := h.Mapped() / HugeBytes; got != want {
			t.Errorf("%s: %d chunks are mapped, want %d", when, got, want)
		}
		h.check(t)
	}
	use(5)
	mapped("unused", 3)
	h.Age()
	mapped("just used", 3)
	use(2)
	h.Age()
	mapped("when one was not used again", 2)
	h.Age()
	mapped("when none was", 1)
	use(5)
	b.Add(ClassMemtable, 9*HugeBytes)
	mustFree(t, h, mustAlloc(t, h, 1))
	mapped("when memory is scarce", 1)
	b.Add(ClassMemtable, -9*HugeBytes)
	use(5)
	h.Trim()
	mapped("when it was told to", 1)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeapLargeRequestsAreMappingsOfTheirOwn(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	h := NewHeap(b, ClassPages)
	x := mustAlloc(t, h, HugeBytes+1)
	x[HugeBytes] = 1
	if b.Used() != int64(roundUp(HugeBytes+1, frameBytes)) {
		t.Errorf("%d bytes counted", b.Used())
	}
	h.check(t)
	mustFree(t, h, x)
	if b.Used() != 0 || h.Mapped() != 0 {
		t.Errorf("after Free: %d counted, %d mapped", b.Used(), h.Mapped())
	}
}

func TestHeapRefusesStrangersAndDoubleFrees(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	x := mustAlloc(t, h, 3*frameBytes)
	refuse := func(what string, b []byte) {
		t.Helper()
		defer func() {
			if r := recover(); (r != nil) != invariants.Enabled {
				t.Errorf("%s: recovered %v with assertions %v", what, r, invariants.Enabled)
			}
		}()
		if err := h.Free(b); !errors.Is(err, ErrNotAllocated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refuse("inner frame", x[frameBytes:])
	refuse("inner byte", x[1:])
	refuse("Go heap", make([]byte, 8))
	mustFree(t, h, x[:1])
	refuse("twice", x)
	h.check(t)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeapOverwritesFreedMemory(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("assertions are off")
	}
	h := NewHeap(NewBudget(0), ClassPages)
	defer h.Close()
	x := mustAlloc(t, h, 100)
	clear(x)
	mustFree(t, h, x)
	if !bytes.Equal(x, bytes.Repeat([]byte{poison}, 100)) {
		t.Error("freed memory still readable")
	}
}

func TestHeapHonoursALimitSmallerThanAChunk(t *testing.T) {
	noLeak(t)
	limit := int64(10 * frameBytes)
	b := NewBudget(limit)
	h := NewHeap(b, ClassPages)
	var all [][]byte
	for range 10 {
		x, err := h.AllocWithin(frameBytes, limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	if _, err := h.AllocWithin(frameBytes, limit); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("beyond the limit: %v", err)
	}
	h.check(t)
	if x, err := h.Alloc(1); err != nil || b.Used() != limit+int64(frameBytes) {
		t.Fatalf("Alloc beyond the limit: %v, %d used", err, b.Used())
	} else {
		mustFree(t, h, x)
	}
	var beyond [][]byte // a second chunk, which is not of huge pages: those count as a whole
	for len(h.mu.chunks) < 2 {
		x, err := h.Alloc(frameBytes)
		if err != nil {
			t.Fatal(err)
		}
		beyond = append(beyond, x)
	}
	if got, want := b.Used(), limit+int64(len(beyond)*frameBytes); got != want {
		t.Errorf("%d bytes counted beyond the limit, want %d", got, want)
	}
	for _, x := range beyond {
		mustFree(t, h, x)
	}
	for _, x := range all {
		mustFree(t, h, x)
	}
	h.check(t)
	if err := h.Close(); err != nil || b.Used() != 0 {
		t.Fatalf("%v, %d used", err, b.Used())
	}
}

// Free frames scattered over a full budget must not stop a longer run.
func TestHeapFragmentationCostsNoRoom(t *testing.T) {
	if !canRelease(t) {
		t.Skip("the platform cannot give back single pages")
	}
	noLeak(t)
	limit := int64(64 * frameBytes)
	h := NewHeap(NewBudget(limit), ClassPages)
	var all [][]byte
	for range 64 {
		x, err := h.AllocWithin(frameBytes, limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	for i := 0; i < 64; i += 2 {
		mustFree(t, h, all[i])
	}
	x, err := h.AllocWithin(32*frameBytes, limit)
	if err != nil {
		t.Fatalf("32 of 64 frames are free, in holes: %v", err)
	}
	h.check(t)
	if h.budget.Used() > limit {
		t.Errorf("%d used of %d", h.budget.Used(), limit)
	}
	mustFree(t, h, x)
	for i := 1; i < 64; i += 2 {
		mustFree(t, h, all[i])
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func canRelease(t *testing.T) bool {
	t.Helper()
	b, err := Map(pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	return Release(b)
}

func TestHeapScavengeLowersTheBudget(t *testing.T) {
	if !canRelease(t) {
		t.Skip("the platform cannot give back single pages")
	}
	noLeak(t)
	b := NewBudget(0)
	h := NewHeap(b, ClassPages)
	first := mustAlloc(t, h, HugeBytes) // the chunk without huge pages
	stay, gone := mustAlloc(t, h, frameBytes), mustAlloc(t, h, 20*frameBytes)
	for i := range stay {
		stay[i] = 7
	}
	mustFree(t, h, gone)
	if b.Used() != 2*HugeBytes || h.Spare() != HugeBytes-int64(frameBytes) {
		t.Fatalf("%d used, %d spare before", b.Used(), h.Spare())
	}
	if n := h.Scavenge(10*int64(frameBytes) - 1); n != 10*int64(frameBytes) {
		t.Errorf("scavenged %d", n)
	}
	h.check(t)
	h.Scavenge(HugeBytes)
	h.check(t)
	if b.Used() != HugeBytes+int64(frameBytes) {
		t.Errorf("%d used with a chunk and one frame allocated", b.Used())
	}
	if stay[0] != 7 || stay[frameBytes-1] != 7 {
		t.Error("scavenging touched memory in use")
	}
	again := mustAlloc(t, h, 5*frameBytes)
	if b.Used() != HugeBytes+6*int64(frameBytes) {
		t.Errorf("%d used with a chunk and six frames allocated", b.Used())
	}
	mustFree(t, h, first)
	mustFree(t, h, stay)
	mustFree(t, h, again)
	if err := h.Close(); err != nil || b.Used() != 0 {
		t.Fatalf("%v, %d used", err, b.Used())
	}
}

// A heap of a few frames takes no more memory than these: it may stay so small.
func TestHeapBeginsSmall(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	h := NewHeap(b, ClassPages)
	x := mustAlloc(t, h, 3*frameBytes)
	if b.Used() != int64(3*frameBytes) {
		t.Errorf("%d used with three frames allocated", b.Used())
	}
	mustFree(t, h, x)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// What another spender takes beyond the limit, spare memory gives back.
func TestHeapKeepsNothingSpareBeyondTheBudget(t *testing.T) {
	if !canRelease(t) {
		t.Skip("the platform cannot give back single pages")
	}
	noLeak(t)
	b := NewBudget(HugeBytes)
	h := NewHeap(b, ClassPages)
	stay, gone := mustAlloc(t, h, frameBytes), mustAlloc(t, h, 9*frameBytes)
	b.Add(ClassMemtable, HugeBytes)
	mustFree(t, h, gone)
	if h.Spare() != 0 || b.UsedBy(ClassPages) != int64(frameBytes) {
		t.Errorf("%d spare, %d counted for one frame in use", h.Spare(), b.UsedBy(ClassPages))
	}
	h.check(t)
	b.Add(ClassMemtable, -HugeBytes)
	mustFree(t, h, mustAlloc(t, h, 9*frameBytes))
	b.Add(ClassMemtable, HugeBytes)
	again := mustAlloc(t, h, 2*frameBytes)
	if h.Spare() != 0 {
		t.Errorf("%d spare beyond the budget after Alloc", h.Spare())
	}
	b.Add(ClassMemtable, -HugeBytes)
	mustFree(t, h, again)
	mustFree(t, h, stay)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeapCloseLeavesWhatIsInUse(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	small, large := mustAlloc(t, h, 10), mustAlloc(t, h, 3*HugeBytes)
	if err := h.Close(); err == nil {
		t.Fatal("Close said nothing of two allocations")
	}
	if _, err := h.Alloc(1); !errors.Is(err, ErrHeapClosed) {
		t.Fatalf("Alloc after Close: %v", err)
	}
	small[9], large[3*HugeBytes-1] = 1, 1
	mustFree(t, h, small)
	mustFree(t, h, large)
	if h.Mapped() != 0 {
		t.Errorf("%d bytes mapped after the last Free", h.Mapped())
	}
	if err := h.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestHeapRefusesNonsense(t *testing.T) {
	h := NewHeap(NewBudget(0), ClassPages)
	for _, n := range []int{0, -1, -1 << 31, int(^uint(0) >> 1)} {
		if _, err := h.Alloc(n); err == nil {
			t.Errorf("Alloc(%d) succeeded", n)
		}
	}
}

// Random allocations and frees, each filled with its own pattern, the books
// checked as we go.
func TestHeapRandomly(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		noLeak(t)
		randomHeap(t, rand.New(rand.NewPCG(seed, 0)), []int64{0, 1 << 20, 5 << 20}[seed%3])
	}
}

func randomHeap(t *testing.T, r *rand.Rand, limit int64) {
	b := NewBudget(limit)
	h := NewHeap(b, ClassPages)
	var live [][]byte
	for step := range 1500 {
		if r.IntN(5) < 3 && len(live) < 120 {
			live = append(live, randomAlloc(t, h, r))
		} else if len(live) > 0 {
			i := r.IntN(len(live))
			checkPattern(t, live[i])
			mustFree(t, h, live[i])
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		if step%50 == 0 {
			h.check(t)
			h.Scavenge(int64(r.IntN(1 << 20)))
			h.check(t)
			if x, err := h.AllocWithin(1+r.IntN(HugeBytes), b.Used()-int64(r.IntN(1<<20))); err == nil {
				mustFree(t, h, x)
			} else if !errors.Is(err, ErrNoRoom) {
				t.Fatal(err)
			}
			h.check(t)
		}
	}
	for _, x := range live {
		checkPattern(t, x)
		mustFree(t, h, x)
	}
	if err := h.Close(); err != nil || b.Used() != 0 {
		t.Fatalf("%v, %d used", err, b.Used())
	}
}

func randomAlloc(t *testing.T, h *Heap, r *rand.Rand) []byte {
	n := 1 + r.IntN(70<<10)
	if r.IntN(100) == 0 {
		n = 1 + r.IntN(4<<20)
	}
	x := mustAlloc(t, h, n)
	pattern(x)
	return x
}

// pattern marks both ends of every frame with the address.
func pattern(x []byte) {
	for i := 0; i < len(x); i += frameBytes {
		x[i] = byte(address(x) >> 12)
	}
	x[len(x)-1] = byte(address(x) >> 12)
}

func checkPattern(t *testing.T, x []byte) {
	t.Helper()
	for i := 0; i < len(x); i += frameBytes {
		if x[i] != byte(address(x)>>12) {
			t.Fatalf("byte %d of an allocation of %d was overwritten", i, len(x))
		}
	}
}

func TestHeapConcurrently(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(3<<20), ClassPages)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			var live [][]byte
			for range 400 {
				live = append(live, randomAlloc(t, h, r))
				if len(live) > 6 {
					checkPattern(t, live[0])
					mustFree(t, h, live[0])
					live = live[1:]
				}
			}
			for _, x := range live {
				mustFree(t, h, x)
			}
		})
	}
	wg.Wait()
	h.check(t)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkHeapAllocFree(b *testing.B) {
	h := NewHeap(NewBudget(0), ClassPages)
	defer h.Close()
	var ring [256][]byte
	for i := 0; b.Loop(); i++ {
		if x := ring[i%256]; x != nil {
			h.Free(x)
		}
		ring[i%256], _ = h.Alloc(36 << 10)
	}
	for _, x := range ring {
		if x != nil {
			h.Free(x)
		}
	}
}

func BenchmarkHeapAllocInTenGigabytes(b *testing.B) {
	h := NewHeap(NewBudget(1), ClassPages)
	defer h.Close()
	var all [][]byte
	for range 5000 * 51 {
		x, err := h.Alloc(40 << 10)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, x)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		i := r.IntN(len(all))
		h.Free(all[i])
		all[i], _ = h.Alloc(40 << 10)
	}
	b.StopTimer()
	for _, x := range all {
		h.Free(x)
	}
}

// What an allocation has reserved is not given back while room is made for the rest of it,
// and that nothing of it could be does not mean that nothing ever can be.
func TestHeapReservedFramesAreNoRoom(t *testing.T) {
	if !canRelease(t) {
		t.Skip("the platform cannot give back single pages")
	}
	noLeak(t)
	b := NewBudget(10 * int64(frameBytes))
	h := NewHeap(b, ClassPages)
	stay, gone := mustAlloc(t, h, 7*frameBytes), mustAlloc(t, h, 3*frameBytes)
	mustFree(t, h, gone)
	if _, err := h.AllocWithin(5*frameBytes, b.Limit()); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("three frames with memory and two without, beside seven of ten: %v", err)
	}
	h.check(t)
	if n := h.Scavenge(1); n != int64(frameBytes) {
		t.Errorf("%d bytes are given back afterwards, want a frame", n)
	}
	h.check(t)
	mustFree(t, h, stay)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestReady: memory is at hand before it is needed, within the limit, and goes again.
func TestReady(t *testing.T) {
	b := NewBudget(64 << 20)
	h := NewHeap(b, ClassPages)
	yes := func() bool { return true }
	h.Ready(5<<20, 3<<20, yes)
	if n := h.Spare(); n != HugeBytes {
		t.Errorf("%d bytes are at hand, a limit of 3 MiB allows for %d", n, HugeBytes)
	}
	h.Ready(5<<20, 64<<20, yes)
	if n := h.Spare(); n != 3*HugeBytes || b.Used() != n {
		t.Errorf("%d bytes are at hand and %d are counted, want %d", n, b.Used(), 3*HugeBytes)
	}
	asked := 0
	h.Ready(64<<20, 64<<20, func() bool { asked++; return asked < 2 })
	if n := h.Spare(); n != 4*HugeBytes {
		t.Errorf("%d bytes are at hand, want one step more", n)
	}
	p, err := h.Alloc(100 << 10)
	if err != nil || b.Used() != 4*HugeBytes {
		t.Errorf("%v; %d bytes are counted, want no more than there were", err, b.Used())
	}
	h.Trim()
	if n := h.Mapped(); n != 2*HugeBytes {
		t.Errorf("%d bytes are mapped, want those in use and a spare", n)
	}
	if err := errors.Join(h.Free(p), h.Close()); err != nil {
		t.Error(err)
	}
	h.Ready(5<<20, 64<<20, yes)
	if n := h.Mapped(); n != 0 || b.Used() != 0 {
		t.Errorf("%d bytes are mapped and %d counted by a heap that is closed", n, b.Used())
	}
}
