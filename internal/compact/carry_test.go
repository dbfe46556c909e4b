package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// shop writes tables, in memory, and reads them through a cache that is too small for them.
type shop struct {
	t      *testing.T
	fs     vfs.FS
	budget *arena.Budget
	cache  *cache.Cache
	slot   *epoch.Slot
	made   int
}

func newShop(t *testing.T) *shop {
	s := &shop{t: t, fs: memfs.New(), budget: arena.NewBudget(64 << 20)}
	dom := epoch.New()
	s.cache = cache.New(s.budget, dom)
	s.cache.SetScarce(true)
	s.slot = dom.Register()
	return s
}

func (s *shop) name(num int) string { return fmt.Sprintf("%06d.sst", num) }

// counting is an Output that counts the blocks it takes.
type counting struct {
	*table.Writer
	blocks *int
}

func (c counting) AddBlock(b *block.Stored) (bool, error) {
	ok, err := c.Writer.AddBlock(b)
	if ok {
		*c.blocks++
	}
	return ok, err
}

func (s *shop) create(codec block.Codec, blockBytes int) (*table.Writer, *pointindex.Builder) {
	s.made++
	f, err := s.fs.Create(s.name(s.made))
	if err != nil {
		s.t.Fatal(err)
	}
	points := pointindex.NewBuilder(s.budget)
	return table.NewWriter(f, table.WriterOptions{Name: s.name(s.made), Num: uint64(s.made), Codec: codec, BlockBytes: blockBytes, PointIndex: points}), points
}

func (s *shop) open(meta base.TableMeta) *table.Reader {
	f, err := s.fs.Open(s.name(int(meta.Num)))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := table.Open(f, meta, base.ID{}, s.name(int(meta.Num)), s.cache, s.budget)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { r.Close() })
	return r
}

// source is a run of random rows, in one table or several: most of them without a sequence, as those of the last level.
// Those of some have one sequence, which in some is the tables'.
type source struct{ tables []base.TableMeta }

// iter returns an iterator over the rows of a source.
func (s *shop) iter(src source) base.Iterator {
	open := func(i int) (base.Iterator, error) {
		return s.open(src.tables[i]).NewIter(s.slot, table.IterOptions{NoCache: true}), nil
	}
	if len(src.tables) == 1 {
		it, _ := open(0)
		return it
	}
	bounds := func(i int) ([]byte, []byte) { return src.tables[i].Smallest, src.tables[i].Largest }
	return iterator.NewConcat(len(src.tables), bounds, open)
}

// sources makes runs over some thousand keys, the newest first: the rows of each lie close together in some
// ranges, so that there are blocks in which no other run has a key.
func (s *shop) sources(r *rand.Rand) (out []source) {
	newest := uint64(1000)
	taken := map[int]bool{} // keys that have a row without a sequence: there is nothing older
	for range 2 + r.IntN(5) {
		rows := map[int]iterator.Entry{}
		what := r.IntN(8)
		mixed, alike, global := what == 0, what == 1, what == 2
		newest++
		alikeSeq := newest
		for range 1 + r.IntN(4) {
			from, step := r.IntN(6000), 1+r.IntN(3)
			for i := range r.IntN(1500) {
				k := from + i*step
				e := iterator.Entry{Key: fmt.Appendf(nil, "a key of %06d", k), Kind: base.KindPut, Value: make([]byte, r.IntN(60))}
				for j := range e.Value {
					e.Value[j] = 'a' + byte(r.IntN(4))
				}
				switch {
				case global: // stored without one
				case what == 3 && r.IntN(10) == 0:
					e.Kind, e.Value = base.KindDelete, nil
				case alike:
					e.Seq = alikeSeq
				case taken[k] || mixed && r.IntN(3) == 0:
					newest++
					e.Seq = newest
					if r.IntN(4) == 0 {
						e.Kind, e.Value = base.KindDelete, nil
					}
				}
				rows[k] = e
			}
		}
		for k := range rows {
			taken[k] = true
		}
		var src source
		codec := []block.Codec{block.Zstd, block.S2, block.None}[r.IntN(3)]
		keys := slices.Sorted(maps.Keys(rows))
		for i, tables := 0, 1+r.IntN(3); i < tables; i++ {
			if part := keys[i*len(keys)/tables : (i+1)*len(keys)/tables]; len(part) > 0 {
				src.tables = append(src.tables, s.table(codec, part, rows))
			}
		}
		if len(src.tables) == 0 {
			continue
		}
		for i := range src.tables {
			if meta := &src.tables[i]; global {
				meta.GlobalSeq, meta.MinSeq, meta.MaxSeq = alikeSeq, alikeSeq, alikeSeq
			}
		}
		out = append(out, src)
	}
	slices.Reverse(out)
	return out
}

