package table

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/vfs"
)

func TestGetDoesNotAllocate(t *testing.T) {
	c := counters(20000, 20)
	f, meta := c.write(t, WriterOptions{Codec: block.S2})
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	run := func() {
		for i := 0; i < len(c.rows); i += 997 {
			key := []byte(c.rows[i].key)
			m.slot.Enter()
			var got Row
			if ok, err := rd.Get(&got, key, base.Hash(key), everything); !ok || err != nil || len(got.Value) != 20 {
				t.Fatal("not found")
			}
			m.slot.Exit()
		}
	}
	run()
	reads := f.reads
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations without point index", n)
	}
	x, err := rd.BuildIndex(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rd.AttachIndex(x)
	built := f.reads
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations with point index", n)
	}
	if f.reads != built || built-reads != rd.Blocks() {
		t.Errorf("%d reads by gets of resident pages, %d to build an index of %d blocks", f.reads-built, built-reads, rd.Blocks())
	}
}

// A get whose block is not in memory reads keys and values at once; where the values are
// damaged, it is not the keys that are said to be.
func TestGetReadsABlockOnce(t *testing.T) {
	c := counters(2000, 100)
	f, meta := c.write(t, WriterOptions{Codec: block.Zstd, BlockBytes: 8 << 10})
	m := newRoom(t, 1<<30)
	cold := func(f *memFile) *Reader {
		rd := m.open(t, f, meta)
		x, err := rd.BuildIndex(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rd.AttachIndex(x)
		rd.cache.DropAll(rd.slots)
		return rd
	}
	rd := cold(f)
	get := func(key string) error {
		m.slot.Enter()
		defer m.slot.Exit()
		var got Row
		ok, err := rd.Get(&got, []byte(key), base.Hash([]byte(key)), everything)
		if !ok && err == nil {
			t.Fatalf("%s is gone", key)
		}
		return err
	}
	before := f.reads
	for _, row := range c.rows {
		if err := get(row.key); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.reads - before; n != rd.Blocks() {
		t.Errorf("%d reads by gets in %d blocks", n, rd.Blocks())
	}

	f = &memFile{b: bytes.Clone(f.b)}
	rd = cold(f)
	e := &rd.index.Blocks[0]
	f.b[e.ValueOff()+int64(e.ValuePage)/2] ^= 1
	var bad *base.CorruptionError
	if err := get(c.rows[0].key); !errors.As(err, &bad) || bad.Offset != e.ValueOff() {
		t.Errorf("damaged values: %v, want corruption at %d", err, e.ValueOff())
	}
}

// A get of the key only reads the key page of its block, and nothing else, with a point index and without; while memory
// is scarce from the file that gets have of their own.
func TestGetOfTheKeyOnlyReadsNoValue(t *testing.T) {
	c := counters(100, 100)
	c.rows[50].val = string(make([]byte, block.MaxPageBytes+1))
	f, meta := c.write(t, WriterOptions{BlockBytes: 4 << 10})
	for _, scarce := range []bool{false, true} {
		for _, indexed := range []bool{false, true} {
			m := newRoom(t, 1<<30)
			m.cache.SetScarce(scarce)
			file := &scatterFile{memFile: &memFile{b: f.b}}
			rd, err := Open(file, meta, storeID, "7.sst", m.cache, m.budget)
			if err != nil {
				t.Fatal(err)
			}
			if indexed {
				x, err := rd.BuildIndex(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				rd.AttachIndex(x)
				rd.cache.DropAll(rd.slots)
			}
			asked, want := file.asked, int64(0)
			for i := range rd.index.Blocks {
				want += int64(rd.index.Blocks[i].KeyPage)
			}
			for _, w := range c.rows {
				if got, ok, err := m.has(rd, w.key, everything); !ok || err != nil || got.seq != w.seq || got.kind != w.kind {
					t.Fatalf("has %q: %v, %v, %v", w.key, got, ok, err)
				}
			}
			got, apart := file.asked-asked, file.again.asked
			if scarce {
				got, apart = apart, got
			}
			if got != want || apart != 0 {
				t.Errorf("scarce %v, indexed %v: %d bytes were read, and %d from the other file, where the keys take %d", scarce, indexed, got, apart, want)
			}
			if err := rd.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Of a table that is larger than memory, gets leave nothing in memory but what they ask for
// again; gets of neighbours read their block once all the same.
func TestGetsOfWhatIsLargerThanMemory(t *testing.T) {
	c := counters(4000, 200)
	f, meta := c.write(t, WriterOptions{Codec: block.Zstd, BlockBytes: 8 << 10})
	m := newRoom(t, 4<<20)
	m.cache.SetScarce(true)
	rd := m.open(t, f, meta)
	x, err := rd.BuildIndex(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rd.AttachIndex(x)
	before := f.reads
	for _, w := range c.rows {
		if got, ok, err := m.get(rd, w.key, everything); !ok || err != nil || got != w {
			t.Fatalf("get %q: %v %v", w.key, ok, err)
		}
	}
	if n := f.reads - before; n != rd.Blocks() {
		t.Errorf("%d reads by gets in the order of %d blocks", n, rd.Blocks())
	}
	// A part of a part: 4 MiB less the margin, half of it, an eighth.
	if st := m.cache.Stats(); st.ResidentBytes > 256<<10 || st.Evictions == 0 {
		t.Errorf("%d bytes are resident, %d pages were evicted", st.ResidentBytes, st.Evictions)
	}
	hot := c.rows[:400]
	for range 3 { // the first time they come back
		for _, w := range hot {
			if _, ok, err := m.get(rd, w.key, everything); !ok || err != nil {
				t.Fatalf("get %q: %v %v", w.key, ok, err)
			}
		}
	}
	before = f.reads
	for _, w := range hot {
		if _, ok, err := m.get(rd, w.key, everything); !ok || err != nil {
			t.Fatalf("get %q: %v %v", w.key, ok, err)
		}
	}
	if n := f.reads - before; n != 0 {
		t.Errorf("%d reads by gets of what was asked for before", n)
	}
	it := rd.NewIter(m.slot, IterOptions{})
	c.scan(t, it)
	it.Close()
}

// scatterFile is a memFile that can be opened once more.
type scatterFile struct {
	*memFile
	again memFile
	fail  bool
}

func (f *scatterFile) Scattered() (vfs.File, error) {
	if f.fail {
		return nil, errDisk
	}
	f.again.b = f.b
	return &f.again, nil
}

// While memory is scarce gets read blocks from a file of their own, if there is one; walks
// never do.
func TestScatteredReads(t *testing.T) {
	c := counters(2000, 100)
	f, meta := c.write(t, WriterOptions{BlockBytes: 8 << 10})
	for _, x := range []struct{ scarce, fail bool }{{false, false}, {true, false}, {true, true}} {
		m := newRoom(t, 1<<30)
		m.cache.SetScarce(x.scarce)
		file := &scatterFile{memFile: &memFile{b: f.b}, fail: x.fail}
		r, err := Open(file, meta, storeID, "7.sst", m.cache, m.budget)
		if err != nil {
			t.Fatal(err)
		}
		opening := file.reads
		for i := 0; i < len(c.rows); i += 100 {
			if got, ok, err := m.get(r, c.rows[i].key, everything); !ok || err != nil || got != c.rows[i] {
				t.Fatalf("get %q: %v %v", c.rows[i].key, ok, err)
			}
		}
		if apart := file.reads == opening && file.again.reads > 0; apart != (x.scarce && !x.fail) {
			t.Errorf("%+v: %d reads, %d apart", x, file.reads-opening, file.again.reads)
		}
		before := file.again.reads
		it := r.NewIter(m.slot, IterOptions{})
		c.scan(t, it)
		it.Close()
		if file.again.reads != before {
			t.Errorf("%+v: %d reads apart by a walk", x, file.again.reads-before)
		}
		if err := r.Close(); err != nil || !file.closed || file.again.closed != (x.scarce && !x.fail) {
			t.Errorf("%+v: closed %v, apart %v, %v", x, file.closed, file.again.closed, err)
		}
	}
}

func TestIteratorDoesNotAllocateWithinABlock(t *testing.T) {
	c := counters(3000, 4)
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	it := m.open(t, f, meta).NewIter(m.slot, IterOptions{})
	defer it.Close()
	it.First()
	it.Value()
	if n := testing.AllocsPerRun(500, func() {
		if !it.Next() || len(it.Key()) != 16 {
			t.Fatal("end")
		}
		if v, _ := it.Value(); len(v) != 4 {
			t.Fatal("value")
		}
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestKeysAreWalkedWithoutValues(t *testing.T) {
	c := counters(500, 1000)
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	before := f.reads
	for _, noCache := range []bool{true, false} {
		it := rd.NewIter(m.slot, IterOptions{NoCache: noCache})
		for ok := it.First(); ok; ok = it.Next() {
		}
		it.Close()
	}
	if n := f.reads - before; n != 2*rd.Blocks() {
		t.Fatalf("%d reads for two walks over %d blocks", n, rd.Blocks())
	}
}

func TestNoCacheLeavesTheCacheAlone(t *testing.T) {
	c := counters(2000, 100)
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	it := rd.NewIter(m.slot, IterOptions{NoCache: true})
	c.scan(t, it)
	it.Close()
	for i := range rd.slots {
		m.slot.Enter()
		if m.cache.Load(&rd.slots[i]) != nil {
			t.Fatalf("page %d is resident", i)
		}
		m.slot.Exit()
	}
	warm := rd.NewIter(m.slot, IterOptions{})
	c.scan(t, warm)
	warm.Close()
	before := f.reads
	it = rd.NewIter(m.slot, IterOptions{NoCache: true})
	c.scan(t, it)
	it.Close()
	if f.reads != before {
		t.Fatalf("%d reads although all pages are resident", f.reads-before)
	}
}

// Pages are evicted, filled and pinned by many at once in a cache far too small.
func TestConcurrentReadersInASmallCache(t *testing.T) {
	c := counters(4000, 200)
	f, meta := c.write(t, WriterOptions{Codec: block.S2, BlockBytes: 8 << 10})
	m := newRoom(t, 256<<10)
	rd := m.open(t, f, meta)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			own := *m
			own.slot = m.dom.Register()
			defer own.slot.Release()
			r := rand.New(rand.NewPCG(uint64(g), 5))
			for range 300 {
				w := c.rows[r.IntN(len(c.rows))]
				if got, ok, err := own.get(rd, w.key, everything); !ok || err != nil || got != w {
					t.Errorf("get %q: %v %v", w.key, ok, err)
					return
				}
			}
			it := rd.NewIter(own.slot, IterOptions{NoCache: g == 3})
			defer it.Close()
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				if v, err := it.Value(); err != nil || string(v) != c.rows[n].val || string(it.Key()) != c.rows[n].key {
					t.Errorf("row %d: %q %v", n, it.Key(), err)
					return
				}
				n++
			}
			if n != len(c.rows) {
				t.Errorf("%d rows", n)
			}
		})
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		x, err := rd.BuildIndex(context.Background())
		if err != nil {
			t.Error(err)
		}
		rd.AttachIndex(x)
	}()
	wg.Wait()
}

func TestCloseDropsPagesAndMemory(t *testing.T) {
	c := counters(2000, 100)
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	rd, err := Open(f, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		t.Fatal(err)
	}
	x, err := rd.BuildIndex(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rd.AttachIndex(x)
	it := rd.NewIter(m.slot, IterOptions{})
	c.scan(t, it)
	if m.budget.UsedBy(arena.ClassMeta) != rd.MetaBytes() || m.budget.UsedBy(arena.ClassIndex) != x.Bytes() || m.budget.UsedBy(arena.ClassPages) == 0 {
		t.Error("memory is not counted")
	}
	it.Close()
	if err := rd.Close(); err != nil || !f.closed {
		t.Errorf("close: %v", err)
	}
	m.slot.Enter()
	defer m.slot.Exit()
	for i := range rd.slots {
		if m.cache.Load(&rd.slots[i]) != nil {
			t.Fatalf("page %d is still resident", i)
		}
	}
	if m.budget.UsedBy(arena.ClassMeta) != 0 || m.budget.UsedBy(arena.ClassIndex) != 0 {
		t.Error("memory is still counted")
	}
}

func TestVerifyAndBuildIndexStopWithTheirContext(t *testing.T) {
	f, meta := counters(10, 1).write(t, WriterOptions{})
	rd := newRoom(t, 1<<30).open(t, f, meta)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := rd.Verify(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v", err)
	}
	if _, err := rd.BuildIndex(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("build index: %v", err)
	}
}

// Keys made to have equal hashes: the index is told nonsense, Get must not be.
func TestGetSurvivesCollidingCandidates(t *testing.T) {
	c := counters(200, 5)
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	b := pointindex.NewBuilder(m.budget)
	for i := range 200 {
		b.Add(42, pointindex.MakeLoc(0, uint16(i)))
	}
	x, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	rd.AttachIndex(x)
	m.slot.Enter()
	defer m.slot.Exit()
	for _, w := range c.rows {
		var got Row
		if ok, err := rd.Get(&got, []byte(w.key), 42, everything); !ok || err != nil || !bytes.Equal(got.Value, []byte(w.val)) {
			t.Fatalf("get %q: %v %v", w.key, ok, err)
		}
	}
}
