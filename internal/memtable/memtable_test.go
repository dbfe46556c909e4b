package memtable_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/iterator/itertest"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/tombstone"
)

// builder fills a table and its buffer.
type builder struct {
	*memtable.Table
	buf     []byte
	off     int
	growing bool
}

// newFixed makes a table for n records over a buffer of size bytes.
func newFixed(n, size int, first uint64) *builder {
	return newCopying(n, size, memtable.CopyBytes(n, size), first)
}

// newCopying makes one with so many bytes for copies of keys.
func newCopying(n, size, copies int, first uint64) *builder {
	mem := bytes.Repeat([]byte{0xA5}, memtable.Layout(n)+copies) // of any content
	b := &builder{buf: make([]byte, size)}
	b.Table = memtable.New(b.buf, mem, n)
	b.SetBase(first)
	return b
}

func newGrowing(first uint64) *builder {
	return &builder{Table: memtable.NewGrowing(first), growing: true}
}

func (b *builder) add(kind base.Kind, key, value []byte) {
	at := b.off
	if b.growing {
		b.buf = frame.AppendEntry(b.buf, kind, key, value)
		b.SetBuffer(b.buf)
		b.off = len(b.buf)
	} else {
		b.off += copy(b.buf[at:], frame.AppendEntry(nil, kind, key, value))
	}
	e, _ := frame.DecodeEntry(b.buf[at:])
	b.Insert(at, &e, base.Hash(key))
}

// model is what a table must agree with: all its entries in order of insertion.
type model struct {
	first   uint64
	entries []iterator.Entry
}

func (m *model) add(kind base.Kind, key, value []byte) {
	m.entries = append(m.entries, iterator.Entry{Key: key, Seq: m.first + uint64(len(m.entries)), Kind: kind, Value: value})
}

func (m *model) get(key []byte, vis base.Visibility) (found iterator.Entry, ok bool) {
	for _, e := range m.entries {
		if e.Kind != base.KindRangeDelete && vis.Sees(e.Seq) && bytes.Equal(e.Key, key) {
			found, ok = e, true
		}
	}
	return found, ok
}

func (m *model) cover(key []byte, vis base.Visibility) (seq uint64) {
	for _, e := range m.entries {
		if e.Kind == base.KindRangeDelete && vis.Sees(e.Seq) && bytes.Compare(e.Key, key) <= 0 && bytes.Compare(key, e.Value) < 0 {
			seq = e.Seq
		}
	}
	return seq
}

// sorted returns the puts and deletes in the order of iterators.
func (m *model) sorted() (rows []iterator.Entry) {
	for _, e := range m.entries {
		if e.Kind != base.KindRangeDelete {
			rows = append(rows, e)
		}
	}
	iterator.Sort(rows)
	return rows
}

// TestModel runs random inserts, truncates now and then, and compares everything a
// table answers with the model, at all kinds of snapshots.
func TestModel(t *testing.T) {
	for _, growing := range []bool{false, true} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("growing=%v/seed=%d", growing, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				var b *builder
				m := &model{first: 1000}
				if growing {
					m.first = base.SeqPrivate
					b = newGrowing(m.first)
				} else {
					b = newCopying(1000, 1<<20, []int{0, 2500, memtable.CopyBytes(1000, 1<<20)}[seed%3], m.first)
				}
				key := func() []byte { return fmt.Appendf(nil, "\x00key%03d", r.IntN(200)) }
				for i := range 1000 {
					insert(r, b, m, key, i)
					compareGet(t, r, b, m, key())
					if r.IntN(200) == 0 {
						compareOrder(t, b, m)
					}
				}
				if b.Len() != 1000 || b.FirstSeq() != m.first || b.LastSeq() != m.first+999 {
					t.Fatalf("%d records, %d..%d", b.Len(), b.FirstSeq(), b.LastSeq())
				}
				compareOrder(t, b, m)
				b.Sort()
				compareOrder(t, b, m)
				if n := len(b.Iterators(nil)); n != 1 {
					t.Errorf("%d chunks after Sort", n)
				}
				compareRecords(t, b, m)
				for n := 999; n >= 0; n -= 1 + r.IntN(300) {
					b.Truncate(n)
					m.entries = m.entries[:n]
					compareOrder(t, b, m)
					compareRecords(t, b, m)
					for range 100 {
						compareGet(t, r, b, m, key())
					}
				}
			})
		}
	}
}

