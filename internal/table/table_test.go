package table

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/tombstone"
)

// walk moves an iterator at random and compares it with the model at each step.
func (c *content) walk(t *testing.T, it base.Iterator, r *rand.Rand, steps int) {
	t.Helper()
	at := -1 // model position; -1 or len(rows): nowhere
	for range steps {
		var ok bool
		probe := []byte(random(r, r.IntN(10), 256))
		if len(c.rows) > 0 && r.IntN(4) > 0 {
			probe = []byte(c.rows[r.IntN(len(c.rows))].key)
			if r.IntN(3) == 0 && len(probe) > 0 {
				probe = probe[:len(probe)-1]
			} else if r.IntN(3) == 0 {
				probe = append(probe, 0)
			}
		}
		what := r.IntN(12)
		switch {
		case what == 0:
			ok, at = it.First(), 0
		case what == 1:
			ok, at = it.Last(), len(c.rows)-1
		case what == 2:
			ok, at = it.SeekGE(probe), sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key >= string(probe) })
		case what == 3:
			ok, at = it.SeekLT(probe), sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key >= string(probe) })-1
		case what < 8:
			ok = it.Next()
			if at >= 0 && at < len(c.rows) {
				at++
			}
		default:
			ok = it.Prev()
			if at >= 0 && at < len(c.rows) {
				at--
			}
		}
		if at < 0 || at >= len(c.rows) {
			at = -1
		}
		if ok != (at >= 0) || it.Valid() != ok || it.Err() != nil {
			t.Fatalf("step %d: %v, valid %v, error %v; model at %d", what, ok, it.Valid(), it.Err(), at)
		}
		if ok {
			c.compare(t, it, at, r.IntN(2) == 0)
		}
	}
}

func (c *content) compare(t *testing.T, it base.Iterator, at int, value bool) {
	t.Helper()
	w := c.rows[at]
	if string(it.Key()) != w.key || it.Seq() != w.seq || it.Kind() != w.kind {
		t.Fatalf("iterator is at %q %d %v, want %q %d %v", it.Key(), it.Seq(), it.Kind(), w.key, w.seq, w.kind)
	}
	if it, ok := it.(*Iter); ok && it.IsNewest() && at > 0 && c.rows[at-1].key == w.key {
		t.Fatalf("%q at %d is said to be the newest version", w.key, w.seq)
	}
	if !value {
		return
	}
	v, err := it.Value()
	if err != nil || string(v) != w.val || (v == nil) != (w.kind == base.KindDelete) {
		t.Fatalf("value of %q is %.50q, error %v, want %.50q", w.key, v, err, w.val)
	}
}

// scan compares all rows in both directions.
func (c *content) scan(t *testing.T, it base.Iterator) {
	t.Helper()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		c.compare(t, it, n, true)
		n++
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		n--
		c.compare(t, it, n, true)
	}
	if n != 0 || it.Err() != nil {
		t.Fatalf("scan is %d rows short, error %v", n, it.Err())
	}
}

// gets compares point reads of present and absent keys at several snapshots.
func (c *content) gets(t *testing.T, m *room, rd *Reader, r *rand.Rand) {
	t.Helper()
	check := func(key string, vis base.Visibility) {
		want, ok := c.find(key, vis)
		got, gotOK, err := m.get(rd, key, vis)
		if err != nil || ok != gotOK || ok && got != want {
			t.Fatalf("get %q at %v: %.60v %v %v, want %.60v %v", key, vis, got, gotOK, err, want, ok)
		}
		want.val = ""
		if got, gotOK, err := m.has(rd, key, vis); err != nil || ok != gotOK || ok && got != want {
			t.Fatalf("has %q at %v: %v %v %v, want %v %v", key, vis, got, gotOK, err, want, ok)
		}
	}
	for i, w := range c.rows {
		check(w.key, everything)
		if i%3 == 0 {
			check(w.key, base.Visibility{Snapshot: w.seq})
			check(w.key, base.Visibility{Snapshot: max(w.seq, 1) - 1})
			check(w.key+"\x00", everything)
			check(w.key[:len(w.key)/2], everything)
		}
	}
	for range 20 {
		check(random(r, r.IntN(20), 256), everything)
	}
}

