package sorted

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs/memfs"
)

// version is one of a key.
type version struct {
	key, value string // a delete has no value
	seq        uint64
}

func (v *version) kind() base.Kind {
	if v.value == "" {
		return base.KindDelete
	}
	return base.KindPut
}

// store is a State that grows, and all that was ever committed.
type store struct {
	*testing.T
	rng      *rand.Rand
	disk     *memfs.FS
	budget   *arena.Budget
	pages    *cache.Cache
	slot     *epoch.Slot
	order    memtable.Stack
	version  manifest.Version
	layers   []*tree.Layer
	handles  map[uint64]*tree.Handle
	versions []version
	prefix   string
	lengths  [2]int // of keys behind the prefix
	family   int    // what the keys that are committed begin with behind the prefix, if not negative
}

func newStore(t *testing.T, seed uint64) *store {
	s := &store{T: t, rng: rand.New(rand.NewPCG(seed, 1)), disk: memfs.New(), family: -1, budget: arena.NewBudget(64 << 20), handles: map[uint64]*tree.Handle{}}
	epochs := epoch.New()
	s.pages, s.slot = cache.New(s.budget, epochs), epochs.Register()
	s.order.Init(1<<20, func(int64) {}, func() uint64 { return 0 })
	s.prefix = []string{"k", "a prefix of all keys/"}[s.rng.IntN(2)]
	s.lengths = [][2]int{{0, 11}, {0, 4}, {2, 3}, {4, 4}, {8, 8}, {9, 9}}[s.rng.IntN(6)]
	t.Cleanup(func() {
		for _, h := range s.handles {
			h.Reader.Close()
		}
		s.slot.Release()
		s.pages.Close()
	})
	return s
}

func (s *store) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// letters come before all others, after them, and between.
var letters = []byte{0, 'a', 'b', 255}

// key returns a key of few letters: many begin alike, and some are the beginning of others.
func (s *store) key() string {
	k := []byte(s.prefix)
	for range s.lengths[0] + s.rng.IntN(s.lengths[1]-s.lengths[0]+1) {
		k = append(k, letters[s.rng.IntN(len(letters))])
	}
	if s.family >= 0 && len(k) > len(s.prefix) {
		k[len(s.prefix)] = letters[s.family]
	}
	return string(k)
}

// commit commits n versions and returns them.
func (s *store) commit(n int) []version {
	from := len(s.versions)
	s.family = s.rng.IntN(2*len(letters)) - len(letters)
	defer func() { s.family = -1 }()
	for range n {
		v := version{key: s.key(), seq: uint64(len(s.versions) + 1)}
		if len(s.versions) > 0 && s.rng.IntN(3) == 0 {
			v.key = s.versions[s.rng.IntN(len(s.versions))].key
		}
		if s.rng.IntN(4) > 0 {
			v.value = fmt.Sprintf("%d%s", v.seq, make([]byte, s.rng.IntN(100)))
		}
		s.versions = append(s.versions, v)
	}
	return slices.Clone(s.versions[from:])
}

// memtable puts a memtable of n versions on top.
func (s *store) memtable(n int) *tree.Memory {
	first := uint64(len(s.versions) + 1)
	buf := make([]byte, 64)
	for _, v := range s.commit(n) {
		buf = frame.AppendEntry(buf, v.kind(), []byte(v.key), []byte(v.value))
	}
	m := tree.NewMemory(nil, buf, make([]byte, tree.IndexBytes(len(buf), n+1)), n+1, func(*tree.Memory) {})
	m.SetBase(first)
	if count, end := m.InsertAll(64, len(buf)); count != n || end != len(buf) {
		s.Fatalf("%d of %d entries", count, n)
	}
	s.layers = slices.Insert(slices.Clone(s.layers), 0, &tree.Layer{Mem: m})
	return m
}