func insert(r *rand.Rand, b *builder, m *model, key func() []byte, i int) {
	k := key()
	switch p := r.IntN(100); {
	case p < 70:
		v := fmt.Appendf(nil, "%d%0*d", i, r.IntN(200), 0)
		b.add(base.KindPut, k, v)
		m.add(base.KindPut, k, v)
	case p < 95:
		b.add(base.KindDelete, k, nil)
		m.add(base.KindDelete, k, nil)
	default:
		k2 := key()
		if bytes.Compare(k, k2) > 0 {
			k, k2 = k2, k
		}
		k2 = append(k2, 0)
		b.add(base.KindRangeDelete, k, k2)
		m.add(base.KindRangeDelete, k, k2)
	}
}

func compareGet(t *testing.T, r *rand.Rand, b *builder, m *model, key []byte) {
	t.Helper()
	n := uint64(len(m.entries) + 5)
	vis := base.Visibility{Snapshot: m.first + r.Uint64N(n)}
	if m.first >= base.SeqPrivate {
		vis = base.Visibility{Snapshot: 77, PrivateLimit: m.first + r.Uint64N(n)}
	} else if r.IntN(10) == 0 {
		vis.Snapshot = r.Uint64N(m.first)
	}
	want, ok := m.get(key, vis)
	var e frame.Entry
	seq, found := b.Get(&e, key, base.Hash(key), vis)
	if found != ok || ok && (seq != want.Seq || e.Kind != want.Kind || !bytes.Equal(e.Value, want.Value)) {
		t.Fatalf("get %q at %+v: %v %d %v; want %v %+v", key, vis, e.Kind, seq, found, ok, want)
	}
	if got, want := b.Cover(key, vis), m.cover(key, vis); got != want {
		t.Fatalf("cover of %q at %+v: %d, want %d", key, vis, got, want)
	}
	if covers := b.Covers(); r.IntN(10) == 0 {
		for range 20 {
			if got, want := covers.Cover(key, vis), m.cover(key, vis); got != want {
				t.Fatalf("cover of %q at %+v: %d, want %d", key, vis, got, want)
			}
			key = fmt.Appendf(nil, "\x00key%03d", r.IntN(200))
		}
	}
}

// compareOrder merges the chunks and compares them with the sorted model.
func compareOrder(t *testing.T, b *builder, m *model) {
	t.Helper()
	it := iterator.NewMerging(b.Iterators(nil)...)
	defer it.Close()
	want := m.sorted()
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if i == len(want) || !bytes.Equal(it.Key(), want[i].Key) || it.Seq() != want[i].Seq || it.Kind() != want[i].Kind || !bytes.Equal(v, want[i].Value) || err != nil {
			t.Fatalf("row %d of %d is %q/%d", i, len(want), it.Key(), it.Seq())
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d rows of %d", i, len(want))
	}
	var ranges []iterator.Entry
	for _, e := range m.entries {
		if e.Kind == base.KindRangeDelete {
			ranges = append(ranges, e)
		}
	}
	same := func(ts tombstone.Tombstone, e iterator.Entry) bool {
		return ts.Seq == e.Seq && bytes.Equal(ts.Low, e.Key) && bytes.Equal(ts.High, e.Value)
	}
	if !slices.EqualFunc(b.RangeDeletes(), ranges, same) {
		t.Fatalf("range deletes %v, want %v", b.RangeDeletes(), ranges)
	}
}

func compareRecords(t *testing.T, b *builder, m *model) {
	t.Helper()
	if b.Len() != len(m.entries) {
		t.Fatalf("%d records of %d", b.Len(), len(m.entries))
	}
	for i, want := range m.entries {
		rec := b.Record(i)
		if rec.Seq != want.Seq || rec.Kind != want.Kind || !bytes.Equal(rec.Key, want.Key) || !bytes.Equal(rec.Value, want.Value) ||
			rec.Tag != b.Tag(i) || rec.Kind != base.KindRangeDelete && rec.Tag != uint32(base.Hash(want.Key)>>32) {
			t.Fatalf("record %d: %+v, want %+v", i, rec, want)
		}
	}
}

