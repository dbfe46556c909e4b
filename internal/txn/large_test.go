package txn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// watchedFS counts open files, and lets new tables through at a gate.
type watchedFS struct {
	vfs.FS
	open, most atomic.Int64
	tables     func() error // called before a table is made
}

type watchedFile struct {
	vfs.File
	fs   *watchedFS
	once sync.Once
}

func newWatchedFS() *watchedFS {
	m := memfs.New()
	m.StopJournal()
	return &watchedFS{FS: m, tables: func() error { return nil }}
}

func (w *watchedFS) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	for n := w.open.Add(1); ; {
		if most := w.most.Load(); n <= most || w.most.CompareAndSwap(most, n) {
			return &watchedFile{File: f, fs: w}, nil
		}
	}
}

func (w *watchedFS) Create(name string) (vfs.File, error) {
	if isTable(name) {
		if err := w.tables(); err != nil {
			return nil, err
		}
	}
	return w.watch(w.FS.Create(name))
}

func (w *watchedFS) Open(name string) (vfs.File, error) { return w.watch(w.FS.Open(name)) }
func (w *watchedFS) OpenReadWrite(name string) (vfs.File, error) {
	return w.watch(w.FS.OpenReadWrite(name))
}

func (f *watchedFile) Close() error {
	f.once.Do(func() { f.fs.open.Add(-1) })
	return f.File.Close()
}

func isTable(name string) bool {
	return strings.HasSuffix(filepath.Base(name), filepath.Ext(base.FileName(base.FileTable, 1)))
}

