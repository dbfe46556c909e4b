package arena

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkFullHeap replaces pages of a heap that has no room left, as gets of a store that
// has outgrown its memory do. What that costs must not depend on how much memory there is.
func BenchmarkFullHeap(b *testing.B) {
	for _, limit := range []int64{64 << 20, 1 << 30, 8 << 30} {
		b.Run(fmt.Sprintf("%dMiB", limit>>20), func(b *testing.B) {
			budget := NewBudget(limit)
			h := NewHeap(budget, ClassPages)
			defer h.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			size := func() int { return 6<<10 + rng.IntN(6<<10) }
			var pages [][]byte
			for {
				p, err := h.AllocWithin(size(), limit)
				if err != nil {
					break
				}
				pages = append(pages, p)
			}
			for b.Loop() {
				i := rng.IntN(len(pages))
				h.Free(pages[i])
				for {
					p, err := h.AllocWithin(size(), limit)
					if err == nil {
						pages[i] = p
						break
					}
					last := len(pages) - 1 // one more has to go
					h.Free(pages[last])
					if pages = pages[:last]; i == last {
						i = rng.IntN(len(pages))
						h.Free(pages[i])
					}
				}
			}
			for _, p := range pages {
				h.Free(p)
			}
		})
	}
}
