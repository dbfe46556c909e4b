package iterator_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
)

var errDisk = errors.New("disk")

// TestMergingReportsEveryError lets each call of a source fail in turn and checks
// that the walk up to there is right and the failure is never taken for an end.
func TestMergingReportsEveryError(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	entries := itertest.Entries(r, 40)
	for _, k := range []int{1, 3} {
		parts := scatter(r, entries, k)
		for n := 0; ; n++ {
			var its []base.Iterator
			for i, p := range parts {
				var it base.Iterator = iterator.NewSliceIter(p)
				if i == k-1 {
					it = itertest.Failing(it, n, errDisk)
				}
				its = append(its, it)
			}
			m := iterator.NewMerging(its...)
			seen := 0
			for ok := m.First(); ok; ok = m.Next() {
				if m.Seq() != entries[seen].Seq {
					t.Fatalf("entry %d has sequence %d", seen, m.Seq())
				}
				seen++
			}
			if m.Valid() || m.Next() || m.Prev() {
				t.Fatal("goes on after the error")
			}
			if m.Err() == nil && seen == len(entries) {
				break
			}
			if !errors.Is(m.Err(), errDisk) {
				t.Fatalf("call %d failed: %d of %d entries, Err %v", n, seen, len(entries), m.Err())
			}
		}
	}
}

// TestVisibleReportsEveryError does the same with both directions and values: a
// row that is shown is right, and rows are missing only together with an error.
func TestVisibleReportsEveryError(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		v := newView(r, 30)
		k := 1 + r.IntN(3)
		for n := 0; ; n++ {
			sources := v.sources(rand.New(rand.NewPCG(seed, 5)), k)
			sources[0].It = itertest.Failing(sources[0].It, n, errDisk)
			it := iterator.New(sources, v.vis, v.low, v.high)
			if failed := runTilError(t, v, it); !failed {
				break
			}
			if n > 1000 {
				t.Fatal("never runs through")
			}
		}
	}
}

// runTilError walks there and back and reports whether an error was met.
func runTilError(t *testing.T, v *view, it *iterator.Visible) (failed bool) {
	t.Helper()
	last := len(v.rows) - 1
	for _, pass := range []struct {
		start, step func() bool
		from, by    int
	}{{it.First, it.Next, 0, 1}, {it.Last, it.Prev, last, -1}} {
		at := pass.from
		for ok := pass.start(); ok; ok = pass.step() {
			if at < 0 || at > last || it.Seq() != v.rows[at].Seq {
				t.Fatalf("row %d of %d has sequence %d", at, len(v.rows), it.Seq())
			}
			value, err := it.Value()
			if err == nil && string(value) != string(v.rows[at].Value) {
				t.Fatalf("row %d has value %q", at, value)
			}
			if err != nil && !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			failed = failed || err != nil
			at += pass.by
		}
		if err := it.Err(); err != nil {
			if !errors.Is(err, errDisk) || it.Valid() || it.Next() || it.Prev() {
				t.Fatalf("after the error %v: Valid %v", err, it.Valid())
			}
			return true
		}
		if failed {
			return true
		}
		if at != pass.from+pass.by*len(v.rows) {
			t.Fatalf("ended at row %d of %d without an error", at, len(v.rows))
		}
	}
	return false
}

// TestVisibleTurningReportsEveryError turns round at every row, with its value read.
func TestVisibleTurningReportsEveryError(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		v := newView(r, 15)
		k := 1 + r.IntN(3)
		for n, failed := 0, true; failed; n++ {
			sources := v.sources(rand.New(rand.NewPCG(seed, 5)), k)
			sources[0].It = itertest.Failing(sources[0].It, n, errDisk)
			it := iterator.New(sources, v.vis, v.low, v.high)
			failed = zigzag(t, v, it)
		}
	}
}

// zigzag goes backward by steps of Prev, Next, Prev.
func zigzag(t *testing.T, v *view, it *iterator.Visible) (failed bool) {
	t.Helper()
	check := func(ok bool, at int) bool {
		t.Helper()
		if !ok && it.Err() == nil && at >= 0 && at < len(v.rows) {
			t.Fatalf("row %d of %d is missing without an error", at, len(v.rows))
		}
		if ok && (at < 0 || it.Seq() != v.rows[at].Seq) {
			t.Fatalf("row %d has sequence %d", at, it.Seq())
		}
		if _, err := it.Value(); err != nil {
			failed = true
		}
		failed = failed || it.Err() != nil
		return ok && !failed
	}
	at := len(v.rows) - 1
	for ok := check(it.Last(), at); ok && at > 0; at-- {
		ok = check(it.Prev(), at-1) && check(it.Next(), at) && check(it.Prev(), at-1)
	}
	return failed
}

