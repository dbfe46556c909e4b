package arena

// runTree holds the runs of a heap's chunks, in the order of the chunks, and finds the first
// or the last one with a run that is long enough in O(log n): a store may have tens of
// thousands. It is a complete binary tree of maxima, node i above nodes 2i and 2i+1.
type runTree struct {
	nodes []runs // nodes[half:half+n] are the chunks' own
	half  int    // a power of two
	n     int
}

// at returns the runs of chunk i.
func (t *runTree) at(i int) runs { return t.nodes[t.half+i] }

// set replaces the runs of chunk i.
func (t *runTree) set(i int, r runs) {
	i += t.half
	for t.nodes[i] = r; i > 1; {
		i /= 2
		m := longer(t.nodes[2*i], t.nodes[2*i+1])
		if t.nodes[i] == m {
			return
		}
		t.nodes[i] = m
	}
}

// insert adds a chunk with the given runs as number i; those from i on move up.
func (t *runTree) insert(i int, r runs) {
	if t.n == t.half {
		half := max(1, 2*t.half)
		nodes := make([]runs, 2*half)
		copy(nodes[half:], t.nodes[t.half:])
		t.nodes, t.half = nodes, half
	}
	t.n++
	own := t.nodes[t.half : t.half+t.n]
	copy(own[i+1:], own[i:])
	own[i] = r
	t.sum()
}

// remove takes chunk i out.
func (t *runTree) remove(i int) {
	own := t.nodes[t.half : t.half+t.n]
	copy(own[i:], own[i+1:])
	own[t.n-1] = runs{}
	t.n--
	t.sum()
}

// sum computes all maxima.
func (t *runTree) sum() {
	for i := t.half - 1; i > 0; i-- {
		t.nodes[i] = longer(t.nodes[2*i], t.nodes[2*i+1])
	}
}

func longer(a, b runs) runs { return runs{max(a.free, b.free), max(a.dirty, b.dirty)} }

// firstDirty returns the first chunk with n frames in a row that have memory behind them,
// or -1.
func (t *runTree) firstDirty(n int) int {
	return t.first(func(r runs) bool { return int(r.dirty) >= n })
}

// firstFree returns the first chunk with n free frames in a row, or -1.
func (t *runTree) firstFree(n int) int {
	return t.first(func(r runs) bool { return int(r.free) >= n })
}

func (t *runTree) first(enough func(runs) bool) int {
	if t.n == 0 || !enough(t.nodes[1]) {
		return -1
	}
	i := 1
	for i < t.half {
		if i *= 2; !enough(t.nodes[i]) {
			i++
		}
	}
	return i - t.half
}

// lastDirty returns the last chunk with a free frame that has memory behind it, or -1.
func (t *runTree) lastDirty() int {
	if t.n == 0 || t.nodes[1].dirty == 0 {
		return -1
	}
	i := 1
	for i < t.half {
		if i = 2*i + 1; t.nodes[i].dirty == 0 {
			i--
		}
	}
	return i - t.half
}