func (c *content) checkMeta(t *testing.T, m base.TableMeta, f *memFile) {
	t.Helper()
	want := base.TableMeta{Num: 7, File: fileID, Size: int64(len(f.b)), MinSeq: math.MaxUint64}
	for i, w := range c.rows {
		if i == 0 {
			want.Smallest = []byte(w.key)
		}
		want.Largest = []byte(w.key)
		want.Entries++
		if w.kind == base.KindDelete {
			want.Deletes++
		}
		want.RawBytes += int64(len(w.key) + len(w.val))
		want.MinSeq, want.MaxSeq = min(want.MinSeq, w.seq), max(want.MaxSeq, w.seq)
	}
	seen := map[tomb]bool{}
	for i, d := range c.tombs {
		if seen[d] {
			continue
		}
		seen[d] = true
		first := i == 0 && len(c.rows) == 0
		if first || d.low < string(want.Smallest) {
			want.Smallest = []byte(d.low)
		}
		if first || d.high > string(want.Largest) {
			want.Largest, want.LargestExclusive = []byte(d.high), true
		}
		want.RangeDeletes++
		want.RawBytes += int64(len(d.low) + len(d.high))
		want.MinSeq, want.MaxSeq = min(want.MinSeq, d.seq), max(want.MaxSeq, d.seq)
	}
	if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", want) {
		t.Fatalf("meta is\n%+v, want\n%+v", m, want)
	}
}

func (c *content) checkTombstones(t *testing.T, rd *Reader, r *rand.Rand) {
	t.Helper()
	var ts []tombstone.Tombstone
	for _, d := range c.tombs {
		ts = append(ts, tombstone.Tombstone{Low: []byte(d.low), High: []byte(d.high), Seq: d.seq})
	}
	want := tombstone.Build(ts)
	for i := range 200 {
		key := []byte(random(r, r.IntN(10), 256))
		if len(c.tombs) > 0 && i%2 == 0 {
			key = []byte(c.tombs[r.IntN(len(c.tombs))].low)
		}
		if got := rd.Tombstones().Cover(key, everything); got != want.Cover(key, everything) {
			t.Fatalf("tombstone over %q: %d, want %d", key, got, want.Cover(key, everything))
		}
	}
}

// checkTable compares every way to read a table with the model.
func (c *content) checkTable(t *testing.T, opts WriterOptions, r *rand.Rand) {
	t.Helper()
	m := newRoom(t, 1<<30)
	opts.PointIndex = pointindex.NewBuilder(m.budget)
	f, meta := c.write(t, opts)
	c.checkMeta(t, meta, f)
	rd := m.open(t, f, meta)
	ctx, done := context.Background(), int64(0)
	if _, err := rd.Verify(ctx, func(n int64) { done = n }); err != nil || done != meta.Size {
		t.Fatalf("verify: %v, %d of %d bytes", err, done, meta.Size)
	}
	c.gets(t, m, rd, r)
	c.checkTombstones(t, rd, r)
	for _, build := range []func() (*pointindex.Index, error){opts.PointIndex.Build, func() (*pointindex.Index, error) { return rd.BuildIndex(ctx) }} {
		x, err := build()
		if err != nil {
			t.Fatal(err)
		}
		if old := rd.AttachIndex(x); old != nil {
			old.Free()
		}
		c.gets(t, m, rd, r)
	}
	for _, noCache := range []bool{false, true} {
		it := rd.NewIter(m.slot, IterOptions{NoCache: noCache})
		if it.Next() || it.Prev() || it.Valid() {
			t.Fatal("iterator stands somewhere before it was put there")
		}
		c.walk(t, it, r, 300)
		c.scan(t, it)
		it.Close()
		if m.slot.Inside() {
			t.Fatal("iterator left the epoch open")
		}
	}
	c.scan(t, rd.NewIter(nil, IterOptions{}))
}

func TestRandomTables(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			opts := WriterOptions{Codec: codecs[seed%3], BlockBytes: []int{512, 2000, 64 << 10}[r.IntN(3)]}
			randomContent(r).checkTable(t, opts, r)
		})
	}
}

