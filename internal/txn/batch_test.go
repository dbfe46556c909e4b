package txn

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs/memfs"
)

// userKey is key without its bucket.
func userKey(i int) []byte { return key(i)[len(bucket):] }

// batchOf puts n keys, in an order that is none, with values that tell their versions.
func batchOf(n, version, size int, v *values) *frame.Entries {
	b := &frame.Entries{}
	for _, i := range rand.New(rand.NewPCG(1, uint64(version))).Perm(n) {
		b.Add(base.KindPut, bucket, userKey(i), v.of(i+version, size))
	}
	return b
}

func readAll(t *testing.T, e interface {
	GetTo(bucket, key, dst []byte) ([]byte, error)
}, n, version, size int, v *values) {
	t.Helper()
	for i := range n {
		if got, err := e.GetTo(bucket, userKey(i), nil); err != nil || !bytes.Equal(got, v.of(i+version, size)) {
			t.Fatalf("key %d is %.20x, %v", i, got, err)
		}
	}
}

// TestALargeBatchIsWrittenOnce: each megabyte of it became a run of its own, and four runs
// of a size were merged, again and again.
func TestALargeBatchIsWrittenOnce(t *testing.T) {
	const n, size = 24_000, 1500
	w, v := newWatchedFS(), newValues()
	made := 0
	e := openEngine(t, w, 256<<20)
	w.tables = func() error { made++; return nil }
	check(t, Apply(e, batchOf(n, 0, size, v)))
	if most := n*size/(16<<20) + 1; made > most {
		t.Errorf("%d tables were made of %d bytes, not %d", made, n*size, most)
	}
	readAll(t, e, n, 0, size, v)
}

// TestALargeBatchBeginsInMemory: its tables were opened once more for the store, and each
// block decompressed for the first get of it.
func TestALargeBatchBeginsInMemory(t *testing.T) {
	const n, size = 24_000, 1500
	v := newValues()
	e := openEngine(t, newWatchedFS(), 1<<30)
	b := batchOf(n, 0, size, v)
	check(t, applyLarge(e, b.Parts(), b.Bytes(), b.Len())) // a frame would take it
	runtime.KeepAlive(b)
	rs := e.State()
	tables := 0
	count := func(h *tree.Handle) {
		if tables++; h.Index() == nil {
			t.Errorf("table %d has no point index", h.Meta.Num)
		}
	}
	for _, l := range rs.Layers {
		for _, h := range l.Tables() {
			count(h)
		}
	}
	for _, r := range rs.Runs {
		for _, h := range r.Tables {
			count(h)
		}
	}
	if tables == 0 {
		t.Error("no table")
	}
	before := e.Stats().CacheMisses
	readAll(t, e, n, 0, size, v)
	if missed := e.Stats().CacheMisses - before; missed > 0 {
		t.Errorf("%d pages were not in memory", missed)
	}
}

// TestALargeBatchTakesTheLast: of writes to one key, in one part of a batch or in several,
// with range deletes between them.
func TestALargeBatchTakesTheLast(t *testing.T) {
	const n, size = 6_000, 1500
	v := newValues()
	for _, memory := range []int64{1 << 20, 64 << 20} {
		e := openEngine(t, newWatchedFS(), memory)
		b := &frame.Entries{}
		for version := range 3 {
			for i := range n {
				b.Add(base.KindPut, bucket, userKey(i), v.of(i+version, size))
			}
			b.Add(base.KindRangeDelete, nil, key(n/3), key(n/2))
			b.Add(base.KindDelete, bucket, userKey(version), nil)
		}
		check(t, Apply(e, b))
		for i := range n {
			got, err := e.GetTo(bucket, userKey(i), nil)
			if gone := i == 2 || i >= n/3 && i < n/2; gone != (err != nil) {
				t.Fatalf("key %d: %v", i, err)
			}
			if err == nil && !bytes.Equal(got, v.of(i+2, size)) {
				t.Fatalf("key %d is %.20x", i, got)
			}
		}
		check(t, e.Close())
	}
}

