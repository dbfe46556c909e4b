package iterator_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
)

// strider splits a view into the rows that are seen at an older snapshot, as a Strider, and
// the entries that are newer.
func (v *view) strider(r *rand.Rand, most, moves int, err error) []iterator.Source {
	at := r.Uint64N(uint64(len(v.entries) + 1))
	v.vis.Snapshot = max(v.vis.Snapshot, at)
	v.rows = v.visibleRows()
	older := view{entries: v.entries, vis: base.Visibility{Snapshot: at}}
	out := []iterator.Source{{It: itertest.Striding(older.visibleRows(), most, moves, err), Plain: true}}
	newer := slices.DeleteFunc(slices.Clone(v.entries), func(e iterator.Entry) bool { return e.Seq <= at })
	if len(newer) > 0 {
		for _, part := range scatter(r, newer, 1+r.IntN(2)) {
			out = append(out, iterator.Source{It: anyIterator(r, part)})
		}
	}
	return out
}

// TestVisibleStrides: rows of a Strider are walked without looking at the other sources, and
// nothing is seen of that.
func TestVisibleStrides(t *testing.T) {
	walkViews(t, 4, func(r *rand.Rand, v *view) []iterator.Source {
		v.addBounds(r)
		return v.strider(r, 1+r.IntN(20), 0, nil)
	})
}

// walkViews walks 1,000 random views in every way, with the sources that split makes of them.
func walkViews(t *testing.T, stream uint64, split func(*rand.Rand, *view) []iterator.Source) {
	t.Helper()
	ops := 0
	it := &iterator.Visible{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, stream))
		v := &view{entries: itertest.Entries(r, []int{1, 2, 5, 20, 60, 150}[r.IntN(6)])}
		v.vis.Snapshot = r.Uint64N(uint64(len(v.entries) + 2))
		w := &walk{t: t, view: v, it: it, at: -1}
		sources := split(r, v)
		w.it.Init(sources, v.vis, v.low, v.high)
		ops += w.everyWay(r)
	}
	if ops < 200_000 {
		t.Fatalf("only %d operations checked", ops)
	}
}

// TestVisibleStrideFails: what fails in a stride ends the walk, with the error, before a row
// that is not there is shown.
func TestVisibleStrideFails(t *testing.T) {
	failed := errors.New("unreadable")
	fails := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		v := &view{entries: itertest.Entries(r, 60)}
		v.vis.Snapshot = 60
		it := iterator.New(v.strider(r, 1+r.IntN(20), r.IntN(40), failed), v.vis, nil, nil)
		n := 0
		for ok := it.First(); ok; ok = it.Advance() || it.Next() {
			if n == len(v.rows) || !bytes.Equal(it.Key(), v.rows[n].Key) || it.Seq() != v.rows[n].Seq {
				t.Fatalf("seed %d: row %d is %q", seed, n, it.Key())
			}
			n++
		}
		if err := it.Err(); err != nil && !errors.Is(err, failed) || err == nil && n < len(v.rows) {
			t.Fatalf("seed %d: %d of %d rows, %v", seed, n, len(v.rows), err)
		} else if err != nil {
			fails++
			if it.Valid() || it.Next() || it.Key() != nil {
				t.Fatalf("seed %d: stands on %q after %v", seed, it.Key(), err)
			}
		}
	}
	if fails < 100 {
		t.Fatalf("only %d walks failed", fails)
	}
}
