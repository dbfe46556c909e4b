package iterator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
)

// scatter deals entries out to k sources, in stretches so that some sources hold
// long runs.
func scatter(r *rand.Rand, entries []iterator.Entry, k int) [][]iterator.Entry {
	out := make([][]iterator.Entry, k)
	stretch := 1 + r.IntN(8)
	at := 0
	for _, e := range entries {
		if r.IntN(stretch) == 0 {
			at = r.IntN(k)
		}
		out[at] = append(out[at], e)
	}
	return out
}

// concat makes a Concat whose parts are cut from entries at random.
func concat(r *rand.Rand, entries []iterator.Entry, wrap func(base.Iterator) base.Iterator) *iterator.Concat {
	var parts [][]iterator.Entry
	size := 1 + r.IntN(20)
	for i := range entries {
		if i == 0 || string(entries[i].Key) != string(entries[i-1].Key) && r.IntN(size) == 0 {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], entries[i])
	}
	exclusive := r.IntN(2) == 0
	bounds := func(i int) (smallest, largest []byte) {
		p := parts[i]
		largest = p[len(p)-1].Key
		if exclusive {
			largest = append(slices.Clone(largest), 0)
		}
		return p[0].Key, largest
	}
	return iterator.NewConcat(len(parts), bounds, func(i int) (base.Iterator, error) {
		return wrap(iterator.NewSliceIter(parts[i])), nil
	})
}

func plain(it base.Iterator) base.Iterator { return it }

func TestSuiteSlice(t *testing.T) {
	itertest.Run(t, func(e []iterator.Entry) base.Iterator { return iterator.NewSliceIter(e) })
}

func TestSuiteWrappers(t *testing.T) {
	itertest.Run(t, func(e []iterator.Entry) base.Iterator {
		return itertest.Invalidating(itertest.Stepping(iterator.NewSliceIter(e)))
	})
	itertest.Run(t, func(e []iterator.Entry) base.Iterator {
		return itertest.Failing(itertest.Invalidating(iterator.NewSliceIter(e)), 1<<30, nil)
	})
}

func TestSuitePaged(t *testing.T) {
	itertest.Run(t, func(e []iterator.Entry) base.Iterator { return itertest.Paged(e, 3) })
}

func TestSuiteConcat(t *testing.T) {
	for name, wrap := range map[string]func(base.Iterator) base.Iterator{
		"plain":    itertest.Invalidating,
		"stepping": itertest.Stepping,
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			itertest.Run(t, func(e []iterator.Entry) base.Iterator { return concat(r, e, wrap) })
		})
	}
}

func TestSuiteMerging(t *testing.T) {
	for _, k := range []int{1, 2, 3, 4, 5, 8, 13} {
		t.Run(fmt.Sprintf("k=%d", k), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(k), 1))
			itertest.Run(t, func(e []iterator.Entry) base.Iterator {
				var its []base.Iterator
				for _, part := range scatter(r, e, k) {
					if r.IntN(2) == 0 {
						its = append(its, concat(r, part, plain))
					} else {
						its = append(its, itertest.Invalidating(iterator.NewSliceIter(part)))
					}
				}
				return iterator.NewMerging(its...)
			})
		})
	}
}

func TestMergingWithoutSources(t *testing.T) {
	m := iterator.NewMerging()
	if m.First() || m.Last() || m.SeekGE(nil) || m.SeekLT([]byte("a")) || m.Next() || m.NextKey() || m.Prev() || m.Valid() || m.Err() != nil || m.Close() != nil {
		t.Fatal("has entries")
	}
}

func TestMergingTiesComeInSourceOrder(t *testing.T) {
	entry := func(v string) []iterator.Entry {
		return []iterator.Entry{{Key: []byte("k"), Seq: 7, Kind: base.KindPut, Value: []byte(v)}}
	}
	m := iterator.NewMerging(iterator.NewSliceIter(entry("0")), iterator.NewSliceIter(entry("1")), iterator.NewSliceIter(entry("2")))
	want := func(ok bool, v string) {
		t.Helper()
		if !ok {
			t.Fatalf("ended, want %s", v)
		}
		if got, _ := m.Value(); string(got) != v {
			t.Fatalf("at %s, want %s", got, v)
		}
	}
	want(m.First(), "0")
	want(m.Next(), "1")
	want(m.Next(), "2")
	want(m.Prev(), "1")
	want(m.Next(), "2")
	want(m.Prev(), "1")
	want(m.Prev(), "0")
	want(m.Next(), "1")
	want(m.Last(), "2")
}

func TestMergingIsReusedWithoutAllocation(t *testing.T) {
	entries := itertest.Entries(rand.New(rand.NewPCG(1, 2)), 100)
	its := []base.Iterator{iterator.NewSliceIter(entries[:30]), iterator.NewSliceIter(entries[30:]), iterator.NewSliceIter(nil)}
	m := iterator.NewMerging(its...)
	if n := testing.AllocsPerRun(20, func() {
		m.Init(its)
		n := 0
		for ok := m.First(); ok; ok = m.Next() {
			n++
		}
		for ok := m.Last(); ok; ok = m.Prev() {
			n++
		}
		m.Init(its[:1])
		if n != 200 || !m.First() || m.Next() != true {
			t.Fatal(n)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// part records when it is opened and closed.
type part struct {
	base.Iterator
	open *int
	err  error
}

func (p *part) Close() error {
	*p.open--
	return p.err
}

func TestConcatKeepsOnePartOpen(t *testing.T) {
	entries := itertest.Entries(rand.New(rand.NewPCG(4, 2)), 400)
	slices.SortFunc(entries, iterator.Compare)
	entries = slices.CompactFunc(entries, func(a, b iterator.Entry) bool { return string(a.Key) == string(b.Key) })
	open, opened := 0, 0
	c := iterator.NewConcat(len(entries)/10, func(i int) (s, l []byte) {
		return entries[10*i].Key, entries[10*i+9].Key
	}, func(i int) (base.Iterator, error) {
		open++
		opened++
		if open > 1 {
			t.Fatal("two parts are open")
		}
		return &part{iterator.NewSliceIter(entries[10*i : 10*i+10]), &open, nil}, nil
	})
	for ok := c.First(); ok; ok = c.Next() {
	}
	if opened != len(entries)/10 || open != 0 {
		t.Fatalf("%d opened in one pass, %d left open", opened, open)
	}
	c.SeekGE(entries[55].Key)
	before := opened
	c.SeekGE(entries[52].Key)
	c.SeekLT(entries[59].Key)
	if opened != before {
		t.Fatal("a seek within the part opened it again")
	}
	if err := c.Close(); err != nil || open != 0 {
		t.Fatalf("closed: %v, %d open", err, open)
	}
}