// TestIterator is the common suite, over a table of one chunk. Sequences in the
// table follow the order of insertion, as the suite's entries do.
func TestIterator(t *testing.T) {
	itertest.Run(t, func(entries []iterator.Entry) base.Iterator {
		bySeq := slices.Clone(entries)
		slices.SortFunc(bySeq, func(a, b iterator.Entry) int { return int(a.Seq) - int(b.Seq) })
		b := newGrowing(1)
		for _, e := range bySeq {
			b.add(e.Kind, e.Key, e.Value)
		}
		b.Sort()
		its := b.Iterators(nil)
		if len(its) == 0 {
			return iterator.NewSliceIter(nil)
		}
		return its[0]
	})
}

// TestIteratorOverTruncated is the suite again with records behind the limit mixed
// into the chunk.
func TestIteratorOverTruncated(t *testing.T) {
	itertest.Run(t, func(entries []iterator.Entry) base.Iterator {
		bySeq := slices.Clone(entries)
		slices.SortFunc(bySeq, func(a, b iterator.Entry) int { return int(a.Seq) - int(b.Seq) })
		b := newGrowing(1)
		for _, e := range bySeq {
			b.add(e.Kind, e.Key, e.Value)
		}
		for _, e := range bySeq { // as many again, which never happened
			b.add(base.KindPut, append(e.Key, byte(e.Seq%3)), []byte("never"))
		}
		b.Sort()
		b.Truncate(len(bySeq))
		its := b.Iterators(nil)
		if len(its) == 0 {
			return iterator.NewSliceIter(nil)
		}
		return its[0]
	})
}

// TestRoom: a fixed table says when it is full, a growing one never is.
func TestRoom(t *testing.T) {
	b := newFixed(3, 1000, 1)
	for i := range 3 {
		if !b.Room(3-i) || b.Room(4-i) {
			t.Errorf("%d records: room for %d %v, for %d %v", i, 3-i, b.Room(3-i), 4-i, b.Room(4-i))
		}
		b.add(base.KindPut, []byte{0, byte(i)}, nil)
	}
	if b.Room(1) || !newGrowing(1).Room(1<<30) {
		t.Error("room is wrong")
	}
}