func TestShapes(t *testing.T) {
	long := strings.Repeat("k", base.MaxKeyBytes-4)
	longKeys, versions, deep, ties := &content{}, &content{}, &content{}, &content{}
	for i := range 12 {
		longKeys.rows = append(longKeys.rows, row{fmt.Sprintf("%s%04d", long, i), 1, base.KindPut, "v"})
	}
	for i := range 2000 {
		versions.rows = append(versions.rows, row{fmt.Sprint("key", i%3), uint64(i) + 1, base.KindPut, fmt.Sprint(i)})
		deep.rows = append(deep.rows, row{strings.Repeat("p", 300) + fmt.Sprint(i), 1, base.KindPut, ""})
		ties.rows = append(ties.rows, row{"a\x00\x00\x00\x00\x00\x00\x00"[:1+i%8] + strings.Repeat("\x00", i/8), 3, base.KindDelete, ""})
	}
	prefixes := &content{}
	for i := range 300 {
		prefixes.rows = append(prefixes.rows, row{strings.Repeat("x", i), 1, base.KindPut, strings.Repeat("y", i)})
	}
	for name, c := range map[string]*content{
		"one row":            {rows: []row{{"a", 1, base.KindPut, "b"}}},
		"empty key":          {rows: []row{{"", 1, base.KindPut, ""}}},
		"empty key, deleted": {rows: []row{{"", 2, base.KindDelete, ""}, {"", 1, base.KindPut, "x"}, {"b", 1, base.KindPut, ""}}},
		"only tombstones":    {tombs: []tomb{{"a", "c", 5}, {"b", "d", 6}, {"", "a", 9}, {"a", "c", 5}}},
		"tombstone ends at the last key": {rows: []row{{"a", 1, base.KindPut, ""}, {"c", 2, base.KindPut, ""}},
			tombs: []tomb{{"b", "c", 4}}},
		"tombstone around": {rows: []row{{"b", 1, base.KindPut, ""}}, tombs: []tomb{{"a", "c", 4}}},
		"long keys":        longKeys,
		"many versions":    versions,
		"deep prefix":      deep,
		"zero bytes":       ties,
		"prefixes":         prefixes,
		"counters":         counters(5000, 1),
		"large values":     counters(40, 50000),
	} {
		c.sort()
		for _, codec := range codecs {
			t.Run(fmt.Sprint(name, " ", codec), func(t *testing.T) {
				for _, size := range []int{0, 600} {
					c.checkTable(t, WriterOptions{Codec: codec, BlockBytes: size}, rand.New(rand.NewPCG(1, 1)))
				}
			})
		}
	}
}

func TestJumboValues(t *testing.T) {
	r := rand.NewChaCha8([32]byte{9})
	noise := make([]byte, 3<<20)
	r.Read(noise)
	c := &content{rows: []row{
		{"a", 1, base.KindPut, "small"},
		{"b", 1, base.KindPut, string(noise[:block.MaxPageBytes])},
		{"c", 9, base.KindPut, string(noise[:block.MaxPageBytes+1])},
		{"c", 3, base.KindPut, strings.Repeat("z", 2*block.MaxPageBytes)},
		{"c", 2, base.KindPut, string(noise)},
		{"d", 1, base.KindPut, strings.Repeat("0123456789", 500000)},
		{"e", 1, base.KindPut, "small"},
	}}
	for _, codec := range codecs {
		c.checkTable(t, WriterOptions{Codec: codec}, rand.New(rand.NewPCG(1, 2)))
	}
	m := newRoom(t, 1<<30)
	f, meta := c.write(t, WriterOptions{})
	rd := m.open(t, f, meta)
	m.slot.Enter()
	defer m.slot.Exit()
	var got Row
	_, err := rd.Get(&got, []byte("d"), 0, everything)
	if err != nil || got.Page != nil || len(got.Value) != 5000000 {
		t.Fatalf("jumbo value: %d bytes, page %v, error %v", len(got.Value), got.Page, err)
	}
	for _, at := range []int{0, len(noise) / 2, len(noise) - 64} {
		damaged := &memFile{b: bytes.Clone(f.b)}
		damaged.b[bytes.LastIndex(f.b, noise[at:at+64])] ^= 1
		mustBeCorruption(t, fmt.Sprint("verify, damaged at ", at), second(m.open(t, damaged, meta).Verify(context.Background(), nil)))
	}
}

