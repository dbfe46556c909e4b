package iterator_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// view is a set of entries and range tombstones spread over sources, and the
// rows that a reader must see of it.
type view struct {
	entries   []iterator.Entry
	tombs     []tombstone.Tombstone
	vis       base.Visibility
	low, high []byte
	plain     bool
	rows      []iterator.Entry
}

// visibleRows looks at every entry and every tombstone.
func (v *view) visibleRows() []iterator.Entry {
	var rows []iterator.Entry
	var decided []byte
	for _, e := range v.entries {
		if !v.vis.Sees(e.Seq) || decided != nil && bytes.Equal(decided, e.Key) {
			continue
		}
		decided = e.Key
		hidden := e.Kind == base.KindDelete || bytes.Compare(e.Key, v.low) < 0 || v.high != nil && bytes.Compare(e.Key, v.high) >= 0
		for _, t := range v.tombs {
			hidden = hidden || v.vis.Sees(t.Seq) && t.Seq > e.Seq && t.Contains(e.Key)
		}
		if !hidden {
			rows = append(rows, e)
		}
	}
	return rows
}

// plainView makes a view of distinct keys that are all visible puts.
func plainView(r *rand.Rand, n int) *view {
	v := &view{entries: itertest.Entries(r, n), vis: base.Visibility{Snapshot: base.MaxSeq}, plain: true}
	v.entries = slices.CompactFunc(v.entries, func(a, b iterator.Entry) bool { return bytes.Equal(a.Key, b.Key) })
	for i := range v.entries {
		v.entries[i].Kind = base.KindPut
	}
	v.addBounds(r)
	v.rows = v.visibleRows()
	return v
}

func (v *view) addBounds(r *rand.Rand) {
	if r.IntN(3) == 0 {
		v.low = itertest.SeekKey(r, v.entries)
	}
	if r.IntN(3) == 0 {
		v.high = itertest.SeekKey(r, v.entries)
	}
}

// newView makes a random view of n entries. A tenth of the entries are private
// ones of a transaction, of which the reader may see some.
func newView(r *rand.Rand, n int) *view {
	if r.IntN(8) == 0 {
		return plainView(r, n)
	}
	v := &view{entries: itertest.Entries(r, n)}
	if r.IntN(3) == 0 {
		for i := range v.entries {
			if r.IntN(10) == 0 {
				v.entries[i].Seq |= base.SeqPrivate
			}
		}
		iterator.Sort(v.entries)
		if r.IntN(3) > 0 {
			v.vis.PrivateLimit = base.SeqPrivate | r.Uint64N(uint64(n+2))
		}
	}
	v.vis.Snapshot = base.MaxSeq
	if r.IntN(3) > 0 {
		v.vis.Snapshot = r.Uint64N(uint64(n + 2))
	}
	if r.IntN(2) == 0 {
		v.addTombstones(r, n)
	}
	v.addBounds(r)
	v.rows = v.visibleRows()
	return v
}

func (v *view) addTombstones(r *rand.Rand, n int) {
	for range 1 + r.IntN(6) {
		t := tombstone.Tombstone{Low: itertest.SeekKey(r, v.entries), High: itertest.SeekKey(r, v.entries), Seq: 1 + r.Uint64N(uint64(n+2))}
		if r.IntN(5) == 0 {
			t.Seq |= base.SeqPrivate
		}
		v.tombs = append(v.tombs, t)
	}
}

// sources spreads the view over k sources of all kinds.
func (v *view) sources(r *rand.Rand, k int) []iterator.Source {
	out := make([]iterator.Source, k)
	tombs := make([][]tombstone.Tombstone, k)
	for _, t := range v.tombs {
		i := r.IntN(k)
		tombs[i] = append(tombs[i], t)
	}
	for i, part := range scatter(r, v.entries, k) {
		out[i].It, out[i].Plain = anyIterator(r, part), v.plain
		if l := tombstone.Build(tombs[i]); l != nil {
			out[i].Cover = l.Cover
			if c := tombstone.NewCursor(l); r.IntN(2) == 0 {
				out[i].Cover = c.Cover
			}
		}
	}
	return out
}

