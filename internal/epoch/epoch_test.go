package epoch

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cairndb/cairn/internal/invariants"
)

// Slots are as far apart as two cache lines, and what their owners write lies
// within one, wherever the allocator puts the chunk.
func TestSlotsShareNoCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	if n := unsafe.Sizeof(Slot{}); n != slotBytes {
		t.Errorf("a slot has %d bytes, want %d", n, slotBytes)
	}
	a := uintptr(unsafe.Pointer(New().Register()))
	if a%64+slotFieldBytes > 64 {
		t.Errorf("the fields of the slot at %#x straddle two lines", a)
	}
}

func TestRetireRunsAtOnceWithNobodyInside(t *testing.T) {
	d := New()
	s := d.Register()
	ran := 0
	d.Retire(func() { ran++ })
	s.Enter()
	s.Exit()
	d.Retire(func() { ran++ })
	if ran != 2 || d.Pending() != 0 {
		t.Fatalf("%d ran, %d pending", ran, d.Pending())
	}
}

func TestRetireWaitsForThoseInside(t *testing.T) {
	d := New()
	a, b := d.Register(), d.Register()
	a.Enter()
	ran := false
	d.Retire(func() { ran = true })
	b.Enter() // too late to hold the object
	d.Collect()
	if ran || d.Pending() != 1 {
		t.Fatal("freed under a reader")
	}
	a.Exit()
	d.Collect()
	if !ran || d.Pending() != 0 {
		t.Fatal("a later reader held the free back")
	}
	d.Collect()
	b.Exit()
}

func TestEnterNests(t *testing.T) {
	d := New()
	s := d.Register()
	s.Enter()
	s.Enter()
	ran := 0
	d.Retire(func() { ran++ })
	s.Exit()
	d.Collect()
	if ran != 0 || !s.Inside() {
		t.Fatal("the inner Exit let go")
	}
	s.Exit()
	d.Collect()
	if ran != 1 || s.Inside() {
		t.Fatal("the outer Exit did not let go")
	}
}

// An inner Enter must not move the slot to a younger epoch.
func TestInnerEnterKeepsTheEpoch(t *testing.T) {
	d := New()
	s := d.Register()
	s.Enter()
	ran := false
	d.Retire(func() { ran = true })
	s.Enter()
	d.Collect()
	if ran {
		t.Fatal("freed under the outer critical section")
	}
	s.Exit()
	s.Exit()
}

func TestFreeFunctionsRunInOrderAndOnce(t *testing.T) {
	d := New()
	s := d.Register()
	var got []int
	for i := range 3 * queueKeep {
		if i%700 == 0 {
			s.Enter()
		}
		d.Retire(func() { got = append(got, i) })
		if i%700 == 650 {
			s.Exit()
		}
	}
	if s.Inside() {
		s.Exit()
	}
	d.Collect()
	d.Collect()
	if len(got) != 3*queueKeep || !slices.IsSorted(got) || d.Pending() != 0 {
		t.Fatalf("%d ran, in order: %v, %d pending", len(got), slices.IsSorted(got), d.Pending())
	}
}

func TestOldFreesGoWhileAYoungReaderStays(t *testing.T) {
	d := New()
	old, young := d.Register(), d.Register()
	var got []int
	old.Enter()
	d.Retire(func() { got = append(got, 1) })
	young.Enter()
	d.Retire(func() { got = append(got, 2) })
	old.Exit()
	d.Collect()
	if !slices.Equal(got, []int{1}) {
		t.Fatalf("ran %v, want only the first", got)
	}
	young.Exit()
	d.Collect()
	if !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("ran %v", got)
	}
}

func TestFreeMayRetireAndRegister(t *testing.T) {
	d := New()
	ran := 0
	d.Retire(func() {
		d.Register().Release()
		d.Retire(func() { ran++; d.Collect() })
	})
	if ran != 1 || d.Pending() != 0 {
		t.Fatalf("%d ran, %d pending", ran, d.Pending())
	}
}

func TestReleasedSlotsAreReused(t *testing.T) {
	d := New()
	s := d.Register()
	var visible atomic.Uint64
	visible.Store(9)
	s.BeginSnapshot(&visible)
	s.Release()
	if n := d.Snapshots(nil); len(n) != 0 {
		t.Errorf("a released slot shows %v", n)
	}
	if d.Register() != s {
		t.Error("the free slot was passed by")
	}
}

