package memtable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// filled makes a table of puts of the given keys, in their order.
func filled(keys [][]byte) *Table {
	t := NewGrowing(1)
	var buf []byte
	for _, k := range keys {
		buf = frame.AppendEntry(buf, base.KindPut, k, nil)
	}
	t.SetBuffer(buf)
	for at := 0; at < len(buf); {
		e, n := frame.DecodeEntry(buf[at:])
		t.Insert(at, &e, base.Hash(e.Key))
		at += n
	}
	return t
}

// keysOf makes n keys of one shape.
var keysOf = map[string]func(r *rand.Rand, i, n int) []byte{
	"in order":        func(_ *rand.Rand, i, _ int) []byte { return fmt.Appendf(nil, "key%09d", i) },
	"backwards":       func(_ *rand.Rand, i, n int) []byte { return fmt.Appendf(nil, "key%09d", n-i) },
	"shuffled":        func(r *rand.Rand, _, n int) []byte { return fmt.Appendf(nil, "key%09d", r.IntN(4*n)) },
	"random bytes":    func(r *rand.Rand, _, _ int) []byte { return fmt.Appendf(nil, "%08x", r.Uint64()) },
	"of any length":   func(r *rand.Rand, _, _ int) []byte { return fmt.Appendf(nil, "%d", r.Uint64()>>r.IntN(20)) },
	"few, often":      func(r *rand.Rand, _, _ int) []byte { return fmt.Appendf(nil, "hot%d", r.IntN(3)) },
	"one":             func(*rand.Rand, int, int) []byte { return []byte("the same") },
	"long, same head": func(r *rand.Rand, _, n int) []byte { return fmt.Appendf(nil, "a%013d%d", r.IntN(9), r.IntN(n)) },
	"nine bytes": func(_ *rand.Rand, i, _ int) []byte {
		return fmt.Appendf([]byte("pre"), "%09d", uint64(i)*0x9E3779B97F4A7C15%1e9)
	},
	"the last bits": func(_ *rand.Rand, i, _ int) []byte {
		return binary.BigEndian.AppendUint64([]byte("pre"), uint64(i/4)*0x9E3779B97F4A7C15&^3|uint64(i%4))
	},
	"short": func(r *rand.Rand, _, _ int) []byte { return bytes.Repeat([]byte{byte(r.IntN(3))}, 1+r.IntN(12)) },
	"families": func(r *rand.Rand, i, n int) []byte {
		return fmt.Appendf(nil, []string{"tenant/1/users/row/%016x", "tenant/1/users/by-mail/person.%06x@example.org", "tenant/1/users/by-age/%03d/of"}[i%3], r.IntN(4*n))
	},
	"deep": func(r *rand.Rand, _, _ int) []byte {
		return bytes.Repeat([]byte("0123456789abcdef"), 9)[:1+r.IntN(9)*15+r.IntN(3)]
	},
	"zeros":    func(r *rand.Rand, _, _ int) []byte { return make([]byte, 40+r.IntN(60)) },
	"prefixes": func(r *rand.Rand, _, _ int) []byte { return []byte("aaaaaaaaaaaaaaaaaaaa")[:1+r.IntN(20)] },
}

// byComparisons orders records by key, the newest first.
func byComparisons(t *Table) func(a, b uint32) int {
	return func(a, b uint32) int {
		_, x := t.key(a)
		_, y := t.key(b)
		return cmp.Or(bytes.Compare(x, y), cmp.Compare(b, a))
	}
}

// records returns what the refs of a chunk lead to.
func (c *chunk) records() []uint32 {
	recs := []uint32{}
	for _, r := range c.refs {
		recs = append(recs, r.rec())
	}
	return recs
}

// sorted is a chunk of some records of the table.
func (t *Table) sorted(from, to int) chunk {
	s := t.alone()
	return s.sortSpans([]span{{t: t, from: from, to: to}}, 0)
}

// checkOlder checks that a chunk marks the older versions, and only those.
func (t *Table) checkOlder(tb testing.TB, c *chunk) {
	tb.Helper()
	for i, r := range c.refs {
		want := i > 0 && bytes.Equal(mustKey(t, r), mustKey(t, c.refs[i-1]))
		if got := r.at&older != 0; got != want {
			tb.Fatalf("ref %d: an older version %v, want %v", i, got, want)
		}
	}
}

func mustKey(t *Table, r ref) []byte {
	_, key := t.key(r.rec())
	return key
}

