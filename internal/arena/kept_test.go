//go:build !race && !invariants

package arena

import (
	"slices"
	"testing"
	"time"
)

// forget unmaps what is kept, and makes the test do so at its end.
func forget(t *testing.T) {
	t.Helper()
	kept.makeWay(2 * keptBytes)
	t.Cleanup(func() { kept.makeWay(2 * keptBytes) })
}

// left returns the memory of a pool and a heap that were closed: a buffer of 1 MiB, and a
// chunk of which three frames were used.
func left(t *testing.T) (buffer, frames []byte) {
	t.Helper()
	b := NewBudget(1 << 30)
	p, h := NewPool(b, ClassMemtable), NewHeap(b, ClassPages)
	buffer, err := p.Get(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if frames, err = h.Alloc(3 * frameBytes); err != nil {
		t.Fatal(err)
	}
	buffer[5], frames[7] = 55, 77
	p.Leave()
	h.Leave()
	for _, err := range []error{p.Put(buffer), h.Free(frames), p.Close(), h.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted after Close", b.Used())
	}
	return buffer, frames
}

func TestKeptMemoryServesTheNext(t *testing.T) {
	forget(t)
	before := Mapped()
	buffer, frames := left(t)
	if Mapped() != before || Kept() != 1<<20+HugeBytes {
		t.Fatalf("%d bytes mapped, %d before, %d kept", Mapped(), before, Kept())
	}
	b := NewBudget(1 << 30)
	p, h := NewPool(b, ClassMemtable), NewHeap(b, ClassPages)
	defer p.Close()
	defer h.Close()
	again, err := p.Get(1 << 20)
	if err != nil || address(again) != address(buffer) || again[5] != 55 {
		t.Errorf("%v: another buffer", err)
	}
	pages, err := h.Alloc(2 * frameBytes)
	if err != nil || address(pages) != address(frames) || pages[7] != 77 {
		t.Errorf("%v: another chunk", err)
	}
	if got, want := b.Used(), int64(1<<20+3*frameBytes); got != want {
		t.Errorf("%d bytes counted, want %d: the third frame has memory behind it", got, want)
	}
	if Mapped() != before+1<<20+HugeBytes || Kept() != 0 {
		t.Errorf("%d bytes mapped, %d before, %d kept", Mapped(), before, Kept())
	}
	h.Free(pages)
	p.Put(again)
}

// A process never takes more memory than while its stores were open: what is mapped anew
// takes the place of what is kept. Nor does a store exceed its budget by it.
func TestKeptMemoryMakesWay(t *testing.T) {
	forget(t)
	left(t)
	b := NewBudget(2 * int64(frameBytes))
	h := NewHeap(b, ClassPages)
	defer h.Close()
	page, err := h.AllocWithin(frameBytes, b.Limit())
	if err != nil || b.Used() != int64(frameBytes) {
		t.Errorf("%v, %d bytes counted", err, b.Used())
	}
	defer h.Free(page)
	if Kept() > 1<<20 { // the chunk that was mapped is as large as all
		t.Errorf("%d bytes kept beside a new chunk", Kept())
	}
	forget(t)
	left(t)
	kept.makeWay(keptOver / 2)
	if Kept() != HugeBytes+1<<20 {
		t.Errorf("%d bytes kept when little is to be mapped", Kept())
	}
	kept.makeWay(keptOver / 2)
	if Kept() != HugeBytes {
		t.Errorf("%d bytes kept when the oldest has gone", Kept())
	}
}

func TestKeptMemoryExpires(t *testing.T) {
	forget(t)
	left(t)
	kept.mu.Lock()
	kept.all[0].since = time.Now().Add(-keptFor)
	kept.mu.Unlock()
	kept.expire()
	if n := Kept(); n == 0 || n >= 1<<20+HugeBytes {
		t.Errorf("%d bytes kept when the older has expired", n)
	}
	for end := time.Now().Add(20 * keptFor); Kept() > 0; time.Sleep(keptFor / 20) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes kept for ever", Kept())
		}
	}
}

func TestKeptMemoryIsBounded(t *testing.T) {
	forget(t)
	p := NewPool(NewBudget(1<<40), ClassMemtable)
	p.Leave()
	var all [][]byte
	for range 6 {
		b, err := p.Get(keptBytes / 4)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	large, err := p.Get(keptBytes + 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err == nil {
		t.Error("closed without a word with buffers out")
	}
	for _, b := range slices.Concat(all[:2], [][]byte{large}, all[2:]) {
		if err := p.Put(b); err != nil || Kept() > keptBytes {
			t.Fatalf("%v, %d bytes kept", err, Kept())
		}
	}
	if Kept() != keptBytes {
		t.Errorf("%d bytes kept, want the last four buffers", Kept())
	}
	if b := kept.buffer(keptBytes / 4); address(b) != address(all[5]) {
		t.Error("not the newest buffer")
	} else if err := Unmap(b); err != nil {
		t.Error(err)
	}
}

// TestBorrow: what is borrowed is what others have left, or fresh, whatever else is kept.
func TestBorrow(t *testing.T) {
	forget(t)
	left(t)
	before, keptBefore := Mapped(), Kept()
	b, err := Borrow(3 << 20)
	if err != nil || len(b) != 3<<20 || Mapped() != before+3<<20 || Kept() != keptBefore {
		t.Fatalf("%d bytes, %v; %d mapped, %d kept", len(b), err, Mapped()-before, Kept()-keptBefore)
	}
	b[9] = 99
	Return(b[:0])
	if Mapped() != before || Kept() != keptBefore+3<<20 {
		t.Errorf("%d mapped, %d kept after Return", Mapped()-before, Kept()-keptBefore)
	}
	again, err := Borrow(3<<20 - 1)
	if err != nil || address(again) != address(b) || again[9] != 99 {
		t.Errorf("other memory, %v", err)
	}
	if err := Unmap(again); err != nil {
		t.Error(err)
	}
}