// table writes the rows of some keys to a table.
func (s *shop) table(codec block.Codec, keys []int, rows map[int]iterator.Entry) base.TableMeta {
	w, points := s.create(codec, 4<<10)
	defer points.Discard()
	for _, k := range keys {
		e := rows[k]
		if err := w.Add(e.Key, e.Seq, e.Kind, e.Value); err != nil {
			s.t.Fatal(err)
		}
	}
	meta, err := w.Finish()
	if err != nil {
		s.t.Fatal(err)
	}
	return meta
}

// merge merges the sources and returns the tables and how many blocks were carried. Where rows is true only rows are
// merged.
func (s *shop) merge(in []source, m Merge, rows bool) (tables []*table.Reader, carried int, err error) {
	var its []base.Iterator
	for _, src := range in {
		its = append(its, s.iter(src))
	}
	merging := iterator.NewMerging(its...)
	defer merging.Close()
	m.Rows = merging
	if rows {
		m.Rows = struct{ base.Iterator }{merging}
	}
	indexes := map[uint64]*pointindex.Builder{}
	m.Create = func() (Output, error) {
		w, points := s.create(block.Zstd, 4<<10)
		indexes[uint64(s.made)] = points
		return counting{w, &carried}, nil
	}
	metas, err := m.Run()
	for _, meta := range metas {
		r := s.open(meta)
		if x, err := indexes[meta.Num].Build(); err != nil {
			s.t.Fatal(err)
		} else {
			r.AttachIndex(x)
		}
		tables = append(tables, r)
	}
	for _, points := range indexes {
		points.Discard()
	}
	return tables, carried, err
}

// contents returns all rows of some tables, whose keys ascend from table to table.
func (s *shop) contents(tables []*table.Reader) (out []iterator.Entry) {
	for _, r := range tables {
		it := r.NewIter(s.slot, table.IterOptions{NoCache: true})
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.Value()
			if err != nil {
				s.t.Fatal(err)
			}
			out = append(out, iterator.Entry{Key: bytes.Clone(it.Key()), Seq: it.Seq(), Kind: it.Kind(), Value: bytes.Clone(v)})
		}
		if err := it.Err(); err != nil {
			s.t.Fatal(err)
		}
		it.Close()
	}
	return out
}