// Whatever the keys look like, the order is that of sorting by comparisons.
func TestSortSpans(t *testing.T) {
	for shape, make := range keysOf {
		for _, n := range []int{0, 1, 2, fewHeads - 1, fewHeads, fewHeads + 1, 5000} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			keys := [][]byte{}
			for i := range n {
				keys = append(keys, make(r, i, n))
			}
			table := filled(keys)
			for from := range min(n+1, 3) {
				want := []uint32{}
				for rec := from; rec < n; rec++ {
					want = append(want, uint32(rec))
				}
				slices.SortFunc(want, byComparisons(table))
				c := table.sorted(from, n)
				if got := c.records(); !slices.Equal(got, want) {
					t.Fatalf("%s, records %d to %d: %v, want %v", shape, from, n, got[:min(len(got), 50)], want[:min(len(want), 50)])
				}
				table.checkOlder(t, &c)
			}
		}
	}
}

// Of each key there stay the versions behind the sequence that all see, and the newest up to it; what the
// keys look like, and how the records are shared among tables, with range deletes between them, changes nothing.
func TestHidden(t *testing.T) {
	hidden := 0
	for shape, make := range keysOf {
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(8, seed))
			n := 2 + r.IntN([]int{6, 300}[seed%2])
			var tables []*Table
			var spans []span
			type version struct {
				key  string
				seq  uint64
				kind base.Kind
			}
			var all []version
			for len(all) < n {
				first := uint64(100)
				if len(tables) > 0 {
					first = tables[len(tables)-1].LastSeq() + 1
				}
				table, buf := NewGrowing(first), []byte(nil)
				for range 1 + r.IntN(n) {
					v := version{string(make(r, r.IntN(n/2+1), n/2+1)), first + uint64(table.Len()), base.Kind(r.IntN(3))}
					at := len(buf)
					buf = frame.AppendEntry(buf, v.kind, []byte(v.key), []byte(v.key+"z"))
					table.SetBuffer(buf)
					e, _ := frame.DecodeEntry(buf[at:])
					table.Insert(at, &e, base.Hash(e.Key))
					if v.kind != base.KindRangeDelete {
						all = append(all, v)
					}
				}
				spans = append(spans, span{t: table, num: uint32(7 + len(tables)), to: table.Len()})
				tables = append(tables, table)
			}
			slices.SortFunc(all, func(a, b version) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq)) })
			s := set{first: 7, tables: tables}
			for oldest := uint64(99); oldest <= tables[len(tables)-1].LastSeq()+1; oldest += 1 + uint64(r.IntN(n/8+1)) {
				var want, got []version
				for _, v := range all {
					if k := len(want); k == 0 || want[k-1].key != v.key || want[k-1].seq > oldest {
						want = append(want, v)
					}
				}
				for how, c := range map[string]chunk{
					"sorted":   s.sortSpans(spans, oldest),
					"inserted": s.insert(chunk{}, spans, oldest),
					"both":     s.insert(s.sortSpans(spans[:1], oldest), spans[1:], oldest),
				} {
					got = got[:0]
					for _, r := range c.refs {
						got = append(got, version{string(s.key(r)), s.seq(r), r.kind()})
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%s, seed %d, up to %d, %s: %v, want %v", shape, seed, oldest, how, got, want)
					}
					for i, r := range c.refs {
						if got := r.at&older != 0; got != (i > 0 && want[i-1].key == want[i].key) {
							t.Fatalf("%s, seed %d, up to %d, %s: ref %d is marked as an older version: %v", shape, seed, oldest, how, i, got)
						}
					}
				}
				hidden += len(all) - len(want)
			}
		}
	}
	if hidden < 10_000 {
		t.Errorf("%d versions were hidden: is anything tested?", hidden)
	}
}

