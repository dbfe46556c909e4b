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
	walkViews(t, 6, func(r *rand.Rand, v *view) []iterator.Source { return v.settled(r) })
}

// TestStretchBackEndsBeforeAnotherVersion: what a block has of a key that another source has a newer version of is not in a
// stretch back, also where that key is the bound.
func TestStretchBackEndsBeforeAnotherVersion(t *testing.T) {
	var block []iterator.Entry
	for seq, key := range "abcdefghij" {
		block = append(block, put(string(key), uint64(seq+1)))
	}
	newer := []iterator.Entry{put("c", 20)}
	for _, low := range []string{"a", "b", "c", "d"} {
		sources := []iterator.Source{{It: itertest.Paged(block, len(block))}, {It: iterator.NewSliceIter(newer)}}
		it := iterator.New(sources, base.Visibility{Snapshot: base.MaxSeq}, []byte(low), nil)
		got := ""
		for ok := it.Last(); ok; ok = it.Prev() {
			if got += string(it.Key()); string(it.Key()) == "c" && it.Seq() != 20 {
				t.Errorf("from %s: an older version, %d, is shown", low, it.Seq())
			}
		}
		if want := "jihgfedcba"[:10-int(low[0]-'a')]; got != want {
			t.Errorf("from %s: %s, want %s", low, got, want)
		}
	}
}
