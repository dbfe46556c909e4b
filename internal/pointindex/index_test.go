package pointindex

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
)

func build(t testing.TB, hashes []uint64) (*Index, error) {
	budget := arena.NewBudget(1 << 40)
	mapped := arena.Mapped()
	b := NewBuilder(budget)
	for i, h := range hashes {
		b.Add(h, Loc(i))
	}
	if b.Len() != len(hashes) {
		t.Fatalf("builder has %d entries, want %d", b.Len(), len(hashes))
	}
	x, err := b.Build()
	if err != nil {
		if budget.Used() != 0 || arena.Mapped() != mapped {
			t.Fatalf("%d bytes counted after a failed Build", budget.Used())
		}
		return nil, err
	}
	if budget.UsedBy(arena.ClassIndex) != x.Bytes() || x.Len() != len(hashes) {
		t.Fatalf("%d bytes counted for %d of %d entries", budget.Used(), x.Bytes(), x.Len())
	}
	t.Cleanup(func() {
		if x.Free(); budget.Used() != 0 || arena.Mapped() > mapped {
			t.Errorf("%d bytes counted after Free", budget.Used())
		}
	})
	return x, nil
}

func candidates(x *Index, hash uint64) (locs []Loc) {
	p := x.Find(hash)
	for {
		loc, ok := p.Next()
		if !ok {
			return locs
		}
		locs = append(locs, loc)
	}
}

func TestNoFalseNegatives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 5, 6, 7, 48, 49, 1000, chunkEntries, chunkEntries + 1, 100000} {
		hashes := make([]uint64, n)
		for i := range hashes {
			hashes[i] = r.Uint64()
		}
		x, err := build(t, hashes)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hashes {
			if !slices.Contains(candidates(x, h), Loc(i)) {
				t.Fatalf("%d entries: entry %d not found", n, i)
			}
		}
	}
}

func TestFewFalsePositives(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	hashes := make([]uint64, 50000)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	x, _ := build(t, hashes)
	wrong := 0
	for range 100000 {
		wrong += len(candidates(x, r.Uint64()))
	}
	if wrong > 100 {
		t.Fatalf("%d wrong candidates in 100,000 lookups", wrong)
	}
	if load := float64(x.Len()) * slotBytes / float64(x.Bytes()); load > 0.751 || load < 0.7 {
		t.Fatalf("load %.3f", load)
	}
}

// Equal hashes, fingerprint 0, the first and the last line: hashes an enemy or bad luck could choose.
func TestEqualHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, h := range []uint64{0, 1, 1 << 16, 1<<64 - 1, 1<<64 - 1<<16, 0x1234567890ABCDEF} {
		for _, n := range []int{1, 8, 9, 17, 60, 150} {
			hashes := make([]uint64, n, n+2000)
			for i := range hashes {
				hashes[i] = h
			}
			for range 2000 {
				hashes = append(hashes, r.Uint64())
			}
			x, err := build(t, hashes)
			if err != nil {
				t.Fatalf("%d times %x: %v", n, h, err)
			}
			for i, h := range hashes {
				if !slices.Contains(candidates(x, h), Loc(i)) {
					t.Fatalf("%d times %x: entry %d not found", n, h, i)
				}
			}
		}
	}
}

func TestCrowdedIsRefused(t *testing.T) {
	hashes := make([]uint64, lineSlots*maxProbeLines+1, 8000)
	for i := range cap(hashes) - len(hashes) {
		hashes = append(hashes, uint64(i)<<50)
	}
	if _, err := build(t, hashes); !errors.Is(err, ErrCrowded) {
		t.Fatalf("error %v", err)
	}
	if _, err := build(t, make([]uint64, 1<<20)); !errors.Is(err, ErrCrowded) {
		t.Fatalf("error %v", err)
	}
}

func TestLoc(t *testing.T) {
	l := MakeLoc(1<<31-1, 1<<16-1)
	if l.Block() != 1<<31-1 || l.Row() != 1<<16-1 || l>>locBits != 0 {
		t.Fatal(l)
	}
	b := NewBuilder(arena.NewBudget(0))
	b.Add(42, l)
	x, err := b.Build()
	if err != nil || candidates(x, 42)[0] != l {
		t.Fatal(err)
	}
	x.Free()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	x, _ := build(t, []uint64{1<<40 + 1, 2<<40 + 2, 3<<40 + 3})
	if n := testing.AllocsPerRun(100, func() {
		p := x.Find(2<<40 + 2)
		if loc, ok := p.Next(); !ok || loc != 1 {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("0000000011111111"), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, mask uint8) {
		var hashes []uint64
		for len(b) >= 2 && len(hashes) < 4096 {
			hashes = append(hashes, (uint64(b[0])<<56|uint64(b[1]))&^uint64(mask))
			b = b[2:]
		}
		x, err := build(t, hashes)
		if err != nil {
			return
		}
		for i, h := range hashes {
			if !slices.Contains(candidates(x, h), Loc(i)) {
				t.Fatalf("entry %d not found", i)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, 1<<20)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	x, _ := build(b, hashes)
	i, sum := 0, Loc(0)
	for b.Loop() {
		p := x.Find(hashes[i*7919%len(hashes)])
		loc, _ := p.Next()
		sum += loc
		i++
	}
	_ = sum
}

func BenchmarkBuild(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, 1<<18)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	for b.Loop() {
		bb := NewBuilder(arena.NewBudget(0))
		for i, h := range hashes {
			bb.Add(h, Loc(i))
		}
		x, _ := bb.Build()
		x.Free()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<18), "ns/entry")
}