// tables makes a run of n tables, or fewer, of versions.
func (s *store) tables(versions []version, n int) (metas []*base.TableMeta) {
	s.Helper()
	slices.SortFunc(versions, func(a, b version) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq)) })
	for each := len(versions)/n + 1; len(versions) > 0; {
		end := min(each, len(versions))
		for end < len(versions) && versions[end].key == versions[end-1].key {
			end++
		}
		num := uint64(len(s.handles) + 1)
		name := base.FileName(base.FileTable, num)
		f, err := s.disk.Create(name)
		s.ok(err)
		w := table.NewWriter(f, table.WriterOptions{Num: num, BlockBytes: 512})
		for _, v := range versions[:end] {
			s.ok(w.Add([]byte(v.key), v.seq, v.kind(), []byte(v.value)))
		}
		meta, err := w.Finish()
		s.ok(err)
		f, err = s.disk.Open(name)
		s.ok(err)
		r, err := table.Open(f, meta, base.ID{}, name, s.pages, s.budget)
		s.ok(err)
		s.handles[num] = &tree.Handle{Meta: &meta, Reader: r, OnUnused: func(*tree.Handle) {}}
		metas, versions = append(metas, &meta), versions[end:]
	}
	return metas
}

// grow makes a State of any form: runs below memtables, or one of both.
func (s *store) grow() *tree.State {
	if s.rng.IntN(3) > 0 {
		s.version.Levels[manifest.Bottom] = s.tables(s.commit(1+s.rng.IntN(800)), 1+s.rng.IntN(5))
	}
	for range s.rng.IntN(3) {
		run := manifest.Run{ID: uint64(len(s.versions) + 1), Tables: s.tables(s.commit(1+s.rng.IntN(100)), 1)}
		s.version.L0 = slices.Insert(s.version.L0, 0, run)
	}
	for range s.rng.IntN(4) {
		s.memtable(s.rng.IntN(100))
	}
	return s.state()
}

func (s *store) state() *tree.State {
	return tree.NewState(s.layers, &s.version, func(m *base.TableMeta) *tree.Handle { return s.handles[m.Num] })
}

// flushed returns the greatest sequence in tables.
func (s *store) flushed() (seq uint64) {
	for _, t := range s.version.Tables() {
		seq = max(seq, t.MaxSeq)
	}
	return seq
}

// snapshot returns a sequence from one on up to the last.
func (s *store) snapshot(from uint64) uint64 {
	return from + s.rng.Uint64N(uint64(len(s.versions))-from+1)
}

func (s *store) build(rs *tree.State, snapshot uint64) *Rows {
	b := Builder{Order: &s.order, Slot: s.slot, Most: math.MaxInt, Stop: func() error { return nil }}
	return b.Build(rs, snapshot)
}

// seen returns what a snapshot sees, in order.
func (s *store) seen(snapshot uint64) (all []version) {
	last := map[string]version{}
	for _, v := range s.versions[:snapshot] {
		last[v.key] = v
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if v := last[key]; v.value != "" {
			all = append(all, v)
		}
	}
	return all
}

// walker is what Iter and the iterator that merges it with others have in common.
type walker interface {
	First() bool
	Last() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() []byte
	Seq() uint64
	Value() ([]byte, error)
	Err() error
}

// walk moves an iterator about and compares where it stands with what it is to walk.
func (s *store) walk(it walker, all []version) {
	s.Helper()
	at := -1
	expect := func(op string, ok bool, i int) {
		s.Helper()
		if at = i; i >= len(all) {
			at = -1
		}
		if ok != (at >= 0) || it.Valid() != ok || it.Err() != nil {
			s.Fatalf("%s: %v, %v; want row %d of %d", op, ok, it.Err(), at, len(all))
		}
		if ok && (string(it.Key()) != all[at].key || it.Seq() != all[at].seq) {
			s.Fatalf("%s: at %q, sequence %d, want %+v", op, it.Key(), it.Seq(), all[at])
		}
		if ok && s.rng.IntN(8) == 0 {
			if value, err := it.Value(); err != nil || string(value) != all[at].value {
				s.Fatalf("%s: %q has value %q, want %q; %v", op, it.Key(), value, all[at].value, err)
			}
		}
	}
	for range 20 {
		key := s.key()
		switch s.rng.IntN(8) {
		case 0:
			key = key[:s.rng.IntN(len(key)+1)]
		case 1:
			key += string(letters[s.rng.IntN(len(letters)):][:1])
		case 2:
			key = []string{"z", s.prefix + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}[s.rng.IntN(2)]
		}
		i, _ := slices.BinarySearchFunc(all, key, func(v version, key string) int { return cmp.Compare(v.key, key) })
		switch s.rng.IntN(6) {
		case 0:
			expect("First", it.First(), 0)
		case 1:
			expect("Last", it.Last(), len(all)-1)
		case 2, 3:
			expect(fmt.Sprintf("SeekGE %q", key), it.SeekGE([]byte(key)), i)
		default:
			expect(fmt.Sprintf("SeekLT %q", key), it.SeekLT([]byte(key)), i-1)
		}
		for back := s.rng.IntN(3) == 0; at >= 0 && s.rng.IntN(40) > 0; {
			if back {
				expect("Prev", it.Prev(), at-1)
			} else {
				expect("Next", it.Next(), at+1)
			}
			back = back != (s.rng.IntN(20) == 0)
		}
	}
}