// TestRoomForRangeDeletes: there is no room once range deletes take a quarter of the
// buffer's size of the heap, apart or in one another, but always in a table without.
func TestRoomForRangeDeletes(t *testing.T) {
	const records, size = 20_000, 1 << 20
	for name, bounds := range map[string]func(i int) (int, int){
		"apart":  func(i int) (int, int) { return 2 * i, 2*i + 1 },
		"nested": func(i int) (int, int) { return i, 3*records - i },
	} {
		b := newFixed(records, size, 1)
		for i := range records / 4 {
			b.add(base.KindPut, fmt.Appendf(nil, "\x00%06d", i), nil)
		}
		n := 0
		before := heapInUse()
		for ; b.Room(1) && b.Fits(1); n++ {
			low, high := bounds(n)
			b.add(base.KindRangeDelete, fmt.Appendf(nil, "\x00%06d", low), fmt.Appendf(nil, "\x00%06d", high))
		}
		took := heapInUse() - before
		t.Logf("%s: %d range deletes in %d bytes, %d each", name, n, took, took/int64(n))
		if !b.Fits(1) || took < size/6 || took > size*3/8 {
			t.Errorf("%s: room for %d range deletes, which take %d bytes", name, n, took)
		}
		if says := int64(b.RangeDeleteBytes()); says < took*3/4 || says > took*5/4 {
			t.Errorf("%s: they take %d bytes, it says %d", name, took, says)
		}
		if took/int64(n) > memtable.RangeDeleteBytes*3/2 {
			t.Errorf("%s: each takes %d bytes", name, took/int64(n))
		}
		runtime.KeepAlive(b)
	}
	if empty := newFixed(10, 100, 1); !empty.Room(10) {
		t.Error("no room in an empty table")
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFullTable fills every record: the slots must still leave an end to a search.
func TestFullTable(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 100, 4096} {
		b := newFixed(n, n*32, 1)
		for i := range n {
			b.add(base.KindPut, fmt.Appendf(nil, "\x00%06d", i), []byte("v"))
		}
		vis := base.Visibility{Snapshot: base.MaxSeq}
		for i := range 2 * n {
			key := fmt.Appendf(nil, "\x00%06d", i)
			if _, ok := b.Get(new(frame.Entry), key, base.Hash(key), vis); ok != (i < n) {
				t.Fatalf("n=%d: key %d: %v", n, i, ok)
			}
		}
	}
}

// TestEqualHashes: keys with the same tag are told apart.
func TestEqualHashes(t *testing.T) {
	b := newGrowing(1)
	const hash = 0x1234567890ABCDEF
	for i := range 50 {
		at := len(b.buf)
		key := fmt.Appendf(nil, "\x00%d", i%25)
		b.buf = frame.AppendEntry(b.buf, base.KindPut, key, fmt.Append(nil, i))
		b.SetBuffer(b.buf)
		e, _ := frame.DecodeEntry(b.buf[at:])
		b.Insert(at, &e, hash)
	}
	for i := range 25 {
		var e frame.Entry
		_, ok := b.Get(&e, fmt.Appendf(nil, "\x00%d", i), hash, base.Visibility{Snapshot: base.MaxSeq})
		if !ok || string(e.Value) != fmt.Sprint(i+25) {
			t.Errorf("key %d: %q %v", i, e.Value, ok)
		}
	}
}

// TestReset: a growing table is as new afterwards, whether it was small or large.
func TestReset(t *testing.T) {
	for _, n := range []int{10, 5000} {
		b := newGrowing(base.SeqPrivate)
		for round := range 3 {
			for i := range n {
				b.add(base.KindPut, fmt.Appendf(nil, "\x00%d-%d", round, i), nil)
			}
			b.add(base.KindRangeDelete, []byte{0}, []byte{1})
			b.Iterators(nil)
			b.Reset(base.SeqPrivate)
			b.buf, b.off = b.buf[:0], 0
			key := fmt.Appendf(nil, "\x00%d-%d", round, 0)
			if _, ok := b.Get(new(frame.Entry), key, base.Hash(key), base.Visibility{PrivateLimit: ^uint64(0)}); ok || b.Len() != 0 ||
				b.HasRangeDeletes() || len(b.Iterators(nil)) != 0 {
				t.Fatal("something is left after Reset")
			}
		}
	}
}

// TestNextKeyLeaps: passing a key with many versions looks at few of them.
func TestNextKeyLeaps(t *testing.T) {
	b := newGrowing(1)
	for i := range 50_000 {
		b.add(base.KindPut, []byte{0, byte(i % 2)}, nil)
	}
	b.add(base.KindPut, []byte{0, 9}, nil)
	b.Sort()
	it := b.Iterators(nil)[0].(iterator.KeyStepper)
	rows := it.(base.Iterator)
	n := testing.AllocsPerRun(1, func() {
		rows.First()
		for _, want := range []byte{0, 1, 9} {
			if !rows.Valid() || rows.Key()[1] != want {
				t.Fatalf("on %x, want %d", rows.Key(), want)
			}
			it.NextKey()
		}
	})
	if rows.Valid() || n != 0 {
		t.Errorf("valid %v, %v allocations", rows.Valid(), n)
	}
}

// Entries that are inserted together are found as those that are inserted one by one, with the same records,
// however many there are; what is malformed or finds no room ends it.
func TestInsertAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 16, 17, 300} {
		for _, cut := range []int{0, 1} {
			kinds := []base.Kind{base.KindPut, base.KindPut, base.KindPut, base.KindDelete, base.KindRangeDelete}
			one := newFixed(n+1, 64<<10, 100)
			last := 0 // where the last one begins
			for range n {
				last = one.off
				key := fmt.Appendf(nil, "key%02d", rng.IntN(40))
				kind := kinds[rng.IntN(len(kinds))]
				value := bytes.Repeat([]byte{'v'}, rng.IntN(150))
				switch kind {
				case base.KindDelete:
					value = nil
				case base.KindRangeDelete:
					value = append(key, 'z')
				}
				one.add(kind, key, value)
			}
			room := max(0, n-cut)
			all := newFixed(room, 64<<10, 100)
			copy(all.buf, one.buf)
			end := one.off
			if n > 0 && cut > 0 { // the last one finds no room
				end = last
			}
			if count, ended := all.InsertAll(0, one.off); count != room || ended != end {
				t.Fatalf("%d of %d entries, which end at %d: %d, at %d", room, n, end, count, ended)
			}
			if cut > 0 {
				continue
			}
			for i := range n {
				if got, want := all.Record(i), one.Record(i); got.Seq != want.Seq || got.Tag != want.Tag || !bytes.Equal(got.Key, want.Key) {
					t.Fatalf("record %d of %d is %v, want %v", i, n, got, want)
				}
			}
			for i := range 40 {
				key := fmt.Appendf(nil, "key%02d", i)
				for _, vis := range []base.Visibility{{Snapshot: 1 << 40}, {Snapshot: 100 + uint64(n)/2}} {
					var got, want frame.Entry
					seq, ok := all.Get(&got, key, base.Hash(key), vis)
					wantSeq, wantOK := one.Get(&want, key, base.Hash(key), vis)
					if ok != wantOK || ok && (seq != wantSeq || got.Kind != want.Kind || !bytes.Equal(got.Value, want.Value)) {
						t.Fatalf("%s seen from %d: %d %v, want %d %v", key, vis.Snapshot, seq, ok, wantSeq, wantOK)
					}
				}
				now := base.Visibility{Snapshot: 1 << 40}
				if got, want := all.Cover(key, now), one.Cover(key, now); got != want {
					t.Fatalf("%s is covered by %d, want %d", key, got, want)
				}
			}
		}
	}
	bad := newFixed(20, 1<<10, 1)
	for i := range 12 {
		bad.off += copy(bad.buf[bad.off:], frame.AppendEntry(nil, base.KindPut, fmt.Appendf(nil, "key%d", i), nil))
	}
	end := bad.off
	bad.buf[end] = 0xFF
	if count, ended := bad.InsertAll(0, end+10); count != 12 || ended != end {
		t.Errorf("12 entries before a malformed one at %d: %d, up to %d", end, count, ended)
	}
}

