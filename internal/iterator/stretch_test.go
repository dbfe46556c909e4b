package iterator_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// settled splits a view into the rows that are seen at an older snapshot, in blocks as a merged table has them, and a few
// entries that are newer.
func (v *view) settled(r *rand.Rand) []iterator.Source {
	at := uint64(len(v.entries) - r.IntN(1+len(v.entries)/8))
	older := view{entries: v.entries, vis: base.Visibility{Snapshot: at}}
	rows := older.visibleRows()
	v.entries = slices.DeleteFunc(v.entries, func(e iterator.Entry) bool { return e.Seq <= at })
	out := []iterator.Source{{It: itertest.Paged(rows, 1+r.IntN(40))}}
	if len(v.entries) > 0 {
		for _, part := range scatter(r, v.entries, 1+r.IntN(3)) {
			out = append(out, iterator.Source{It: anyIterator(r, part)})
		}
	}
	if r.IntN(4) == 0 {
		v.addTombstones(r, int(at))
		out[len(out)-1].Cover = tombstone.Build(v.tombs).Cover
	}
	v.entries = append(v.entries, rows...)
	iterator.Sort(v.entries)
	for _, bound := range []*[]byte{&v.low, &v.high} {
		if len(v.entries) > 0 && r.IntN(3) > 0 {
			*bound = v.entries[r.IntN(len(v.entries))].Key
		}
	}
	v.vis.Snapshot = max(v.vis.Snapshot, at)
	v.rows = v.visibleRows()
	return out
}

// TestVisibleStretches: of blocks in which there is nothing to decide many rows are walked at once, in both directions,
// up to a row of another source, or a bound, and nothing is seen of that.
func TestVisibleStretches(t *testing.T) {
	ops := 0
	it := &iterator.Visible{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 6))
		v := &view{entries: itertest.Entries(r, []int{1, 2, 5, 20, 60, 150}[r.IntN(6)])}
		v.vis.Snapshot = r.Uint64N(uint64(len(v.entries) + 2))
		w := &walk{t: t, view: v, it: it, at: -1}
		sources := v.settled(r)
		w.it.Init(sources, v.vis, v.low, v.high)
		ops += w.everyWay(r)
	}
	if ops < 200_000 {
		t.Fatalf("only %d operations checked", ops)
	}
}