// Many slots over many chunks: each is found inside, and none is handed out twice.
func TestScansFindParticipantsInEveryChunk(t *testing.T) {
	d := New()
	seen := map[*Slot]bool{}
	var all []*Slot
	for range 5*chunkSlots + 3 {
		s := d.Register()
		if seen[s] {
			t.Fatal("one slot for two participants")
		}
		seen[s] = true
		all = append(all, s)
	}
	for _, i := range []int{0, chunkSlots - 1, chunkSlots, 3*chunkSlots + 7, len(all) - 1} {
		all[i].Enter()
		ran := false
		d.Retire(func() { ran = true })
		d.Collect()
		if ran {
			t.Errorf("slot %d was missed", i)
		}
		all[i].Exit()
		d.Collect()
		if !ran {
			t.Errorf("slot %d holds on", i)
		}
	}
	for _, s := range all {
		s.Release()
	}
	if d.Participants() != 0 || d.Register() != all[0] {
		t.Error("the oldest slot should come first")
	}
}

// With many participants Retire scans rarely; Collect still does at once.
func TestRetireScansInProportion(t *testing.T) {
	d := New()
	for range 10 * scanShare {
		d.Register()
	}
	ran := 0
	for range 9 {
		d.Retire(func() { ran++ })
	}
	if ran != 0 {
		t.Errorf("%d ran before the tenth", ran)
	}
	if d.Retire(func() { ran++ }); ran != 10 {
		t.Errorf("%d of 10 ran", ran)
	}
	d.Retire(func() { ran++ })
	if d.Collect(); ran != 11 {
		t.Errorf("Collect ran %d of 11", ran)
	}
}

func TestSnapshots(t *testing.T) {
	d := New()
	var visible atomic.Uint64
	a, b, c := d.Register(), d.Register(), d.Register()
	if a.BeginSnapshot(&visible) != 0 {
		t.Fatal("wrong sequence")
	}
	visible.Store(5)
	c.BeginSnapshot(&visible)
	visible.Store(7)
	if b.BeginSnapshot(&visible) != 7 || b.Snapshot() != 7 {
		t.Fatal("wrong sequence")
	}
	got := d.Snapshots([]uint64{99})
	slices.Sort(got)
	if !slices.Equal(got, []uint64{0, 5, 7, 99}) {
		t.Fatalf("Snapshots: %v", got)
	}
	a.ClearSnapshot()
	b.ClearSnapshot()
	if got := d.Snapshots(nil); !slices.Equal(got, []uint64{5}) || b.Snapshot() != 0 {
		t.Fatalf("Snapshots: %v", got)
	}
}

// Thousands that are begun one after another come in that order, which is soon sorted.
func TestSnapshotsComeInTheirOrder(t *testing.T) {
	d := New()
	var visible atomic.Uint64
	for range 3*chunkSlots + 1 {
		d.Register().BeginSnapshot(&visible)
		visible.Add(1)
	}
	if got := d.Snapshots(nil); len(got) != 3*chunkSlots+1 || !slices.IsSorted(got) {
		t.Errorf("Snapshots: %v", got)
	}
}

// Where visible grows meanwhile the mark must be there before it is loaded again. Whoever
// watches the slot long enough sees it, on one processor too: there are threads enough for the system to switch between.
func TestBeginSnapshotMarksItsSlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s := New().Register()
	var visible atomic.Uint64
	var stop atomic.Bool
	var owner sync.WaitGroup
	owner.Go(func() {
		for !stop.Load() {
			s.BeginSnapshot(&visible)
			s.ClearSnapshot()
		}
	})
	seen := false
	for start := time.Now(); !seen && time.Since(start) < 30*time.Second; {
		visible.Add(1)
		seen = s.snapshot.Load() == snapshotPending
	}
	stop.Store(true)
	owner.Wait()
	if !seen {
		t.Error("no pending mark was ever seen")
	}
}

// A registration caught between its two stores is waited for, not passed by.
func TestSnapshotsWaitOutPendingMarks(t *testing.T) {
	d := New()
	s := d.Register()
	s.snapshot.Store(snapshotPending)
	got := make(chan []uint64)
	go func() { got <- d.Snapshots(nil) }()
	select {
	case g := <-got:
		t.Fatalf("did not wait: %v", g)
	case <-time.After(20 * time.Millisecond):
	}
	s.snapshot.Store(3 + 1)
	if g := <-got; !slices.Equal(g, []uint64{3}) {
		t.Fatalf("Snapshots: %v", g)
	}
}

func TestMisuseIsAsserted(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("assertions are off")
	}
	for name, misuse := range map[string]func(s *Slot){
		"Exit without Enter": func(s *Slot) { s.Exit() },
		"Release inside":     func(s *Slot) { s.Enter(); s.Release() },
		"Release twice":      func(s *Slot) { s.Release(); s.Release() },
		"two snapshots":      func(s *Slot) { var v atomic.Uint64; s.BeginSnapshot(&v); s.BeginSnapshot(&v) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("not noticed")
				}
			}()
			misuse(New().Register())
		})
	}
}

// object is reachable until it is unlinked and poisoned when it is freed.
type object struct {
	freed atomic.Bool
	value int // written plainly when freed: the race detector watches it
}

