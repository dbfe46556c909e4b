package iterator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// deletedView is a view of n entries where range deletes of all ages hide much, one beside and within another.
func deletedView(r *rand.Rand, n int) *view {
	v := &view{entries: itertest.Entries(r, n), vis: base.Visibility{Snapshot: base.MaxSeq}}
	if r.IntN(3) == 0 {
		v.vis.Snapshot = r.Uint64N(uint64(n + 2))
	}
	for range 1 + r.IntN(8) {
		low := r.IntN(n)
		high := low + r.IntN(n-low)
		ts := tombstone.Tombstone{Low: v.entries[low].Key, High: v.entries[high].Key, Seq: uint64(n/2*r.IntN(2) + 1 + r.IntN(n/2))}
		v.tombs = append(v.tombs, ts)
		if r.IntN(2) == 0 { // another one that begins where this one ends
			v.tombs = append(v.tombs, tombstone.Tombstone{Low: ts.High, High: itertest.SeekKey(r, v.entries), Seq: 1 + r.Uint64N(uint64(n))})
		}
	}
	v.addBounds(r)
	v.rows = v.visibleRows()
	return v
}

// newestOf walks through it.
func newestOf(it base.Iterator) (seq uint64) {
	for ok := it.First(); ok; ok = it.Next() {
		seq = max(seq, it.Seq())
	}
	return seq
}

// aged spreads the view over k sources, most of which know how new their rows are, the older rows mostly in the later ones.
// Those have what wrap makes of an iterator.
func (v *view) aged(r *rand.Rand, k int, skips *int, wrap func(base.Iterator) base.Iterator) []iterator.Source {
	parts, tombs := make([][]iterator.Entry, k), make([][]tombstone.Tombstone, k)
	stray := r.IntN(3)
	for _, e := range v.entries {
		i := k - 1 - int((e.Seq-1)*uint64(k)/uint64(len(v.entries)))
		if stray == 0 && r.IntN(10) == 0 {
			i = r.IntN(k)
		}
		parts[i] = append(parts[i], e)
	}
	for _, t := range v.tombs {
		i := r.IntN(k)
		tombs[i] = append(tombs[i], t)
	}
	out := make([]iterator.Source, k)
	for i, part := range parts {
		dated := func(it base.Iterator) base.Iterator {
			newest := newestOf(it)
			if r.IntN(2) == 0 {
				return itertest.DatedEach(itertest.Invalidating(wrap(it)), skips)
			}
			return itertest.Dated(itertest.Invalidating(wrap(it)), newest, skips)
		}
		switch r.IntN(5) {
		case 0:
			out[i].It = anyIterator(r, part)
		case 1:
			out[i].It = concat(r, part, dated)
		case 2:
			it := iterator.NewSliceIter(part)
			out[i].It = itertest.Dated(itertest.Telling(it, part), newestOf(it), skips)
		default:
			out[i].It = dated(iterator.NewSliceIter(part))
		}
		if l := tombstone.Build(tombs[i]); l != nil {
			c := tombstone.NewCursor(l)
			if out[i].Cover = c.Cover; r.IntN(5) > 0 {
				out[i].Alike = c.Alike
			}
		}
	}
	return out
}

// TestVisibleOverRangeDeletes: walks that skip what range deletes hide see all that is newer, turn round anywhere, and note no
// gap with a row.
func TestVisibleOverRangeDeletes(t *testing.T) {
	skips, noted, seeds := 0, 0, 1000
	it := &iterator.Visible{}
	if testing.Short() {
		seeds = 250
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 10))
		v := deletedView(r, 40+r.IntN(600))
		w := &walk{t: t, view: v, it: it, at: -1}
		w.it.Init(v.aged(r, 1+r.IntN(6), &skips, plain), v.vis, v.low, v.high)
		gaps := &rowless{t: t, r: r, v: v}
		if r.IntN(2) == 0 {
			w.it.UseGaps(gaps)
		}
		w.everyWay(r)
		noted += gaps.noted
	}
	if skips < seeds || noted < seeds {
		t.Errorf("%d skips, %d gaps", skips, noted)
	}
	t.Logf("%d skips, %d gaps", skips, noted)
}

// TestVisibleOverRangeDeletesReportsEveryError: a walk that skips shows no row that is not there, and misses one only with an error.
func TestVisibleOverRangeDeletesReportsEveryError(t *testing.T) {
	skips := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		v := deletedView(r, 100)
		for n := 0; ; n++ {
			r := rand.New(rand.NewPCG(seed, 12))
			sources := v.aged(r, 3, &skips, func(it base.Iterator) base.Iterator { return itertest.Failing(it, n, errDisk) })
			if !runTilError(t, v, iterator.New(sources, v.vis, v.low, v.high)) {
				break
			}
		}
	}
	if skips < 100 {
		t.Errorf("%d skips", skips)
	}
}

// TestVisiblePassesRangeDeletesAtOnce: what a range delete hides costs a few steps, whichever way, and what was put behind it
// is seen.
func TestVisiblePassesRangeDeletesAtOnce(t *testing.T) {
	const n = 10_000
	var old []iterator.Entry
	for i := range n {
		old = append(old, put(fmt.Sprintf("k%05d", i), uint64(i+1)))
	}
	newer := []iterator.Entry{put("k05000", 2*n), put("k0500x", 2*n+1)}
	for pieces := range 2 { // one range delete, or 100 side by side
		var ts []tombstone.Tombstone
		for low, each := 1, []int{n - 2, 100}[pieces]; low < n-1; low += each {
			ts = append(ts, tombstone.Tombstone{Low: old[low].Key, High: old[min(low+each, n-1)].Key, Seq: uint64(n + 1 + low)})
		}
		c := tombstone.NewCursor(tombstone.Build(ts))
		source, skips := &steps{Iterator: iterator.NewSliceIter(old)}, 0
		dated := itertest.Dated(source, n, &skips)
		v := iterator.New([]iterator.Source{{It: iterator.NewSliceIter(newer), Cover: c.Cover, Alike: c.Alike}, {It: dated}},
			base.Visibility{Snapshot: base.MaxSeq}, nil, nil)
		want := []string{"k00000", "k05000", "k0500x", "k09999"}
		for _, backward := range []bool{false, true} {
			source.n = 0
			begin, step := v.First, v.Next
			if backward {
				begin, step = v.Last, v.Prev
			}
			var rows []string
			for ok := begin(); ok; ok = step() {
				rows = append(rows, string(v.Key()))
			}
			if backward {
				slices.Reverse(rows)
			}
			if !slices.Equal(rows, want) {
				t.Errorf("backward %v: %q", backward, rows)
			}
			if source.n > 50 && pieces == 0 || source.n > 1500 {
				t.Errorf("backward %v, %d range deletes: %d steps", backward, len(ts), source.n)
			}
		}
	}
}
