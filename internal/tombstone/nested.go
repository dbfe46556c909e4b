package tombstone

import (
	"bytes"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// nest is the form of a list whose tombstones lie deep in one another. The
// distinct bounds cut the key space into cells; over the cells stands a segment
// tree (leaf of cell i: node cells+i, parent of node p: p/2). A tombstone stands
// at the O(log n) nodes that together are its cells, so a cell is covered by the
// sequences on the path from its leaf up.
type nest struct {
	bounds [][]byte // ascending; cell i is [bounds[i], bounds[i+1])
	start  []int    // seqs[start[p]:start[p+1]] are those of node p
	seqs   []uint64 // descending within a node
	spans  []Tombstone
}

func newNest(spans []Tombstone, edges []edge) *nest {
	n := &nest{spans: spans}
	for len(edges) > 0 {
		n.bounds = append(n.bounds, edges[0].key)
		edges = edges[sharing(edges):]
	}
	n.start = make([]int, 2*n.cells()+1)
	for _, t := range spans {
		n.visit(t, func(p int) { n.start[p+1]++ })
	}
	for p := range n.start[1:] {
		n.start[p+1] += n.start[p]
	}
	n.seqs = make([]uint64, n.start[2*n.cells()])
	next := slices.Clone(n.start)
	// spans ascend by sequence; going backwards fills each node in descending order.
	for _, t := range slices.Backward(spans) {
		n.visit(t, func(p int) { n.seqs[next[p]] = t.Seq; next[p]++ })
	}
	return n
}

func (n *nest) cells() int { return len(n.bounds) - 1 }

// visit calls at for each of the nodes that together are the cells of t.
func (n *nest) visit(t Tombstone, at func(p int)) {
	l, r := n.cell(t.Low)+n.cells(), n.cell(t.High)+n.cells()
	for ; l < r; l, r = l/2, r/2 {
		if l&1 == 1 {
			at(l)
			l++
		}
		if r&1 == 1 {
			r--
			at(r)
		}
	}
}

// cell returns the last cell with a low bound <= key; -1 below the first bound,
// cells() at or above the last.
func (n *nest) cell(key []byte) int {
	return sort.Search(len(n.bounds), func(i int) bool { return bytes.Compare(n.bounds[i], key) > 0 }) - 1
}

func (n *nest) cover(key []byte, vis base.Visibility) uint64 {
	i := n.cell(key)
	if i < 0 || i >= n.cells() {
		return 0
	}
	return n.cellCover(i, vis)
}

// cellCover is cover of the keys of a cell.
func (n *nest) cellCover(i int, vis base.Visibility) (seq uint64) {
	for p := i + n.cells(); p > 0; p /= 2 {
		seq = max(seq, newestSeen(n.seqs[n.start[p]:n.start[p+1]], vis))
	}
	return seq
}

// cellSeqs appends the sequences of cell i in descending order to dst[:0].
func (n *nest) cellSeqs(dst []uint64, i int) []uint64 {
	dst = dst[:0]
	for p := i + n.cells(); p > 0; p /= 2 {
		dst = append(dst, n.seqs[n.start[p]:n.start[p+1]]...)
	}
	slices.Sort(dst)
	slices.Reverse(dst)
	return dst
}

func (n *nest) fragments(yield func(Fragment) bool) {
	var seqs []uint64
	for i := range n.cells() {
		seqs = n.cellSeqs(seqs, i)
		if len(seqs) > 0 && !yield(Fragment{n.bounds[i], n.bounds[i+1], seqs}) {
			return
		}
	}
}

// retain returns what Stripes.Newest keeps of each cell, without listing the cell: a sequence once for all the cells in a row that
// keep it.
func (n *nest) retain(s Stripes, bottom bool) []Tombstone {
	var out []Tombstone
	last := map[uint64]int{} // index in out of the last tombstone of a sequence
	for i := range n.cells() {
		vis := base.Visibility{Snapshot: ^uint64(0)}
		for {
			seq := n.cover(n.bounds[i], vis)
			stripe := s.Of(seq)
			if seq == 0 || bottom && stripe == 0 {
				break
			}
			if j, ok := last[seq]; ok && bytes.Equal(out[j].High, n.bounds[i]) {
				out[j].High = n.bounds[i+1]
			} else {
				last[seq] = len(out)
				out = append(out, Tombstone{n.bounds[i], n.bounds[i+1], seq})
			}
			if stripe == 0 {
				break
			}
			vis.Snapshot = s[stripe-1]
		}
	}
	return out
}