// Readers follow shared pointers inside the epoch and must never see a freed
// object; writers replace and retire.
func TestReadersNeverSeeFreedObjects(t *testing.T) {
	d := New()
	var cells [4]atomic.Pointer[object]
	for i := range cells {
		cells[i].Store(&object{})
	}
	var retired, freed, bad atomic.Int64
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for g := range 4 {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			s := d.Register()
			defer func() { s.Release() }()
			for i := 0; !stop.Load(); i++ {
				s.Enter()
				o := cells[r.IntN(len(cells))].Load()
				for range r.IntN(20) {
					if o.freed.Load() || o.value != 0 {
						bad.Add(1)
					}
				}
				s.Exit()
				if i%64 == 0 {
					s.Release()
					s = d.Register()
				}
			}
		})
	}
	for g := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range 4000 {
				old := cells[r.IntN(len(cells))].Swap(&object{})
				retired.Add(1)
				d.Retire(func() {
					old.value = 1
					if old.freed.Swap(true) {
						bad.Add(1)
					}
					freed.Add(1)
				})
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	d.Collect()
	if bad.Load() != 0 || freed.Load() != retired.Load() || d.Pending() != 0 {
		t.Fatalf("%d bad accesses, %d of %d freed", bad.Load(), freed.Load(), retired.Load())
	}
}

// A compaction loads visible, asks for the snapshots, and keeps what they see and what those see that
// are not older than visible was. No transaction may find that nothing is kept for its sequence.
func TestNoSnapshotIsMissed(t *testing.T) {
	d := New()
	type compaction struct {
		visible   uint64
		snapshots []uint64
	}
	var visible atomic.Uint64
	var last atomic.Pointer[compaction]
	last.Store(&compaction{})
	var stop atomic.Bool
	var bad atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			s := d.Register()
			defer s.Release()
			for !stop.Load() {
				seq := s.BeginSnapshot(&visible)
				for range 30 {
					if c := last.Load(); c.visible > seq && !slices.Contains(c.snapshots, seq) {
						bad.Add(1)
					}
				}
				s.ClearSnapshot()
			}
		})
	}
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		visible.Add(1) // by this goroutine: there may be no third processor
		v := visible.Load()
		last.Store(&compaction{v, d.Snapshots(nil)})
	}
	stop.Store(true)
	wg.Wait()
	if bad.Load() != 0 {
		t.Fatalf("%d snapshots were missed", bad.Load())
	}
}

func TestEnterAndSnapshotDoNotAllocate(t *testing.T) {
	s := New().Register()
	var visible atomic.Uint64
	if n := testing.AllocsPerRun(100, func() {
		s.Enter()
		s.BeginSnapshot(&visible)
		s.ClearSnapshot()
		s.Exit()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRetireDoesNotAllocate(t *testing.T) {
	d := New()
	s := d.Register()
	free := func() {}
	if n := testing.AllocsPerRun(100, func() {
		d.Retire(free)
		s.Enter()
		d.Retire(free)
		d.Retire(free)
		s.Exit()
		d.Collect()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEnterExit(b *testing.B) {
	s := New().Register()
	for b.Loop() {
		s.Enter()
		s.Exit()
	}
}

func BenchmarkEnterExitParallel(b *testing.B) {
	d := New()
	b.RunParallel(func(pb *testing.PB) {
		s := d.Register()
		defer s.Release()
		for pb.Next() {
			s.Enter()
			s.Exit()
		}
	})
}

func BenchmarkBeginClearSnapshot(b *testing.B) {
	s := New().Register()
	var visible atomic.Uint64
	for b.Loop() {
		s.BeginSnapshot(&visible)
		s.ClearSnapshot()
	}
}

func BenchmarkRegisterRelease(b *testing.B) {
	d := New()
	for b.Loop() {
		d.Register().Release()
	}
}

func BenchmarkRetire(b *testing.B) {
	d := New()
	for range 64 {
		d.Register()
	}
	n := 0
	for b.Loop() {
		d.Retire(func() { n++ })
	}
}

// TestUsed: who was inside since the last look is noticed, but for glances.
func TestUsed(t *testing.T) {
	d := New()
	a, b := d.Register(), d.Register()
	look := func(want bool) {
		t.Helper()
		if got := d.Used(); got != want {
			t.Errorf("used: %v", got)
		}
	}
	look(false)
	a.Enter()
	look(true) // it is inside
	a.Exit()
	look(false) // it was inside only when looked at before
	b.Enter()
	b.Exit()
	look(true)
	look(false)
	b.Glance(func() {
		if !b.Inside() {
			t.Error("a glance is not inside")
		}
		b.Glance(func() {})
		look(true)
	})
	look(false)
	b.Glance(func() {})
	look(false)
	b.Enter()
	b.Exit()
	b.Glance(func() {})
	look(true) // what was before the glance
	freed := false
	d.Retire(func() { freed = true })
	if !freed {
		t.Error("who has left keeps what is retired")
	}
}
