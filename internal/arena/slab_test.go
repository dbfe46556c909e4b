package arena

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// Pieces share a frame, never overlap, and the frame is free when the last one is.
func TestSlabPiecesShareAFrame(t *testing.T) {
	noLeak(t)
	for class := range slabClasses {
		h := NewHeap(NewBudget(0), ClassPages)
		n, count := pieceBytes(class), frameBytes/pieceBytes(class)
		var all [][]byte
		for i := range 3 * count {
			b := mustAlloc(t, h, n-i%3)
			if cap(b) != n {
				t.Fatalf("class %d: cap %d, want %d", class, cap(b), n)
			}
			for j := range b[:cap(b)] {
				b[:cap(b)][j] = byte(i)
			}
			all = append(all, b)
		}
		if h.InUse() != int64(3*frameBytes) {
			t.Errorf("class %d: %d pieces take %d bytes, want three frames", class, len(all), h.InUse())
		}
		for i, b := range all {
			for _, x := range b[:cap(b)] {
				if x != byte(i) {
					t.Fatalf("class %d: pieces overlap", class)
				}
			}
		}
		h.check(t)
		for i, b := range all {
			mustFree(t, h, b)
			if want := int64((3*count - i + count - 2) / count * frameBytes); h.InUse() != want {
				t.Fatalf("class %d: %d of %d freed: %d bytes in use, want %d", class, i+1, len(all), h.InUse(), want)
			}
		}
		h.check(t)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A piece that is freed serves again before another frame is taken.
func TestSlabReusesPieces(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	rng := rand.New(rand.NewPCG(1, 2))
	var live [][]byte
	for range 20_000 {
		if len(live) > 200 || len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			mustFree(t, h, live[i])
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		live = append(live, mustAlloc(t, h, 1+rng.IntN(frameBytes*3/4)))
	}
	h.check(t)
	for class, list := range h.mu.slabs.roomy {
		for i, s := range list {
			if s.at != i || s.free == 0 || s.free == s.all() || s.class != class {
				t.Fatalf("class %d: slab %d is listed wrongly: %+v", class, i, s)
			}
		}
	}
	for _, b := range live {
		mustFree(t, h, b)
	}
	if len(h.mu.slabs.byFrame) != 0 || h.InUse() != 0 {
		t.Errorf("%d slabs and %d bytes left", len(h.mu.slabs.byFrame), h.InUse())
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSlabRefusesWhatIsNoPiece(t *testing.T) {
	noLeak(t)
	h := NewHeap(NewBudget(0), ClassPages)
	a, b := mustAlloc(t, h, 200), mustAlloc(t, h, 200)
	free := func(b []byte) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.free(address(b))
	}
	if err := free(a[1:]); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("inside a piece: %v", err)
	}
	mustFree(t, h, a)
	if err := free(a); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("twice: %v", err)
	}
	mustFree(t, h, b)
	if err := free(b); !errors.Is(err, ErrNotAllocated) {
		t.Errorf("of a slab that is gone: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