// TestRows: rows of a State of any form are what its snapshot sees, in order; and with what is committed since merged
// in, what later snapshots see.
func TestRows(t *testing.T) {
	var it Iter // its memory is used again
	for seed := range uint64(100) {
		s := newStore(t, seed)
		rs := s.grow()
		snapshot := s.snapshot(s.flushed())
		rows := s.build(rs, snapshot)
		if want := s.seen(snapshot); rows.Len() != len(want) || rows == nil {
			t.Fatalf("seed %d: %d rows, want %d", seed, rows.Len(), len(want))
		}
		it.Init(rows, s.slot)
		s.walk(&it, s.seen(snapshot))
		s.strides(&it, s.seen(snapshot))
		s.ok(it.Close())

		for range s.rng.IntN(3) {
			s.memtable(1 + s.rng.IntN(50))
		}
		later := s.state()
		if !rows.Of(later) {
			t.Fatalf("seed %d: not of a State with memtables on top", seed)
		}
		for range 3 {
			snapshot := s.snapshot(snapshot)
			its, _, ok := rows.Since(nil, nil, nil, later, snapshot)
			if !ok {
				t.Fatalf("seed %d: nothing to be had of what came later", seed)
			}
			it.Init(rows, s.slot)
			sources := []iterator.Source{{It: &it, Plain: true}}
			for _, later := range its {
				sources = append(sources, iterator.Source{It: later})
			}
			all := iterator.New(sources, base.Visibility{Snapshot: snapshot}, nil, nil)
			s.walk(all, s.seen(snapshot))
			s.ok(all.Close())
		}
		rows.Drop()
	}
}

// strides compares strides with the rows that there are.
func (s *store) strides(it *Iter, all []version) {
	s.Helper()
	if n := it.Stride(nil); !it.Valid() && n != 0 {
		s.Errorf("a stride of %d rows from nowhere", n)
	}
	for i := 0; i < len(all); i++ {
		if limit := []byte(s.key()); !it.SeekGE([]byte(all[i].key)) {
			s.Fatal(it.Err())
		} else if n := it.Stride(limit); n > 0 && all[i+n].key >= string(limit) || n < 0 || n > mostStride {
			s.Errorf("a stride of %d rows from %q is not below %q", n, all[i].key, limit)
		}
		if n := it.Stride(nil); n != min(mostStride, len(all)-i-1) {
			s.Errorf("a stride of %d rows from number %d of %d", n, i, len(all))
		}
	}
}