func anyIterator(r *rand.Rand, entries []iterator.Entry) base.Iterator {
	var it base.Iterator
	private := slices.ContainsFunc(entries, func(e iterator.Entry) bool { return e.Seq > base.MaxSeq })
	if !private && r.IntN(3) == 0 { // no wrapper: who walks a stretch moves the iterator behind its back
		return itertest.Paged(entries, 1+r.IntN(12))
	}
	switch r.IntN(4) {
	case 0:
		it = concat(r, entries, plain)
	case 1:
		var its []base.Iterator
		for _, part := range scatter(r, entries, 2) {
			its = append(its, iterator.NewSliceIter(part))
		}
		it = iterator.NewMerging(its...)
	default:
		it = iterator.NewSliceIter(entries)
	}
	if r.IntN(3) == 0 {
		it = itertest.Stepping(it)
	}
	if it = itertest.Invalidating(it); r.IntN(2) == 0 {
		it = itertest.Telling(it, entries)
	}
	return it
}

// walk is a Visible beside the row it should stand on.
type walk struct {
	t       *testing.T
	view    *view
	it      *iterator.Visible
	at      int // -1: nowhere
	ops     int
	history []string
}

func (w *walk) expect(op string, ok bool, at int) {
	w.t.Helper()
	if at < 0 || at >= len(w.view.rows) {
		at = -1
	}
	if w.history = append(w.history, op); len(w.history) > 12 {
		w.history = w.history[1:]
	}
	w.at = at
	w.ops++
	if ok != (at >= 0) || w.it.Valid() != ok || w.it.Err() != nil {
		w.fail("returned %v, Valid %v, Err %v", ok, w.it.Valid(), w.it.Err())
	}
	if !ok && w.it.Key() != nil {
		w.fail("key %q off the end", w.it.Key())
	}
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%+v bounds [%q %q), after %q, row %d: %s", w.view.vis, w.view.low, w.view.high, w.history, w.at, fmt.Sprintf(format, args...))
}

func (w *walk) row(value bool) {
	w.t.Helper()
	if w.at < 0 {
		return
	}
	want := w.view.rows[w.at]
	key := w.it.Key()
	if !bytes.Equal(key, want.Key) || w.it.Seq() != want.Seq {
		w.fail("stands on %q/%d, want %q/%d", key, w.it.Seq(), want.Key, want.Seq)
	}
	if !value {
		return
	}
	for range 2 {
		if got, err := w.it.Value(); err != nil || !bytes.Equal(got, want.Value) {
			w.fail("value %.40q, %v; want %.40q", got, err, want.Value)
		}
	}
	if !bytes.Equal(key, want.Key) || !w.it.Valid() {
		w.fail("key became %q by reading the value", key)
	}
}

func (w *walk) lowerBound(key []byte) int {
	return sort.Search(len(w.view.rows), func(i int) bool { return bytes.Compare(w.view.rows[i].Key, key) >= 0 })
}

// do does one operation; key is used by seeks.
func (w *walk) do(op byte, key []byte) {
	w.t.Helper()
	next, prev := w.at+1, w.at-1
	if w.at < 0 {
		next, prev = -1, -1
	}
	switch op % 16 {
	case 0:
		w.expect("First", w.it.First(), 0)
	case 1:
		w.expect("Last", w.it.Last(), len(w.view.rows)-1)
	case 2, 3:
		w.expect(fmt.Sprintf("SeekGE %q", key), w.it.SeekGE(key), w.lowerBound(key))
	case 4, 5:
		w.expect(fmt.Sprintf("SeekLT %q", key), w.it.SeekLT(key), w.lowerBound(key)-1)
	case 6, 7, 8, 9, 10:
		w.expect("Next", w.it.Next(), next)
	default:
		w.expect("Prev", w.it.Prev(), prev)
	}
	w.row(op/16%2 == 0)
}

func (w *walk) wholeWay(value bool) {
	w.t.Helper()
	for w.expect("First", w.it.First(), 0); w.at >= 0; w.expect("Next", w.it.Next(), w.at+1) {
		w.row(value)
	}
	for w.expect("Last", w.it.Last(), len(w.view.rows)-1); w.at >= 0; w.expect("Prev", w.it.Prev(), w.at-1) {
		w.row(value)
	}
}

// everyWay walks to and fro, then at random, closes, and returns how many operations there were.
func (w *walk) everyWay(r *rand.Rand) int {
	w.t.Helper()
	w.wholeWay(true)
	w.wholeWay(false)
	for range 200 {
		w.do(byte(r.Uint32()), itertest.SeekKey(r, w.view.entries))
	}
	if err := w.it.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.ops
}