// TestCarriedBlocks: a merge that takes blocks as they are stored writes the same rows, in tables that say the same of
// themselves, in which each key is found, and which stand every check.
func TestCarriedBlocks(t *testing.T) {
	all := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newShop(t)
		in := s.sources(r)
		m := Merge{Bottom: r.IntN(4) > 0, TargetBytes: int64(20<<10 + r.IntN(200<<10))}
		if r.IntN(3) == 0 {
			m.Low, m.High = fmt.Appendf(nil, "a key of %06d", r.IntN(4000)), fmt.Appendf(nil, "a key of %06d", 4000+r.IntN(4000))
		}
		if r.IntN(3) == 0 {
			low := r.IntN(6000)
			m.Tombstones = tombstone.Build([]tombstone.Tombstone{{Low: fmt.Appendf(nil, "a key of %06d", low), High: fmt.Appendf(nil, "a key of %06d", low+r.IntN(900)+1), Seq: 1 + uint64(r.IntN(2000))}})
		}
		byRow, none, err := s.merge(in, m, true)
		if err != nil || none != 0 {
			t.Fatal(err, none)
		}
		tables, carried, err := s.merge(in, m, false)
		if err != nil {
			t.Fatal(err)
		}
		all += carried
		want := s.contents(byRow)
		if got := s.contents(tables); !slices.EqualFunc(got, want, func(a, b iterator.Entry) bool {
			return bytes.Equal(a.Key, b.Key) && a.Seq == b.Seq && a.Kind == b.Kind && bytes.Equal(a.Value, b.Value)
		}) {
			t.Fatalf("seed %d: %d rows, want %d, or others", seed, len(got), len(want))
		}
		entries, raw, size, sizeByRow := uint64(0), int64(0), int64(0), int64(0)
		for _, table := range byRow {
			sizeByRow += table.Meta().Size
		}
		for _, table := range tables {
			if _, err := table.Verify(context.Background(), nil); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			entries, raw, size = entries+table.Meta().Entries, raw+table.Meta().RawBytes, size+table.Meta().Size
			for ts := range table.Tombstones().All() {
				raw -= int64(len(ts.Low) + len(ts.High))
			}
		}
		if size > sizeByRow*11/10+2000 {
			t.Errorf("seed %d: %d bytes on disk, %d row by row", seed, size, sizeByRow)
		}
		s.slot.Enter()
		for _, e := range want {
			i := slices.IndexFunc(tables, func(r *table.Reader) bool { return bytes.Compare(e.Key, r.Meta().Largest) <= 0 })
			var row table.Row
			ok, err := tables[i].Get(&row, e.Key, base.Hash(e.Key), base.Visibility{Snapshot: e.Seq})
			if !ok || err != nil || !bytes.Equal(row.Value, e.Value) {
				t.Fatalf("seed %d: get %q: %v %v %q, want %q", seed, e.Key, ok, err, row.Value, e.Value)
			}
			entries, raw = entries-1, raw-int64(len(e.Key)+len(e.Value))
		}
		s.slot.Exit()
		if entries != 0 || raw != 0 {
			t.Errorf("seed %d: the tables say they have %d rows and %d bytes more", seed, entries, raw)
		}
	}
	if all < 300 {
		t.Errorf("%d blocks were carried: the test tests little", all)
	}
}

// flipping is a file system in which one byte of a file is another one, from some read of it on.
type flipping struct {
	vfs.FS
	name  string
	at    int64
	clean int
}

func (f flipping) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || name != f.name {
		return file, err
	}
	return &flipped{file, f.at, f.clean}, nil
}

type flipped struct {
	vfs.File
	at    int64
	clean int // reads to come that find it as it was
}

func (f *flipped) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	if i := f.at - off; i >= 0 && i < int64(n) {
		if f.clean--; f.clean < 0 {
			b[i] ^= 0x20
		}
	}
	return n, err
}

// TestCarriedDamage: a block that is damaged is not carried under a new checksum, though its keys were read before.
func TestCarriedDamage(t *testing.T) {
	s := newShop(t)
	w, points := s.create(block.Zstd, 4<<10)
	points.Discard()
	for i := range 2000 {
		if err := w.Add(fmt.Appendf(nil, "key %06d", i), 0, base.KindPut, fmt.Appendf(nil, "value %d of a table that is to be merged", i)); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	in, m := []source{{tables: []base.TableMeta{meta}}}, Merge{Bottom: true, TargetBytes: 1 << 30}
	whole, carried, err := s.merge(in, m, false)
	if err != nil || carried < 5 {
		t.Fatalf("%d blocks carried, %v", carried, err)
	}
	sound, found, want := s.fs, [2]int{}, s.contents(whole)
	for at := int64(base.FileHeaderBytes) + 100; at < meta.Size-1500; at += 37 { // before index and footer
		for clean := range found {
			s.fs = flipping{sound, s.name(int(meta.Num)), at, clean}
			tables, _, err := s.merge(in, m, false)
			s.fs = sound
			var bad *base.CorruptionError
			switch {
			case errors.As(err, &bad):
				found[clean]++
			case err != nil:
				t.Fatal(err)
			case clean == 0 || !slices.EqualFunc(s.contents(tables), want, func(a, b iterator.Entry) bool {
				return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
			}):
				t.Fatalf("byte %d of %d is another one after %d reads: merged", at, meta.Size, clean)
			}
		}
	}
	if found[0] == 0 || found[1] == 0 {
		t.Errorf("damage was found %d times, and %d where the keys had been read", found[0], found[1])
	}
}
