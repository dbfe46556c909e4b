package iterator_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
)

// steps counts how often a source is moved.
type steps struct {
	base.Iterator
	n int
}

func (s *steps) Next() bool { s.n++; return s.Iterator.Next() }
func (s *steps) Prev() bool { s.n++; return s.Iterator.Prev() }

// noted is where a walk has found no row.
type noted struct{ gaps [][2][]byte }

func (g *noted) NoteGap(low, high []byte, _ int) {
	g.gaps = append(g.gaps, [2][]byte{bytes.Clone(low), bytes.Clone(high)})
}

func (g *noted) Gap(key []byte, _ int) (low, high []byte, keys int, ok bool) {
	for _, gap := range g.gaps {
		if holds(gap[0], gap[1], key) {
			return gap[0], gap[1], 100, true
		}
	}
	return nil, nil, 0, false
}

func holds(low, high, key []byte) bool {
	return bytes.Compare(low, key) <= 0 && (high == nil || bytes.Compare(key, high) < 0)
}

// TestNewerRowsAreAGap: many keys that were put after an old snapshot are passed once by its walks, in both directions, and
// so are, forward, many versions of one; versions of a key that has a row are no gap.
func TestNewerRowsAreAGap(t *testing.T) {
	const n = 1000
	keys, versions, row := []iterator.Entry{put("a", 1)}, []iterator.Entry{put("a", 1)}, []iterator.Entry{put("a", 1)}
	for i := range n {
		keys = append(keys, put(fmt.Sprintf("b%04d", i), uint64(10+i)))
		versions = append(versions, put("b", uint64(10+n-i)))
		row = append(row, put("b", uint64(10+n-i)))
	}
	keys, versions, row = append(keys, put("c", 2)), append(versions, put("c", 2)), append(row, put("b", 2), put("c", 3))
	for name, c := range map[string]struct {
		entries []iterator.Entry
		rows    string
		gap     [2]bool // forward, backward
	}{
		"keys":              {keys, "ac", [2]bool{true, true}},
		"versions":          {versions, "ac", [2]bool{true, false}},
		"versions of a row": {row, "abc", [2]bool{false, false}},
	} {
		for i, gap := range c.gap {
			backward := i == 1
			source, other := &steps{Iterator: iterator.NewSliceIter(c.entries)}, iterator.NewSliceIter([]iterator.Entry{put("d", 2000)})
			v := iterator.New([]iterator.Source{{It: source}, {It: other}}, base.Visibility{Snapshot: 5}, nil, nil)
			gaps := &noted{}
			v.UseGaps(gaps)
			for walk := range 3 {
				source.n = 0
				rows := ""
				if backward {
					for ok := v.Last(); ok; ok = v.Prev() {
						rows = string(v.Key()) + rows
					}
				} else {
					for ok := v.First(); ok; ok = v.Next() {
						rows += string(v.Key())
					}
				}
				if rows != c.rows {
					t.Errorf("%s, backward %v: %s, want %s", name, backward, rows, c.rows)
				}
				if gap && walk > 0 && source.n > 50 {
					t.Errorf("%s, backward %v: walk %d took %d steps", name, backward, walk+1, source.n)
				}
			}
			if (len(gaps.gaps) > 0) != gap {
				t.Errorf("%s, backward %v: gaps %q", name, backward, gaps.gaps)
			}
		}
	}
}

// rowless are gaps of a view, a part of each, known at random.
type rowless struct {
	t     *testing.T
	r     *rand.Rand
	v     *view
	noted int
}

// Gap returns keys that lie between two rows and around key.
func (g *rowless) Gap(key []byte, _ int) (low, high []byte, keys int, ok bool) {
	if g.r.IntN(2) == 0 {
		return nil, nil, 0, false
	}
	for _, row := range g.v.rows {
		switch c := bytes.Compare(row.Key, key); {
		case c < 0:
			low = append(bytes.Clone(row.Key), 0)
		case c == 0:
			return nil, nil, 0, false
		default:
			high = row.Key
		}
		if high != nil {
			break
		}
	}
	if low == nil && g.v.low != nil { // nothing is known of what is out of bounds
		low = g.v.low
	}
	if high == nil {
		high = g.v.high
	}
	for _, e := range g.v.entries {
		switch c := bytes.Compare(e.Key, key); {
		case c <= 0 && bytes.Compare(e.Key, low) > 0 && g.r.IntN(8) == 0:
			low = e.Key
		case c > 0 && (high == nil || bytes.Compare(e.Key, high) < 0) && g.r.IntN(8) == 0:
			high = e.Key
		}
	}
	return low, high, 1 + g.r.IntN(100), true
}

func (g *rowless) NoteGap(low, high []byte, _ int) {
	g.noted++
	if high != nil && bytes.Compare(low, high) >= 0 {
		g.t.Fatalf("noted %q to %q", low, high)
	}
	for _, row := range g.v.rows {
		if holds(low, high, row.Key) {
			g.t.Fatalf("noted %q to %q, though %q is there", low, high, row.Key)
		}
	}
}

// TestVisibleGaps: walks that take gaps see what they are to see, and note none with a row.
func TestVisibleGaps(t *testing.T) {
	noted := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		v := newView(r, 400+r.IntN(400))
		v.vis.Snapshot = r.Uint64N(100)
		v.rows, v.plain = v.visibleRows(), false
		gaps := &rowless{t: t, r: r, v: v}
		w := &walk{t: t, view: v, it: iterator.New(v.sources(r, 1+r.IntN(5)), v.vis, v.low, v.high), at: -1}
		w.it.UseGaps(gaps)
		w.everyWay(r)
		noted += gaps.noted
	}
	if noted < 500 {
		t.Errorf("only %d gaps were noted", noted)
	}
	t.Logf("%d gaps", noted)
}