// TestRefused: there are no rows where a range tombstone, or tables that no manifest names, would have to be looked
// at, nor where they cannot be made.
func TestRefused(t *testing.T) {
	stop := errors.New("stop")
	for what, refuse := range map[string]func(s *store, b *Builder){
		"": func(*store, *Builder) {},
		"range tombstone": func(s *store, _ *Builder) {
			m := s.memtable(0)
			s.layers[0].Mem = m
			e := frame.Entry{Kind: base.KindRangeDelete, Key: []byte("a"), Value: []byte("b")}
			m.Insert(64, &e, base.Hash(e.Key))
		},
		"large transaction": func(s *store, _ *Builder) { s.layers = append(s.layers, &tree.Layer{Seq: 1}) },
		"too many rows":     func(s *store, b *Builder) { b.Most = len(s.seen(uint64(len(s.versions)))) - 1 },
		"stopped":           func(_ *store, b *Builder) { b.Stop = func() error { return stop } },
		"too many memtables": func(s *store, _ *Builder) {
			for range mostMemory {
				s.memtable(0)
			}
		},
		"a block is damaged": func(s *store, _ *Builder) {
			s.ok(s.disk.Corrupt(base.FileName(base.FileTable, 1), 100, 1))
		},
	} {
		s := newStore(t, 7)
		s.version.Levels[manifest.Bottom] = s.tables(s.commit(3*stopEvery), 1)
		s.memtable(10)
		b := Builder{Order: &s.order, Slot: s.slot, Most: math.MaxInt, Stop: func() error { return nil }}
		refuse(s, &b)
		if rows := b.Build(s.state(), uint64(len(s.versions))); (rows == nil) != (what != "") {
			t.Errorf("%s: %d rows", what, rows.Len())
		}
		if rows := b.Build(s.state(), s.flushed()-1); rows != nil {
			t.Errorf("%s: %d rows of a snapshot that is older than a table", what, rows.Len())
		}
	}
}

// TestOf: rows are of their State, and of one that has more memtables on top, and of no other.
func TestOf(t *testing.T) {
	s := newStore(t, 3)
	s.version.Levels[manifest.Bottom] = s.tables(s.commit(10), 1)
	s.memtable(10)
	rs := s.state()
	rows := s.build(rs, uint64(len(s.versions)))
	s.memtable(10)
	above := s.state()
	ingested := tree.NewState(append([]*tree.Layer{{Seq: 9}}, above.Layers...), rs.Version, func(m *base.TableMeta) *tree.Handle { return s.handles[m.Num] })
	flushed := tree.NewState(above.Layers[:1], rs.Version, func(m *base.TableMeta) *tree.Handle { return s.handles[m.Num] })
	empty := tree.NewState(nil, rs.Version, func(m *base.TableMeta) *tree.Handle { return s.handles[m.Num] })
	merged := tree.NewState(rs.Layers, new(manifest.Version), nil)
	for what, c := range map[string]struct {
		rs   *tree.State
		want bool
	}{
		"its own": {rs, true}, "a memtable on top": {above, true}, "a large transaction on top": {ingested, false},
		"another memtable": {flushed, false}, "none": {empty, false}, "other tables": {merged, false}, "nil": {nil, false},
	} {
		if rows.Of(c.rs) != c.want {
			t.Errorf("%s: %v", what, !c.want)
		}
	}
	if (*Rows)(nil).Len() != 0 {
		t.Error("no rows have a length")
	}
	rows.Drop()
	if _, _, ok := rows.Since(nil, nil, nil, above, uint64(len(s.versions))); ok {
		t.Error("rows that were dropped are put in order")
	}
}

// TestDamage: an error sticks, and nothing is valid from then on.
func TestDamage(t *testing.T) {
	s := newStore(t, 5)
	s.version.Levels[manifest.Bottom] = s.tables(s.commit(1000), 1)
	rows := s.build(s.state(), s.flushed())
	s.ok(s.disk.Corrupt(base.FileName(base.FileTable, 1), 100, 1))
	var it Iter
	it.Init(rows, s.slot)
	if !it.Last() || it.Err() != nil {
		t.Fatalf("the last block is not damaged: %v", it.Err())
	}
	steps := []func() bool{it.First, it.Last, it.Next, it.Prev, func() bool { return it.SeekGE(nil) }, func() bool { return it.SeekLT(bytes.Repeat([]byte{255}, 20)) }}
	for i, step := range steps {
		if step() || it.Valid() || !errors.Is(it.Err(), base.ErrCorrupt) {
			t.Errorf("step %d: valid %v, %v", i, it.Valid(), it.Err())
		}
	}
	s.ok(it.Close())
}