// TestMemoryOfJumboValues: a value of several pages is written without room for as much again, and read into memory that
// is taken once.
func TestMemoryOfJumboValues(t *testing.T) {
	const bytes, more = 64 << 20, 40 << 20 // pools forget a fourth of what they are given where races are looked for
	noise := make([]byte, bytes)
	rand.NewChaCha8([32]byte{9}).Read(noise)
	for what, value := range map[string][]byte{"noise": noise, "zeros": make([]byte, bytes)} {
		f := &memFile{b: make([]byte, 0, bytes+bytes/8)}
		w := NewWriter(f, WriterOptions{Name: "7.sst", Num: 7, File: fileID, Store: storeID, Codec: block.Zstd})
		var meta base.TableMeta
		n := allocated(func() {
			err := w.Add([]byte("k"), 1, base.KindPut, value)
			if err == nil {
				meta, err = w.Finish()
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if n > more {
			t.Errorf("%s: writing took %d bytes", what, n)
		}
		m := newRoom(t, 1<<30)
		r := m.open(t, &memFile{b: f.b}, meta)
		m.slot.Enter()
		var got Row
		n = allocated(func() {
			if _, err := r.Get(&got, []byte("k"), 0, everything); err != nil || string(got.Value) != string(value) {
				t.Errorf("%s: %d bytes, %v", what, len(got.Value), err)
			}
		})
		m.slot.Exit()
		if n > bytes+more {
			t.Errorf("%s: reading took %d bytes", what, n)
		}
	}
}

// allocated returns how many bytes f takes of the Go heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

func TestGlobalSeq(t *testing.T) {
	c := counters(500, 3)
	for i := range c.rows {
		c.rows[i].seq = 0
	}
	c.tombs = []tomb{{"x", "y", 0}}
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	for name, change := range map[string]func(*base.TableMeta){
		"sequences as in the file": func(m *base.TableMeta) {},
		"global sequences":         func(m *base.TableMeta) { m.MinSeq, m.MaxSeq = 77, 77 },
	} {
		t.Run(name, func(t *testing.T) {
			meta := meta
			meta.GlobalSeq = 77
			change(&meta)
			rd := m.open(t, &memFile{b: f.b}, meta)
			if _, ok, _ := m.get(rd, c.rows[9].key, base.Visibility{Snapshot: 76}); ok {
				t.Error("row visible before its global sequence")
			}
			if got, ok, _ := m.get(rd, c.rows[9].key, base.Visibility{Snapshot: 77}); !ok || got.seq != 77 {
				t.Errorf("row has sequence %d, %v", got.seq, ok)
			}
			it := rd.NewIter(m.slot, IterOptions{})
			defer it.Close()
			if !it.First() || it.Seq() != 77 {
				t.Error("iterator shows the stored sequence")
			}
			if rd.Tombstones().Cover([]byte("x"), everything) != 77 {
				t.Error("tombstone has the stored sequence")
			}
			if err := second(rd.Verify(context.Background(), nil)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPart: parts of a table have about their share of the blocks.
func TestPart(t *testing.T) {
	c := &content{}
	for i := range 5000 {
		c.rows = append(c.rows, row{fmt.Sprintf("key%05d", i), 1, base.KindPut, fmt.Sprintf("%0100d", i)})
	}
	f, meta := c.write(t, WriterOptions{BlockBytes: 4096})
	rd := newRoom(t, 1<<20).open(t, f, meta)
	for _, share := range []float64{0, 0.1, 0.25, 0.5, 0.9, 0.999} {
		key, err := rd.Part(share)
		below := sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key >= string(key) })
		if got := float64(below) / 5000; err != nil || got < share-0.02 || got > share+0.02 {
			t.Errorf("%.3f: %q, %.3f of the rows lie below it, %v", share, key, got, err)
		}
	}
}