func TestVisibleAgainstModel(t *testing.T) {
	ops := 0
	pooled := &iterator.Visible{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := []int{0, 1, 2, 5, 20, 60, 150}[r.IntN(7)]
		v := newView(r, n)
		w := &walk{t: t, view: v, it: pooled, at: -1}
		k := 1 + r.IntN(6)
		if v.plain && r.IntN(4) > 0 {
			k = 1 // only then it matters
		}
		w.it.Init(v.sources(r, k), v.vis, v.low, v.high)
		w.expect("Next", w.it.Next(), -1)
		w.expect("Prev", w.it.Prev(), -1)
		ops += w.everyWay(r)
		if w.it.First() || w.it.Valid() || w.it.Close() != nil {
			t.Fatal("has rows after Close")
		}
	}
	if ops < 200_000 {
		t.Fatalf("only %d operations checked", ops)
	}
	t.Logf("%d operations", ops)
}

func TestVisibleWithoutSources(t *testing.T) {
	v := iterator.New(nil, base.Visibility{Snapshot: 5}, nil, nil)
	if v.First() || v.Last() || v.SeekGE([]byte("a")) || v.SeekLT([]byte("a")) || v.Next() || v.Prev() || v.Err() != nil {
		t.Fatal("has rows")
	}
	if value, err := v.Value(); value != nil || err != nil {
		t.Fatal(value, err)
	}
}

func put(key string, seq uint64) iterator.Entry {
	return iterator.Entry{Key: []byte(key), Seq: seq, Kind: base.KindPut, Value: fmt.Appendf(nil, "%s@%d", key, seq)}
}

func TestPlainSourceMayStillHaveRangeTombstones(t *testing.T) {
	l := tombstone.Build([]tombstone.Tombstone{{Low: []byte("b"), High: []byte("c"), Seq: 8}})
	it := iterator.NewSliceIter([]iterator.Entry{put("a", 1), put("b", 2), put("c", 3)})
	v := iterator.New([]iterator.Source{{It: it, Cover: l.Cover, Plain: true}}, base.Visibility{Snapshot: 9}, nil, nil)
	if !v.First() || !v.Next() || string(v.Key()) != "c" {
		t.Fatalf("at %q, want c", v.Key())
	}
}

func TestVisibleSeekByItsOwnKey(t *testing.T) {
	for _, k := range []int{1, 2} {
		entries := [][]iterator.Entry{{put("a", 1), put("b", 2), put("c", 3)}, {put("bb", 4)}}[:k]
		var sources []iterator.Source
		for _, e := range entries {
			sources = append(sources, iterator.Source{It: itertest.Invalidating(iterator.NewSliceIter(e))})
		}
		v := iterator.New(sources, base.Visibility{Snapshot: 9}, nil, nil)
		for _, position := range []func() bool{
			func() bool { return v.SeekGE([]byte("b")) },
			func() bool { return v.SeekLT([]byte("ba")) },
			func() bool { return v.SeekGE(v.Key()) },
			func() bool { return v.SeekLT([]byte("ba")) && v.SeekLT(v.Key()) && v.Next() },
			func() bool { return v.Prev() && v.SeekLT([]byte("ba")) && v.SeekGE(v.Key()) },
		} {
			if !position() || string(v.Key()) != "b" {
				t.Fatalf("%d sources: at %q, want b", k, v.Key())
			}
		}
	}
}

// counting counts the values read.
type counting struct {
	base.Iterator
	values, moves *int
}

func (c *counting) Value() ([]byte, error) { *c.values++; return c.Iterator.Value() }
func (c *counting) Prev() bool             { *c.moves++; return c.Iterator.Prev() }
func (c *counting) Next() bool             { *c.moves++; return c.Iterator.Next() }

func TestVisibleReadsNoValueUnasked(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	v := newView(r, 100)
	v.tombs, v.low, v.high, v.vis = nil, nil, nil, base.Visibility{Snapshot: base.MaxSeq}
	v.rows = v.visibleRows()
	values, moves := 0, 0
	var sources []iterator.Source
	for _, part := range scatter(r, v.entries, 3) {
		sources = append(sources, iterator.Source{It: &counting{iterator.NewSliceIter(part), &values, &moves}})
	}
	w := &walk{t: t, view: v, it: iterator.New(sources, v.vis, nil, nil), at: -1}
	w.wholeWay(false)
	if values != 0 {
		t.Fatalf("%d values read by walking keys", values)
	}
	w.wholeWay(true)
	if want := 4 * len(v.rows); values != want {
		t.Fatalf("%d values read, want %d", values, want)
	}
}

