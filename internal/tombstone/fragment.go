package tombstone

import (
	"bytes"
	"cmp"
	"slices"
)

// A list stays flat while its fragments hold at most flatFactor sequences per
// tombstone, and flatFree more.
const (
	flatFactor = 8
	flatFree   = 1024
)

// normalise drops empty ranges and joins ranges of the same sequence that
// overlap or touch, so that no key is covered twice by one sequence and a bound
// is always a place where something changes. Ascending by sequence.
func normalise(ts []Tombstone) []Tombstone {
	out := make([]Tombstone, 0, len(ts))
	for _, t := range ts {
		if !t.Empty() {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Tombstone) int {
		if c := cmp.Compare(a.Seq, b.Seq); c != 0 {
			return c
		}
		return bytes.Compare(a.Low, b.Low)
	})
	n := 0
	for _, t := range out {
		if n > 0 && out[n-1].Seq == t.Seq && bytes.Compare(t.Low, out[n-1].High) <= 0 {
			if bytes.Compare(t.High, out[n-1].High) > 0 {
				out[n-1].High = t.High
			}
			continue
		}
		out[n] = t
		n++
	}
	return out[:n]
}

// edge is where a tombstone begins or ends.
type edge struct {
	key   []byte
	seq   uint64
	begin bool
}

func edgesOf(spans []Tombstone) []edge {
	edges := make([]edge, 0, 2*len(spans))
	for _, t := range spans {
		edges = append(edges, edge{t.Low, t.Seq, true}, edge{t.High, t.Seq, false})
	}
	slices.SortFunc(edges, func(a, b edge) int { return bytes.Compare(a.key, b.key) })
	return edges
}

// sharing returns how many of the edges, at least one, have the key of the first.
func sharing(edges []edge) int {
	n := 1
	for n < len(edges) && bytes.Equal(edges[n].key, edges[0].key) {
		n++
	}
	return n
}

// measure returns the number of fragments between the edges and how many
// sequences they hold together.
func measure(edges []edge) (frags, total int) {
	active := 0
	for len(edges) > 0 {
		n := sharing(edges)
		for _, e := range edges[:n] {
			if e.begin {
				active++
			} else {
				active--
			}
		}
		if active > 0 {
			frags++
			total += active
		}
		edges = edges[n:]
	}
	return frags, total
}

// flatten sweeps over the edges. The sequences of all fragments share one array.
func flatten(edges []edge, frags, total int) []Fragment {
	out := make([]Fragment, 0, frags)
	pool := make([]uint64, 0, total)
	var active []uint64 // descending
	for len(edges) > 0 {
		n := sharing(edges)
		for _, e := range edges[:n] {
			i := firstAtMost(active, e.seq)
			if e.begin {
				active = slices.Insert(active, i, e.seq)
			} else {
				active = slices.Delete(active, i, i+1)
			}
		}
		if len(active) > 0 {
			at := len(pool)
			pool = append(pool, active...)
			out = append(out, Fragment{edges[0].key, edges[n].key, pool[at:len(pool):len(pool)]})
		}
		edges = edges[n:]
	}
	return out
}