// A source that fails once is read again by the next positioning.
func TestPositioningAgainClearsTheError(t *testing.T) {
	e := []iterator.Entry{put("a", 1), put("b", 2)}
	flaky := &failingOnce{Iterator: iterator.NewSliceIter(e)}
	m := iterator.NewMerging(flaky, iterator.NewSliceIter(nil))
	if m.First() || !errors.Is(m.Err(), errDisk) {
		t.Fatal("no error", m.Err())
	}
	if !m.First() || m.Err() != nil {
		t.Fatal("still failing", m.Err())
	}
	flaky.done = false
	v := iterator.New([]iterator.Source{{It: flaky}}, base.Visibility{Snapshot: 9}, nil, nil)
	if v.First() || !errors.Is(v.Err(), errDisk) {
		t.Fatal("no error", v.Err())
	}
	if value, err := v.Value(); value != nil || !errors.Is(err, errDisk) {
		t.Fatal(value, err)
	}
	if !v.First() || v.Err() != nil {
		t.Fatal("still failing", v.Err())
	}
}

type failingOnce struct {
	base.Iterator
	done, failed bool
}

func (f *failingOnce) First() bool {
	f.failed = !f.done
	f.done = true
	return !f.failed && f.Iterator.First()
}

func (f *failingOnce) Err() error {
	if f.failed {
		return errDisk
	}
	return nil
}

func TestConcatReportsEveryError(t *testing.T) {
	e := []iterator.Entry{put("a", 1), put("b", 2), put("c", 3)}
	bounds := func(i int) (s, l []byte) { return e[i].Key, e[i].Key }
	for name, open := range map[string]func(i int) (base.Iterator, error){
		"open": func(i int) (base.Iterator, error) {
			if i == 1 {
				return nil, errDisk
			}
			return iterator.NewSliceIter(e[i : i+1]), nil
		},
		"close": func(i int) (base.Iterator, error) {
			p := &part{iterator.NewSliceIter(e[i : i+1]), new(int), nil}
			if i != 1 {
				p.err = errDisk
			}
			return p, nil
		},
		"step": func(i int) (base.Iterator, error) {
			return itertest.Failing(iterator.NewSliceIter(e[i:i+1]), 1, errDisk), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := iterator.NewConcat(len(e), bounds, open)
			if !c.First() || c.Next() || c.Valid() || !errors.Is(c.Err(), errDisk) || c.Next() || c.Prev() {
				t.Fatal("forward", c.Err())
			}
			if !c.Last() || c.Err() != nil || c.Prev() || !errors.Is(c.Err(), errDisk) {
				t.Fatal("backward", c.Err())
			}
			if err := c.Close(); err != nil {
				t.Fatal("nothing was open, yet", err)
			}
		})
	}
}

func TestConcatTriesAgainAfterAnError(t *testing.T) {
	e := []iterator.Entry{put("a", 1)}
	for name, position := range map[string]func(c *iterator.Concat) bool{
		"First":  func(c *iterator.Concat) bool { return c.First() },
		"Last":   func(c *iterator.Concat) bool { return c.Last() },
		"SeekGE": func(c *iterator.Concat) bool { return c.SeekGE([]byte("a")) },
		"SeekLT": func(c *iterator.Concat) bool { return c.SeekLT([]byte("b")) },
	} {
		calls := 0
		c := iterator.NewConcat(1, func(int) (s, l []byte) { return e[0].Key, e[0].Key }, func(int) (base.Iterator, error) {
			if calls++; calls == 1 {
				return nil, errDisk
			}
			return iterator.NewSliceIter(e), nil
		})
		if position(c) || !errors.Is(c.Err(), errDisk) || !position(c) || c.Err() != nil || !c.Valid() {
			t.Fatalf("%s: Err %v", name, c.Err())
		}
	}
}

func TestCloseReturnsTheFirstErrorAndClosesAll(t *testing.T) {
	open := 3
	its := []base.Iterator{
		&part{iterator.NewSliceIter(nil), &open, nil},
		&part{iterator.NewSliceIter(nil), &open, errDisk},
		&part{iterator.NewSliceIter(nil), &open, errors.New("another")},
	}
	if err := iterator.NewMerging(its...).Close(); err != errDisk || open != 0 {
		t.Fatal(err, open)
	}
	open = 3
	v := iterator.New([]iterator.Source{{It: its[0]}, {It: its[1]}, {It: its[2]}}, base.Visibility{}, nil, nil)
	if err := v.Close(); err != errDisk || open != 0 {
		t.Fatal(err, open)
	}
}