// countTables counts the tables that something has been written to.
func countTables(t *testing.T, w *watchedFS) (n int) {
	t.Helper()
	names, err := w.List("/db")
	check(t, err)
	for _, name := range names {
		info, err := w.Stat(filepath.Join("/db", name))
		check(t, err)
		if isTable(name) && info.Size > 0 {
			n++
		}
	}
	return n
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openEngine(t testing.TB, fs vfs.FS, memory int64) *engine.Engine {
	t.Helper()
	e, err := engine.Open(config.Config{Dir: "/db", FS: fs, Relaxed: true, SyncInterval: time.Second, Memory: memory})
	check(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

var bucket = base.AppendBucketPrefix(nil, 0)

func key(i int) []byte { return binary.BigEndian.AppendUint64(bytes.Clone(bucket), uint64(i)) }

// values makes values that do not compress, each telling which it is.
type values struct{ noise []byte }

func newValues() *values {
	v := &values{make([]byte, 1<<16)}
	rand.NewChaCha8([32]byte{1}).Read(v.noise)
	return v
}

func (v *values) of(i, size int) []byte {
	at := i * 7919 % (len(v.noise) - size)
	return v.noise[at : at+size]
}

// orders of n writes: the key of the i-th.
var orders = []struct {
	name string
	key  func(i, n int) int
}{
	{"ascending", func(i, n int) int { return i }},
	{"descending", func(i, n int) int { return n - i }},
	{"two regions", func(i, n int) int { return i%2*n + i }},
	{"two regions apart", func(i, n int) int { return i/100%2*n + i }}, // more than one spill from each
	{"outwards", func(i, n int) int { return n + (i/100%2*2-1)*i }},
	{"jumps", func(i, n int) int {
		if i%1000 == 0 {
			return 2*n - i
		}
		return i
	}},
}

// TestTablesOfATransactionAreFew: runs of writes in the order of keys were joined as
// they were, one table for each spill, and each table is an open file.
func TestTablesOfATransactionAreFew(t *testing.T) {
	large(t)
	const value, memory = 1000, 1 << 20
	n := 40_000
	if testing.Short() {
		n = 10_000
	}
	v := newValues()
	for _, order := range orders {
		t.Run(order.name, func(t *testing.T) {
			w := newWatchedFS()
			e := openEngine(t, w, memory)
			for _, commit := range []bool{false, true} {
				tx, err := Begin(e, true)
				check(t, err)
				most := 0
				for i := range n {
					check(t, tx.Put(key(order.key(i, n)), v.of(i, value)))
					tables := 0
					for _, s := range tx.spills {
						tables += len(s.Tables)
					}
					most = max(most, tables)
				}
				if most > 40 {
					t.Errorf("%d tables", most)
				}
				if !commit {
					tx.Rollback()
					if left := countTables(t, w); left > 0 {
						t.Errorf("%d tables are left", left)
					}
					continue
				}
				_, err = tx.Commit()
				check(t, err)
				t.Logf("at most %d tables, %d open files", most, w.most.Load())
			}
			if most := w.most.Load(); most > 100 {
				t.Errorf("%d files were open", most)
			}
			for i := range n {
				if got, err := e.GetTo(bucket, key(order.key(i, n))[len(bucket):], nil); err != nil || !bytes.Equal(got, v.of(i, value)) {
					t.Fatalf("write %d is %.20x, %v", i, got, err)
				}
			}
		})
	}
}

// TestTablesOfATransactionAreCounted: what a large transaction wrote was in no number: neither on the disk, before it was
// committed, nor written, ever.
func TestTablesOfATransactionAreCounted(t *testing.T) {
	const n, value = 10_000, 1000
	v := newValues()
	for _, commit := range []bool{false, true} {
		w := newWatchedFS()
		e := openEngine(t, w, 1<<20)
		tx, err := Begin(e, true)
		check(t, err)
		defer tx.Rollback()
		for i := range n {
			check(t, tx.Put(key(i*7919%n), v.of(i, value)))
		}
		onDisk := func() (size int64) {
			names, err := w.List("/db")
			check(t, err)
			for _, name := range names {
				if info, err := w.Stat(filepath.Join("/db", name)); err == nil && isTable(name) {
					size += info.Size
				}
			}
			return size
		}
		same := func(when string) {
			t.Helper()
			for tries := 0; ; tries++ { // a table that was merged may be about to go
				s := e.Stats()
				if counted, size := s.DiskBytes-s.LogBytes, onDisk(); counted == size {
					return
				} else if tries == 1000 {
					t.Fatalf("%s: %d bytes of tables, %d are counted", when, size, counted)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		same("before it ends")
		s := e.Stats()
		if s.FlushedBytes < n/2*value || s.CompactedBytes < n/2*value || s.Tables != 0 {
			t.Errorf("flushed %d, compacted %d, %d tables", s.FlushedBytes, s.CompactedBytes, s.Tables)
		}
		if !commit {
			tx.Rollback()
		} else if _, err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		same("after it")
		check(t, e.Compact(t.Context(), nil, nil))
		same("after Compact")
		after, written := e.Stats(), s.FlushedBytes
		if commit {
			written = after.CommittedBytes
		}
		if after.FlushedBytes < written*9/10 || after.FlushedBytes > written*5/4 || after.Flushes > 1 { // that of the memtable behind it
			t.Errorf("%d bytes flushed of %d, in %d flushes", after.FlushedBytes, written, after.Flushes)
		}
	}
}

// TestManyTransactionsShareMemory: each stayed just below its own limit, and together
// they held many times Memory, uncounted.
func TestManyTransactionsShareMemory(t *testing.T) {
	large(t)
	const many, memory = 200, 64 << 20
	bytes := 3_000_000
	if testing.Short() {
		bytes = 1_000_000
	}
	for _, value := range []int{1000, 50_000, bytes} {
		e := openEngine(t, newWatchedFS(), memory)
		before := e.Stats().MemoryUsed
		var txs []*Tx
		held := 0
		for id := range many {
			tx, err := Begin(e, true)
			check(t, err)
			defer tx.Rollback()
			txs = append(txs, tx)
			for i := range bytes / value {
				check(t, tx.Put(key(id*10_000+i), make([]byte, value)))
			}
			held += cap(tx.buf) + recordBytes*tx.writes.Len()
			if used := e.Stats().MemoryUsed; id == 0 && value < bytes && used < before+int64(bytes) {
				t.Errorf("values of %d: %d bytes used with one transaction, %d before", value, used, before)
			}
		}
		used := e.Stats().MemoryUsed
		t.Logf("values of %d: %d bytes held, %d used", value, held, used)
		if held > memory/2 {
			t.Errorf("values of %d: transactions hold %d bytes", value, held)
		}
		if used < int64(held) || used > memory*5/4 {
			t.Errorf("values of %d: %d bytes used, transactions hold %d", value, used, held)
		}
		for id, tx := range txs {
			if got, err := tx.Get(key(id * 10_000)); err != nil || len(got) != value {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if id%2 == 0 {
				tx.Rollback()
			} else if _, err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}
		check(t, e.Close())
	}
}

// TestOneTransactionIsNotShort: a transaction alone gathers as much as it may.
func TestOneTransactionIsNotShort(t *testing.T) {
	large(t)
	for _, memory := range []int64{1 << 20, 4 << 20, 64 << 20} {
		for _, value := range []int{1, 100, 10_000} {
			w := newWatchedFS()
			e := openEngine(t, w, memory)
			tx, err := Begin(e, true)
			check(t, err)
			limit := e.Config().GatherBytes()
			total, made := 0, 0
			w.tables = func() error { made++; return nil }
			for i := 0; total < 6*limit; i++ {
				check(t, tx.Put(key(i), make([]byte, value)))
				total += value + 9 + recordBytes
				if made == 0 && total > limit*9/8+value {
					t.Fatalf("no spill after %d bytes", total)
				}
			}
			if made > 9 { // six, and merged ones
				t.Errorf("Memory %d, values of %d: %d tables made of %d bytes", memory, value, made, total)
			}
			tx.Rollback()
			check(t, e.Close())
		}
	}
}

// gate holds up who comes to it until it is opened.
type gate struct {
	entered atomic.Int64
	opened  chan struct{}
}

func (g *gate) pass() error {
	g.entered.Add(1)
	<-g.opened
	return nil
}

// TestLargeWritesTakeTurns: each held a copy of its value while all wrote at once.
// Closing meanwhile waits for the one whose turn it is, and the others learn of it.
func TestLargeWritesTakeTurns(t *testing.T) {
	const many = 8
	w := newWatchedFS()
	e := openEngine(t, w, 64<<20)
	g := &gate{opened: make(chan struct{})}
	w.tables = g.pass
	value := make([]byte, 10<<20)
	before := heapInUse()
	errs := make(chan error, many+1)
	for i := range many {
		go func() { errs <- Put(e, bucket, key(i)[len(bucket):], value) }()
	}
	eventually(t, func() bool { return g.entered.Load() > 0 })
	time.Sleep(200 * time.Millisecond)
	if n := g.entered.Load(); n != 1 {
		t.Errorf("%d write at once", n)
	}
	if held := heapInUse() - before; held > 3*int64(len(value)) {
		t.Errorf("%d writes hold %d bytes", many, held)
	}
	go func() { errs <- e.Close() }()
	time.Sleep(50 * time.Millisecond)
	close(g.opened)
	done := 0
	for range many + 1 {
		select {
		case err := <-errs:
			if err == nil {
				done++
			} else if !errors.Is(err, base.ErrClosed) {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("somebody waits for ever")
		}
	}
	if done == 0 {
		t.Error("Close has failed")
	}
}

// TestLargeWriteThatFailsGivesItsTurnUp, whatever fails.
func TestLargeWriteThatFailsGivesItsTurnUp(t *testing.T) {
	w := newWatchedFS()
	e := openEngine(t, w, 1<<20)
	value := make([]byte, 1<<20)
	w.tables = func() error { return fs.ErrPermission }
	for range 2 {
		if err := Put(e, bucket, []byte("a"), value); !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
	}
	w.tables = func() error { return nil }
	check(t, Put(e, bucket, []byte("a"), value))
	check(t, Put(e, bucket, []byte("b"), value))
	check(t, e.Close())
	for range 2 {
		if err := Put(e, bucket, []byte("a"), value); !errors.Is(err, base.ErrClosed) {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not come about")
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// large skips a test that is about sizes where -short asks for less: -race makes it
// ten times as long and finds nothing more in it.
func large(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("large; make test runs it")
	}
}

// TestAWriteThatFailsIsTheLast: a transaction that could not write a private run took small writes, and committed what it had, if that
// could be written later.
func TestAWriteThatFailsIsTheLast(t *testing.T) {
	w := newWatchedFS()
	e := openEngine(t, w, 1<<20)
	tx, err := Begin(e, true)
	check(t, err)
	w.tables = func() error { return base.ErrNoSpace }
	for i := 0; err == nil && i < 1000; i++ {
		err = tx.Put(key(i), make([]byte, 1000))
	}
	if !errors.Is(err, base.ErrNoSpace) {
		t.Fatal(err)
	}
	w.tables = func() error { return nil } // there is space again
	failsFromThenOn(t, tx, err)
	if _, again := tx.Commit(); again != err {
		t.Errorf("commit: %v", again)
	}
	tx.Recycle()
	tx, err = Begin(e, true) // as a rule in the memory of the other
	check(t, err)
	check(t, tx.Put(key(1), []byte("v")))
	_, err = tx.Commit()
	check(t, err)
	tx.Recycle()
}

// failsFromThenOn wants the error that a write of tx got of all writes to come.
func failsFromThenOn(t *testing.T, tx *Tx, err error) {
	t.Helper()
	for what, again := range map[string]error{"put": tx.Put(key(1), nil), "delete": tx.Delete(key(1)),
		"range delete": tx.DeleteRange(nil, []byte{255}), "put of a long key": tx.Put(append(key(2), make([]byte, 60_000)...), nil)} {
		if again != err {
			t.Errorf("%s after %q: %v", what, err, again)
		}
	}
}

// TestTransactionWithTooLongKeys: that the tables of a transaction could not be described in one commit was told by Commit, after
// all the work, as a value that is too large.
func TestTransactionWithTooLongKeys(t *testing.T) {
	old := mostDescribed
	mostDescribed = 256 << 10
	t.Cleanup(func() { mostDescribed = old })
	e := openEngine(t, newWatchedFS(), 1<<20)
	tx, err := Begin(e, true)
	check(t, err)
	defer tx.Rollback()
	long := bytes.Repeat([]byte("k"), 60_000)
	put := func(i int) error { return tx.Put(append(key(i), long...), nil) }
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = put(n * 7919 % 1000)
	}
	if !errors.Is(err, base.ErrLimit) || errors.Is(err, base.ErrValueTooLarge) {
		t.Fatalf("after %d keys of 60 KB: %v", n, err)
	}
	failsFromThenOn(t, tx, err)
	if _, err := tx.Commit(); !errors.Is(err, base.ErrLimit) {
		t.Fatalf("commit: %v", err)
	}
	tx, err = Begin(e, true)
	check(t, err)
	for i := range n / 2 {
		check(t, put(i))
	}
	_, err = tx.Commit()
	check(t, err)
}