// Going backward costs one step per entry, and reading a value two more in one source.
func TestVisibleBackwardIsCheap(t *testing.T) {
	var parts [4][]iterator.Entry
	const n = 400
	for i := range n {
		parts[i%4] = append(parts[i%4], put(fmt.Sprintf("%05d", i), uint64(i+1)))
	}
	values, moves := 0, 0
	var sources []iterator.Source
	for _, p := range parts {
		sources = append(sources, iterator.Source{It: &counting{iterator.NewSliceIter(p), &values, &moves}})
	}
	v := iterator.New(sources, base.Visibility{Snapshot: n}, nil, nil)
	for ok := v.Last(); ok; ok = v.Prev() {
	}
	if moves > n {
		t.Fatalf("%d steps for %d keys", moves, n)
	}
	moves = 0
	for ok := v.Last(); ok; ok = v.Prev() {
		if _, err := v.Value(); err != nil {
			t.Fatal(err)
		}
	}
	if moves > 3*n {
		t.Fatalf("%d steps for %d keys and values", moves, n)
	}
}

// leaping is a source that knows where its next key begins.
type leaping struct{ counting }

func (l *leaping) NextKey() bool {
	*l.moves++
	return l.SeekGE(append(bytes.Clone(l.Key()), 0))
}

// The versions of a key are leapt over in every source that has some, whichever of them
// the newest stands in, and whether or not neighbouring keys come from the same one.
func TestVisibleLeapsOverVersions(t *testing.T) {
	var parts [3][]iterator.Entry
	const keys, versions = 50, 100
	for i := range keys {
		for n := range versions {
			p := &parts[(i+n)%3]
			*p = append(*p, put(fmt.Sprintf("%05d", i), uint64((keys-i)*versions-n)))
		}
	}
	values, moves := 0, 0
	var sources []iterator.Source
	for _, p := range parts {
		sources = append(sources, iterator.Source{It: &leaping{counting{iterator.NewSliceIter(p), &values, &moves}}})
	}
	v := iterator.New(sources, base.Visibility{Snapshot: base.MaxSeq}, nil, nil)
	rows := 0
	for ok := v.First(); ok; ok = v.Next() {
		rows++
	}
	if rows != keys || moves > 3*keys {
		t.Fatalf("%d steps for %d of %d keys", moves, rows, keys)
	}
}

func TestVisibleIsReusedWithoutAllocation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	entries := itertest.Entries(r, 300)
	l := tombstone.Build([]tombstone.Tombstone{{Low: []byte{0}, High: []byte{1}, Seq: 100}})
	var sources []iterator.Source
	for _, p := range scatter(r, entries, 3) {
		sources = append(sources, iterator.Source{It: iterator.NewSliceIter(p), Cover: l.Cover})
	}
	v := &iterator.Visible{}
	if n := testing.AllocsPerRun(20, func() {
		for k := 1; k <= 3; k++ {
			v.Init(sources[:k], base.Visibility{Snapshot: 200}, nil, nil)
			for ok := v.First(); ok; ok = v.Next() {
			}
			for ok := v.Last(); ok; ok = v.Prev() {
				_, _ = v.Value()
			}
			v.Reset()
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add(uint64(1), uint8(3), []byte("\x00\x06\x06\x0b\x0b\x01\x0b\x06\x02\x0b"))
	f.Add(uint64(9), uint8(1), []byte("\x01\x0b\x06\x0b\x06\x06\x0b\x04\x0b\x06"))
	f.Fuzz(func(t *testing.T, seed uint64, k uint8, ops []byte) {
		r := rand.New(rand.NewPCG(seed, 6))
		v := newView(r, 1+r.IntN(40))
		w := &walk{t: t, view: v, it: iterator.New(v.sources(r, 1+int(k%6)), v.vis, v.low, v.high), at: -1}
		for _, op := range ops[:min(len(ops), 300)] {
			w.do(op, itertest.SeekKey(r, v.entries))
		}
		if err := w.it.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Sort must agree with what iterators promise, and sources must be cut from it.
func TestCompareOrdersByKeyThenNewestFirst(t *testing.T) {
	e := []iterator.Entry{put("b", 1), put("a", 1), put("ab", 9), put("a", base.SeqPrivate|1), put("a", 2)}
	iterator.Sort(e)
	got := ""
	for _, x := range e {
		got += fmt.Sprintf("%s/%d ", x.Key, x.Seq&base.MaxSeq|x.Seq>>63<<8)
	}
	if got != "a/257 a/2 a/1 ab/9 b/1 " || !slices.IsSortedFunc(e, iterator.Compare) {
		t.Fatal(got)
	}
}