// Whatever bits of the heads differ, they are sorted by all of them, also where there is not the room for
// all in what is sorted first, and those of one head by age.
func TestSortByBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	whole, parts := 0, 0
	for i := range 600 {
		mask, value := ^uint64(0), r.Uint64()
		for range i % 5 {
			mask &= r.Uint64()
		}
		m := sorter{heads: make([]uint64, fewHeads/2+r.IntN([]int{fewHeads, 500, 9000}[i%3]))}
		m.puts = make([]uint64, len(m.heads))
		for i := range m.heads {
			m.heads[i] = value&^mask | r.Uint64()&mask
			if i == 0 || r.IntN(100) == 0 {
				m.parts = append(m.parts, part{start: i, first: makeRef(uint32(len(m.parts)), 10, 0, 0)})
			}
			m.puts[i/64] |= uint64(r.IntN(2)) << (i % 64)
		}
		want := make([]ref, len(m.heads))
		for i, h := range m.heads {
			want[i] = m.ref(i)
			want[i].head = h
		}
		slices.SortFunc(want, func(a, b ref) int { return cmp.Or(cmp.Compare(a.head, b.head), newerFirst(a, b)) })
		for i := range want[1:] {
			if want[i].head == want[i+1].head {
				want[i+1].at |= older
			}
		}
		_, differ := differing(m.heads)
		m.sort(differ)
		if m.whole {
			whole++
		} else {
			parts++
		}
		c := chunk{refs: m.all(), length: 1} // exact
		if new(set).sortTies(&c, m.mask); !slices.Equal(c.refs, want) {
			t.Fatalf("%d heads that differ in %x are not sorted", len(want), differ)
		}
	}
	if whole < 100 || parts < 100 {
		t.Errorf("%d times all bits had room, %d times not", whole, parts)
	}
}

// What is packed of a head is its bits in their order, and leads back to it.
func TestPacking(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for i := range 2000 {
		differ, head := r.Uint64(), r.Uint64()
		for range i % 4 {
			differ &= r.Uint64()
		}
		var p packing
		n := 1 + r.IntN(1<<(i%31))
		p.pack(head, differ, n)
		want, bit := uint64(0), 0
		for b := range 64 {
			if p.mask>>b&1 != 0 {
				want |= head >> b & 1 << bit
				bit++
			}
		}
		if got := p.expand(want); got != head&p.mask {
			t.Fatalf("%x expanded to %x is %x, want %x", want, p.mask, got, head&p.mask)
		}
		if p.whole != (p.mask == differ) || p.mask&^differ != 0 || p.whole && p.constant|p.expand(want) != head {
			t.Fatalf("the bits %x of %x, of which %x are packed: whole %t, the rest is %x", differ, head, p.mask, p.whole, p.constant)
		}
		place := r.IntN(min(n, 1000))
		keys := make([]uint64, min(n, 1000))
		keys[place] = head
		q := p
		q.n = len(keys)
		if q.keysOf(keys); q.place(keys[place]) != place || keys[place]>>q.width != want {
			t.Fatalf("the key of place %d of %d is %x, its head %x and %x of that are packed", place, len(keys), keys[place], head, p.mask)
		}
	}
}

// Two chunks merged, or one that records are inserted into, are as if everything had been sorted together, also where
// keys have different bytes in common, and of the older one nothing changes.
func TestMerge(t *testing.T) {
	for shape, make := range keysOf {
		for other, make2 := range keysOf {
			r := rand.New(rand.NewPCG(4, 4))
			keys := [][]byte{}
			const n = 400
			for i := range n {
				keys = append(keys, make(r, i, n))
			}
			for i := range n / 4 {
				keys = append(keys, make2(r, i, n/4))
			}
			table := filled(keys)
			s := table.alone()
			first := table.sorted(0, n)
			first.refs = slices.Grow(first.refs, n)
			before := slices.Clone(first.refs)
			merged, inserted := s.merge(first, table.sorted(n, len(keys)), 0), s.insert(first, []span{{t: table, from: n, to: len(keys)}}, 0)
			want := table.sorted(0, len(keys))
			for how, got := range map[string]chunk{"merged": merged, "inserted": inserted} {
				if !slices.Equal(got.refs, want.refs) || !bytes.Equal(got.common, want.common) || got.length != want.length {
					t.Fatalf("%s with %s, %s: %d refs behind %q, want %d behind %q, in the same order", shape, other, how, len(got.refs), got.common, len(want.refs), want.common)
				}
				table.checkOlder(t, &got)
			}
			if !slices.Equal(first.refs, before) || first.refs[:n+1][n] != (ref{}) {
				t.Fatalf("%s with %s: the older chunk has changed", shape, other)
			}
		}
	}
}

// checkLetGo checks that nothing keeps refs that are no longer in use.
func (c *chunks) checkLetGo(t *testing.T) {
	t.Helper()
	for _, room := range [][]chunk{c.sorted[:cap(c.sorted)], c.room[:]} {
		for _, r := range room {
			if r.refs != nil && !slices.ContainsFunc(c.sorted, func(used chunk) bool { return &used.refs[0] == &r.refs[0] }) {
				t.Fatalf("%d refs are kept for nobody", len(r.refs))
			}
		}
	}
}

