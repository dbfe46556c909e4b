package tree

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/vfs/memfs"
)

// library is a state of runs of tables in memory, which are read past a cache.
type library struct {
	*State
	slot *epoch.Slot
}

// newLibrary makes as many tables in each of some runs, with rows each, all keys beside each other. row makes the i-th row
// of all.
func newLibrary(t testing.TB, runs, tables, rows int, row func(i int) (key, value []byte)) library {
	fs, budget, dom := memfs.New(), arena.NewBudget(64<<20), epoch.New()
	fs.StopJournal()
	pages := cache.New(budget, dom)
	version, handles := &manifest.Version{}, map[*base.TableMeta]*Handle{}
	for run := range runs {
		level := &version.Levels[manifest.Bottom-run]
		for range tables {
			num := uint64(len(handles) + 1)
			name := base.FileName(base.FileTable, num)
			f, err := fs.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			w := table.NewWriter(f, table.WriterOptions{Name: name, Num: num, BlockBytes: 8 << 10})
			for i := range rows {
				key, value := row((len(*level)*rows+i)*runs + run)
				if err := w.Add(key, 0, base.KindPut, value); err != nil {
					t.Fatal(err)
				}
			}
			meta, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if f, err = fs.Open(name); err != nil {
				t.Fatal(err)
			}
			r, err := table.Open(f, meta, base.ID{}, name, pages, budget)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			handles[&meta] = &Handle{Meta: &meta, Reader: r}
			*level = append(*level, &meta)
		}
	}
	return library{NewState(nil, version, func(m *base.TableMeta) *Handle { return handles[m] }), dom.Register()}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC() // twice: pools keep what they have for one collection
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMergeHoldsABlockOfEachRun: a merge has in memory what it reads of one table of each run, and nothing of those it has
// read, or of those to come: here of tables of one row, with a long key and a large value.
func TestMergeHoldsABlockOfEachRun(t *testing.T) {
	for _, c := range []struct{ runs, tables int }{{2, 40}, {6, 1}} {
		testHeld(t, c.runs, c.tables)
	}
}

func testHeld(t *testing.T, runs, tables int) {
	const long, large = 60_000, 256 << 10
	rng := rand.NewChaCha8([32]byte{})
	lib := newLibrary(t, runs, tables, 1, func(i int) (key, value []byte) {
		key, value = make([]byte, long), make([]byte, large)
		rng.Read(key)
		rng.Read(value)
		return append(fmt.Appendf(nil, "%06d", i), key...), value
	})
	for _, again := range []bool{false, true} { // the first time tables take up what they keep
		before, first, rows := heapBytes(), int64(0), 0
		whole := lib.Whole(lib.slot, nil)
		for ok := whole.Rows.First(); ok; ok = whole.Rows.Next() {
			if rows == 0 {
				first = heapBytes() - before
			}
			if value, err := whole.Rows.Value(); err != nil || len(value) != large {
				t.Fatal(len(value), err)
			}
			rows++
		}
		last := heapBytes() - before
		if err := whole.Rows.Close(); err != nil || rows != runs*tables {
			t.Fatalf("%d rows, %v", rows, err)
		}
		if again && (first > int64(2*runs*long) || last > large) {
			t.Errorf("%d runs of %d tables: %d bytes are held at the first row, %d behind the last one", runs, tables, first, last)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	for _, c := range []struct{ runs, tables int }{{1, 1}, {2, 1}, {4, 1}, {2, 10}, {1, 20}} {
		b.Run(fmt.Sprintf("runs=%d/tables=%d", c.runs, c.tables), func(b *testing.B) {
			rows := 200_000 / c.runs / c.tables
			value := make([]byte, 100)
			lib := newLibrary(b, c.runs, c.tables, rows, func(i int) (k, v []byte) { return fmt.Appendf(nil, "key%012d", i), value })
			n := 0
			for b.Loop() {
				whole := lib.Whole(lib.slot, nil)
				for ok := whole.Rows.First(); ok; ok = whole.Rows.Next() {
					_, _ = whole.Rows.Value()
					n += len(whole.Rows.Key()) + int(whole.Rows.Seq()) + int(whole.Rows.Kind())
				}
				whole.Rows.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/row")
		})
	}
}
