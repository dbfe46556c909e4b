package iterator

// tournament finds the least of k sources with log k comparisons per step (a
// loser tree). Leaf i is node k+i, the parent of node p is p/2, and each inner
// node keeps the source that lost there.
//
// Neighbouring rows mostly come from the same source, the largest run. Once a
// source has won twice in a row its strongest opponent is looked up, and as long
// as it beats that one, a step costs a single comparison whatever k is.
type tournament struct {
	win    int32
	runner int32 // the second best; -1: not known
	losers []int32
	nodes  []int32 // scratch of play
}

func (t *tournament) init(k int) {
	t.win, t.runner = 0, -1
	if cap(t.losers) < k {
		t.losers, t.nodes = make([]int32, k), make([]int32, 2*k)
	}
	t.losers, t.nodes = t.losers[:k], t.nodes[:2*k]
}

// play finds the winner anew.
func (t *tournament) play(m *Merging) {
	k := len(t.losers)
	t.runner = -1
	if k == 0 {
		return
	}
	for i := range k {
		t.nodes[k+i] = int32(i)
	}
	for p := k - 1; p > 0; p-- {
		a, b := t.nodes[2*p], t.nodes[2*p+1]
		if m.less(b, a) {
			a, b = b, a
		}
		t.nodes[p], t.losers[p] = a, b
	}
	t.win = t.nodes[1]
}

// replay finds the winner after the last one has moved.
func (t *tournament) replay(m *Merging) {
	last := t.win
	w := last
	for p := (len(t.losers) + int(w)) / 2; p > 0; p /= 2 {
		if l := t.losers[p]; m.less(l, w) {
			t.losers[p], w = w, l
		}
	}
	t.win, t.runner = w, -1
	if w == last {
		t.findRunner(m)
	}
}

// findRunner looks up the second best: one of those who lost to the winner itself.
func (t *tournament) findRunner(m *Merging) {
	p := (len(t.losers) + int(t.win)) / 2
	t.runner = t.losers[p]
	for p /= 2; p > 0; p /= 2 {
		if l := t.losers[p]; m.less(l, t.runner) {
			t.runner = l
		}
	}
}