// TestHotVersions: of keys with many versions each snapshot gets its own, whoever has looked before, also where the
// newest were truncated, and of two keys with the same hash.
func TestHotVersions(t *testing.T) {
	const n = 20_000
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		b, first := newFixed(n, 1<<20, 1000), uint64(1000)
		keys, hashes := []string{"hot", "warm", "same hash", "cold"}, []uint64{1 << 40, 2 << 40, 1 << 40, 3 << 40}
		var versions [4][]uint64 // sequences
		last := first - 1
		get := func() {
			k, snapshot := r.IntN(len(keys)), first+r.Uint64N(last-first+2)-1
			at, found := slices.BinarySearch(versions[k], snapshot)
			if found {
				at++
			}
			var e frame.Entry
			seq, ok := b.Get(&e, []byte(keys[k]), hashes[k], base.Visibility{Snapshot: snapshot})
			if ok != (at > 0) || ok && (seq != versions[k][at-1] || string(e.Key) != keys[k] || string(e.Value) != fmt.Sprint(seq)) {
				t.Fatalf("%q at %d: %d %v %q %q", keys[k], snapshot, seq, ok, e.Key, e.Value)
			}
		}
		for range n {
			k := r.IntN(7)
			if k > 2 { // the last one seldom
				k = r.IntN(4)
			}
			last++
			at := b.off
			b.off += copy(b.buf[at:], frame.AppendEntry(nil, base.KindPut, []byte(keys[k]), fmt.Append(nil, last)))
			e, _ := frame.DecodeEntry(b.buf[at:])
			b.Insert(at, &e, hashes[k])
			versions[k] = append(versions[k], last)
			if r.IntN(10) == 0 {
				get()
			}
		}
		cut := 200 + r.Uint64N(1000)
		b.Truncate(int(n - cut))
		last -= cut
		for k := range versions {
			versions[k] = slices.DeleteFunc(versions[k], func(seq uint64) bool { return seq > last })
		}
		for range 2000 {
			get()
		}
	}
}