// Whoever looks at the order after every few inserts finds few chunks, whose records are
// all that there are, in order.
func TestFewChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	keys := [][]byte{}
	for i := range 30_000 {
		keys = append(keys, keysOf["shuffled"](r, i, 30_000))
	}
	table := filled(keys)
	alone, most, sorted := table.alone(), 0, 0
	for n := 0; n < len(keys); n = min(n+1+r.IntN(20), len(keys)) {
		table.Truncate(n)
		now := table.order.of(&alone)
		now.checkLetGo(t)
		chunks := now.sorted
		sum := 0
		for i, c := range chunks {
			if sum += len(c.refs); i > 0 && (len(chunks[i-1].refs) <= fewRecords || chunkGrowth*len(c.refs) >= len(chunks[i-1].refs)) {
				t.Fatalf("%d records: chunk %d has %d, the one before %d", n, i, len(c.refs), len(chunks[i-1].refs))
			}
		}
		if most = max(most, len(chunks)); sum != n || most > 6 {
			t.Fatalf("%d records in %d chunks, want %d", sum, len(chunks), n)
		}
		if len(chunks) == 3 && n > 10_000*sorted {
			sorted++
			table.Sort()
			if now = table.order.of(&alone); len(now.sorted) != 1 {
				t.Fatalf("%d chunks of %d records, sorted", len(now.sorted), n)
			}
			now.checkLetGo(t)
		}
	}
	if most < 3 || sorted == 0 {
		t.Errorf("%d chunks at most, sorted %d times: a few new records are put in order with thousands", most, sorted)
	}
	for _, c := range table.order.of(&alone).sorted {
		if !slices.IsSortedFunc(c.records(), byComparisons(table)) {
			t.Error("a chunk is not sorted")
		}
		table.checkOlder(t, &c)
	}
}

// A search finds what comparing all keys finds, and reads few keys unless all look alike to
// it: heads are told apart first.
func TestLowerBound(t *testing.T) {
	const n = 2000
	for shape, make := range keysOf {
		r := rand.New(rand.NewPCG(3, 3))
		keys := [][]byte{}
		for i := range n {
			keys = append(keys, make(r, i, n))
		}
		table := filled(keys)
		c := table.sorted(0, n)
		s := table.alone()
		looked, most := 0, 0
		check := func(key []byte) {
			t.Helper()
			low, high := c.between(key)
			looked, most = looked+high-low, most+n
			want := 0
			for want < n && bytes.Compare(mustKey(table, c.refs[want]), key) < 0 {
				want++
			}
			if got := s.lowerBound(&c, key); got != want {
				t.Fatalf("%s: %x is before record %d, want %d", shape, key, got, want)
			}
		}
		for range 300 {
			key := slices.Clone(keys[r.IntN(n)])
			check(key)
			check(append(key, 0))
			check(key[:r.IntN(len(key)+1)])
			if len(key) > 0 {
				key[r.IntN(len(key))] += byte(1 + r.IntN(255))
				check(key)
			}
		}
		for _, key := range []string{"", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
			check([]byte(key))
		}
		t.Logf("%s: searches among %.1f %% of the records", shape, 100*float64(looked)/float64(most))
		if shape == "shuffled" && looked > most/50 || shape == "of any length" && looked > most/500 {
			t.Errorf("%s: searches among %d of %d records", shape, looked, most)
		}
	}
}

// Of records behind an iterator's last sequence some are shown, so that no step passes over
// all of them; which ones does not change when they are taken back.
func TestRecordsBehindTheLastSequence(t *testing.T) {
	const n = 100 * shownShare
	var keys [][]byte
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "%06d", i))
	}
	table := filled(keys)
	it := (*Iters)(nil).Append(nil, table, 0)[0].(*Iter)
	for _, limit := range []int{n, n / 2, 0} {
		table.Truncate(limit)
		shown, last := 0, -1
		for ok := it.First(); ok; ok = it.Next() {
			if it.Seq() == 0 || it.i-last > shownShare {
				t.Fatalf("record %d after %d, sequence %d", it.i, last, it.Seq())
			}
			shown, last = shown+1, it.i
		}
		if shown != n/shownShare {
			t.Errorf("%d records of %d left: %d are shown", limit, n, shown)
		}
	}
}

