package arena

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRunTree compares it with a slice that is searched from end to end.
func TestRunTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var tree runTree
	var model []runs
	draw := func() runs {
		free := uint16(rng.IntN(8))
		return runs{free, uint16(rng.IntN(int(free) + 1))}
	}
	for step := range 20_000 {
		switch at := rng.IntN(len(model) + 1); {
		case at < len(model) && rng.IntN(3) > 0:
			model[at] = draw()
			tree.set(at, model[at])
		case at < len(model) && rng.IntN(2) == 0 && (step/1000%2 == 1 || len(model) > 200):
			model = slices.Delete(model, at, at+1)
			tree.remove(at)
		default:
			r := draw()
			model = slices.Insert(model, at, r)
			tree.insert(at, r)
		}
		if tree.n != len(model) {
			t.Fatalf("%d chunks, want %d", tree.n, len(model))
		}
		if len(model) > 0 {
			if at := rng.IntN(len(model)); tree.at(at) != model[at] {
				t.Fatalf("chunk %d has runs %v, want %v", at, tree.at(at), model[at])
			}
		}
		n := 1 + rng.IntN(8)
		for what, c := range map[string][2]int{
			"first dirty": {tree.firstDirty(n), slices.IndexFunc(model, func(r runs) bool { return int(r.dirty) >= n })},
			"first free":  {tree.firstFree(n), slices.IndexFunc(model, func(r runs) bool { return int(r.free) >= n })},
			"last dirty":  {tree.lastDirty(), lastIndexFunc(model, func(r runs) bool { return r.dirty > 0 })},
		} {
			if c[0] != c[1] {
				t.Fatalf("step %d: %s of %d frames is %d, want %d, in %v", step, what, n, c[0], c[1], model)
			}
		}
	}
}

func lastIndexFunc(all []runs, ok func(runs) bool) int {
	for i := len(all) - 1; i >= 0; i-- {
		if ok(all[i]) {
			return i
		}
	}
	return -1
}
