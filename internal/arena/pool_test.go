package arena

import (
	"errors"
	"sync"
	"testing"
)

func TestPoolRecyclesBySize(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	p := NewPool(b, ClassMemtable)
	x, err := p.Get(100 << 10)
	if err != nil || len(x) != 100<<10 || cap(x) != roundUp(len(x), pageBytes) {
		t.Fatalf("len %d, cap %d, %v", len(x), cap(x), err)
	}
	x[7] = 7
	if err := p.Put(x[:0]); err != nil {
		t.Fatal(err)
	}
	other, err := p.Get(200 << 10)
	if err != nil || address(other) == address(x) {
		t.Fatalf("a buffer of another size was recycled (%v)", err)
	}
	again, err := p.Get(100 << 10)
	if err != nil || address(again) != address(x) || again[7] != 7 {
		t.Fatalf("the buffer was not recycled as it was (%v)", err)
	}
	if want := int64(cap(again) + cap(other)); b.UsedBy(ClassMemtable) != want {
		t.Errorf("%d bytes counted, want %d", b.Used(), want)
	}
	if err := errors.Join(p.Put(again), p.Put(other), p.Close()); err != nil || b.Used() != 0 {
		t.Fatalf("%v, %d used", err, b.Used())
	}
}

func TestPoolKeepsFewSpares(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	p := NewPool(b, ClassMemtable)
	size := int64(roundUp(10000, pageBytes))
	fill := func(n int) {
		t.Helper()
		var all [][]byte
		for range n {
			x, err := p.Get(10000)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
		for _, x := range all {
			if err := p.Put(x); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(DefaultPoolSpares + 3)
	if p.Spare() != DefaultPoolSpares*size || b.Used() != p.Spare() {
		t.Errorf("%d bytes spare, %d counted", p.Spare(), b.Used())
	}
	if err := p.Trim(); err != nil || p.Spare() != 0 || b.Used() != 0 {
		t.Errorf("after Trim: %v, %d spare, %d counted", err, p.Spare(), b.Used())
	}
	p.SetSpares(4)
	fill(6)
	if p.Spare() != 4*size {
		t.Errorf("%d bytes spare of 4 buffers", p.Spare())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPoolRefusesStrangers(t *testing.T) {
	noLeak(t)
	p := NewPool(NewBudget(0), ClassMemtable)
	x, err := p.Get(3 * pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"nil": nil, "Go heap": make([]byte, pageBytes), "inner": x[pageBytes:], "cut": x[:1:1]} {
		if err := p.Put(b); !errors.Is(err, ErrNotAllocated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := p.Put(x); err != nil {
		t.Fatal(err)
	}
	if err := p.Put(x); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("twice: %v", err)
	}
	for _, n := range []int{0, -1, int(^uint(0) >> 1)} {
		if _, err := p.Get(n); err == nil {
			t.Errorf("Get(%d) succeeded", n)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPoolCloseLeavesWhatIsOut(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	p := NewPool(b, ClassMemtable)
	x, err := p.Get(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err == nil {
		t.Error("Close said nothing of a buffer that is out")
	}
	if _, err := p.Get(1); !errors.Is(err, ErrPoolClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	x[0] = 1
	if err := p.Put(x); err != nil || b.Used() != 0 {
		t.Errorf("Put after Close: %v, %d used", err, b.Used())
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestPoolConcurrently(t *testing.T) {
	noLeak(t)
	p := NewPool(NewBudget(0), ClassMemtable)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range 300 {
				x, err := p.Get((1 + i%3) * pageBytes)
				if err != nil {
					t.Error(err)
					return
				}
				x[0] = byte(g)
				if x[0] != byte(g) {
					t.Error("two users of one buffer")
				}
				if err := p.Put(x); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPoolDiscards(t *testing.T) {
	noLeak(t)
	b := NewBudget(0)
	p := NewPool(b, ClassMemtable)
	x, err := p.Get(2 * pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Discard(x); err != nil || p.Spare() != 0 || b.Used() != 0 {
		t.Errorf("%v, %d bytes spare, %d counted", err, p.Spare(), b.Used())
	}
	if err := p.Discard(nil); !errors.Is(err, ErrNotAllocated) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestShed: unused buffers of a size and more go, smaller ones and those handed out stay.
func TestShed(t *testing.T) {
	b := NewBudget(1 << 30)
	p := NewPool(b, ClassMemtable)
	var bufs [][]byte
	for _, n := range []int{1 << 16, 1 << 17, 1 << 18, 1 << 19} {
		buf, err := p.Get(n)
		if err != nil {
			t.Fatal(err)
		}
		bufs = append(bufs, buf)
	}
	for _, buf := range bufs[:3] {
		if err := p.Put(buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Shed(1 << 17); err != nil {
		t.Fatal(err)
	}
	if p.Spare() != 1<<16 || b.UsedBy(ClassMemtable) != 1<<16+1<<19 {
		t.Errorf("%d bytes are unused, %d counted", p.Spare(), b.UsedBy(ClassMemtable))
	}
	bufs[3][0] = 1
	if err := errors.Join(p.Put(bufs[3]), p.Close()); err != nil {
		t.Error(err)
	}
}