// Iterators that are used again, over keys with other beginnings, return those.
func TestIteratorsUsedAgain(t *testing.T) {
	var its Iters
	for _, prefix := range []string{"", "a long beginning/", "b", "another one/"} {
		var keys [][]byte
		for i := range 200 {
			keys = append(keys, fmt.Appendf(nil, "%s%06d", prefix, i))
		}
		table, n := filled(keys), 0
		for _, it := range its.Append(nil, table, 1000) {
			for ok := it.First(); ok; ok = it.Next() {
				if string(it.Key()) != string(keys[n]) {
					t.Fatalf("%q in place of %q", it.Key(), keys[n])
				}
				n++
			}
		}
		if n != len(keys) {
			t.Errorf("%d keys of %d", n, len(keys))
		}
		its.Reset()
	}
}

// What a table with copies of keys, none, or room for some answers is the same.
func TestCopiesOfKeys(t *testing.T) {
	long := bytes.Repeat([]byte{'v'}, nearValue)
	entries := []frame.Entry{
		{Kind: base.KindPut, Key: []byte("b"), Value: long},
		{Kind: base.KindPut, Key: []byte("a"), Value: long[1:]}, // near enough
		{Kind: base.KindDelete, Key: []byte("c")},
		{Kind: base.KindPut, Key: bytes.Repeat([]byte{'d'}, maxCopied+1), Value: long}, // too long
		{Kind: base.KindRangeDelete, Key: []byte("a"), Value: long},
		{Kind: base.KindPut, Key: bytes.Repeat([]byte{'e'}, maxCopied), Value: long},
		{Kind: base.KindPut, Key: []byte("f"), Value: long}, // no room left
	}
	var buf []byte
	for _, e := range entries {
		buf = frame.AppendEntry(buf, e.Kind, e.Key, e.Value)
	}
	n := len(entries)
	table := New(buf, make([]byte, Layout(n)+2+1+2+1+2+maxCopied), n)
	for at := 0; at < len(buf); {
		e, length := frame.DecodeEntry(buf[at:])
		table.Insert(at, &e, base.Hash(e.Key))
		at += length
	}
	var copied []int
	for i, e := range entries {
		if table.copy[i] != 0 {
			copied = append(copied, i)
		}
		if kind, key := table.key(uint32(i)); kind != e.Kind || !bytes.Equal(key, e.Key) {
			t.Errorf("record %d: %v %.10q, want %v %.10q", i, kind, key, e.Kind, e.Key)
		}
	}
	if !slices.Equal(copied, []int{0, 2, 5}) {
		t.Errorf("copied are %v", copied)
	}
}

// BenchmarkFirstOrder is what the first scan of several tables costs in which every key was put in
// order, deleted at random and put again (W1).
func BenchmarkFirstOrder(b *testing.B) {
	const keys, value = 10_000, 300
	r := rand.New(rand.NewPCG(7, 7))
	var tables []*Table
	seq := uint64(1)
	add := func(kind base.Kind, keys []int, v []byte) {
		var buf []byte
		for _, k := range keys {
			buf = frame.AppendEntry(buf, kind, fmt.Appendf(nil, "%016d", k), v)
		}
		n := len(keys)
		t := New(buf, make([]byte, Layout(n)+CopyBytes(n, len(buf))), n)
		t.SetBase(seq)
		t.InsertAll(0, len(buf))
		tables, seq = append(tables, t), seq+uint64(n)
	}
	order := make([]int, keys)
	for i := range order {
		order[i] = i
	}
	v := make([]byte, value)
	add(base.KindPut, order, v)
	r.Shuffle(keys, func(i, j int) { order[i], order[j] = order[j], order[i] })
	add(base.KindDelete, order, nil)
	r.Shuffle(keys, func(i, j int) { order[i], order[j] = order[j], order[i] })
	add(base.KindPut, order[:keys/3], v)
	add(base.KindPut, order[keys/3:], v)
	for b.Loop() {
		for _, t := range tables {
			t.num.Store(0)
		}
		var s Stack
		s.Init(1<<30, func(int64) {}, func() uint64 { return seq })
		its, ok := s.Append(nil, nil, tables, seq)
		if !ok || len(its) != 1 || len(its[0].(*Iter).refs) != keys {
			b.Fatal(ok, len(its))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys/3, "ns/record")
}

func BenchmarkSort(b *testing.B) {
	for _, shape := range []string{"in order", "shuffled", "random bytes", "families"} {
		for _, n := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/n=%d", shape, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				keys := [][]byte{}
				for i := range n {
					keys = append(keys, keysOf[shape](r, i, n))
				}
				table := filled(keys)
				for b.Loop() {
					table.sorted(0, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
			})
		}
	}
}