// TestALargeBatchKeepsToMemory: its entries are the caller's, and what indexes them is
// bounded.
func TestALargeBatchKeepsToMemory(t *testing.T) {
	large(t)
	const n, memory = 200_000, 1 << 20
	w := newWatchedFS()
	e := openEngine(t, w, memory)
	b := &frame.Entries{}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
		b.Add(base.KindPut, bucket, userKey(i), userKey(i))
	}
	before, most, made := heapInUse(), int64(0), 0
	w.tables = func() error { made++; most = max(most, heapInUse()-before); return nil }
	check(t, Apply(e, b))
	t.Logf("%d bytes on the heap when a table was made, the most of %d times", most, made)
	if made < 10 || most > 4*memory {
		t.Errorf("%d bytes on the heap when a table was made, the most of %d times", most, made)
	}
	for i := range n {
		if got, err := e.GetTo(bucket, userKey(i), nil); err != nil || !bytes.Equal(got, userKey(i)) {
			t.Fatalf("key %d is %x, %v", i, got, err)
		}
	}
}

// TestCloseMergesWhatHides: one run of puts stays as it is, and takes no time; what hides
// older versions is merged.
func TestCloseMergesWhatHides(t *testing.T) {
	large(t)
	const size = 10_000
	v := newValues()
	for _, c := range []struct {
		mega, times int
		merges      bool
	}{{30, 1, false}, {30, 2, true}, {80, 1, false}, {80, 2, true}} {
		w := newWatchedFS()
		made := 0
		e := openEngine(t, w, 256<<20) // a frame takes less
		for range c.times {
			check(t, Apply(e, batchOf(c.mega<<20/size, 0, size, v)))
		}
		w.tables = func() error { made++; return nil }
		check(t, e.Close())
		if c.merges != (made > 0) {
			t.Errorf("%d MB %d times: Close made %d tables", c.mega, c.times, made)
		}
		bytes := int64(0)
		names, err := w.List("/db")
		check(t, err)
		for _, name := range names {
			info, err := w.Stat(filepath.Join("/db", name))
			check(t, err)
			bytes += info.Size
		}
		if bytes > int64(c.mega)<<20*12/10 {
			t.Errorf("%d MB %d times: %d bytes after Close", c.mega, c.times, bytes)
		}
	}
}

// TestBatchChangedBeforeItsTurn: a batch that was reset while it waited to be written as tables is not written, and that is said.
func TestBatchChangedBeforeItsTurn(t *testing.T) {
	e := openEngine(t, memfs.New(), 16<<20)
	entries := &frame.Entries{}
	entries.Add(base.KindPut, []byte{0}, []byte("key"), make([]byte, 1000))
	parts, n := entries.Parts(), entries.Bytes()
	entries.Reset()
	for _, most := range []int{n, n - 1} {
		if err := apply(e, &engine.Write{}, parts, n, 1, most); !errors.Is(err, base.ErrBatchChanged) {
			t.Errorf("of %d bytes where a frame has %d: %v", n, most, err)
		}
	}
}

// TestBatchThatIsNotWhatItWas: entries that are others, or none, by the time that tables are made of them are not committed.
func TestBatchThatIsNotWhatItWas(t *testing.T) {
	e := openEngine(t, memfs.New(), 16<<20)
	entry := frame.AppendPrefixed(nil, base.KindPut, []byte{0}, []byte("key"), make([]byte, 1000))
	two := append(bytes.Clone(entry), entry...)
	for _, c := range []struct {
		entries  []byte
		n, count int
	}{{two, len(entry), 1}, {entry, len(two), 2}, {entry, len(entry), 2}, {two[3:], len(two) - 3, 2}} {
		if err := applyLarge(e, [][]byte{c.entries}, c.n, c.count); !errors.Is(err, base.ErrBatchChanged) {
			t.Errorf("%d bytes in place of %d: %v", len(c.entries), c.n, err)
		}
	}
	if !manyRangeDeletes([][]byte{two[3:]}, 1<<20, 1<<10) {
		t.Error("what is no entry is passed on")
	}
	if n := e.Visible(); n != 0 {
		t.Errorf("visible: %d", n)
	}
}
