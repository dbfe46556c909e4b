package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/indexer"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/vfs"
)

var testBucket = base.AppendBucketPrefix(nil, 0)

func indexTestConfig(dir string, memory int64) config.Config {
	return config.Config{Dir: dir, FS: vfs.OS(), Relaxed: true, SyncInterval: time.Second, Memory: memory}
}

func mustOpen(t *testing.T, cfg config.Config) *Engine {
	t.Helper()
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func indexTestKey(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

// commitOne commits one entry of testBucket.
func commitOne(e *Engine, kind base.Kind, key, value []byte) error {
	return commitAs(e, kind, key, value, !e.cfg.Relaxed)
}

// commitAs is commitOne, durable or not.
func commitAs(e *Engine, kind base.Kind, key, value []byte, durable bool) error {
	payload := frame.AppendEntry(nil, kind, append(bytes.Clone(testBucket), key...), value)
	_, err := e.Commit(&Write{Entries: [][]byte{payload}, Bytes: len(payload), Count: 1, Durable: durable})
	return err
}

// fillIndexTest puts n keys twice and deletes every fifth.
func fillIndexTest(t *testing.T, e *Engine, n int) {
	t.Helper()
	for _, version := range []string{"old", "new"} {
		for i := range n {
			if err := commitOne(e, base.KindPut, indexTestKey(i), fmt.Appendf(nil, "%s%d", version, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 0; i < n; i += 5 {
		if err := commitOne(e, base.KindDelete, indexTestKey(i), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func checkIndexTest(t *testing.T, e *Engine, n int) {
	t.Helper()
	for i := range n + 100 {
		v, err := e.GetTo(testBucket, indexTestKey(i), nil)
		if i >= n || i%5 == 0 {
			if !errors.Is(err, base.ErrNotFound) {
				t.Fatalf("get %d: %q, %v", i, v, err)
			}
		} else if err != nil || !bytes.Equal(v, fmt.Appendf(nil, "new%d", i)) {
			t.Fatalf("get %d: %q, %v", i, v, err)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func indexedTables(e *Engine) (indexed, all int) {
	for _, h := range e.State().Handles {
		if h.Index() != nil {
			indexed++
		}
		all++
	}
	return indexed, all
}

// TestTablesFromDiskGetPointIndexes: after Open, for a writer and for a reader,
// every table gets an index in the background, gets with it are right, and Close
// gives its memory back.
func TestTablesFromDiskGetPointIndexes(t *testing.T) {
	const n = 20_000
	dir, before := t.TempDir(), arena.Mapped()
	e := mustOpen(t, indexTestConfig(dir, 16<<20))
	fillIndexTest(t, e, n)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{false, true} {
		cfg := indexTestConfig(dir, 16<<20)
		cfg.ReadOnly = readOnly
		e := mustOpen(t, cfg)
		checkIndexTest(t, e, n) // with or without
		eventually(t, "all tables have an index", func() bool {
			indexed, all := indexedTables(e)
			return all > 0 && indexed == all
		})
		checkIndexTest(t, e, n)
		if e.budget.UsedBy(arena.ClassIndex) == 0 {
			t.Error("the budget knows of no index")
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if now := arena.Mapped(); now != before {
		t.Errorf("%d bytes mapped, %d before", now, before)
	}
}

// TestWrittenTablesGetPointIndexesAtOnce, and none if it would not fit. There is
// no background here that could do it later.
func TestWrittenTablesGetPointIndexesAtOnce(t *testing.T) {
	const n = 1000
	e := mustOpen(t, indexTestConfig(t.TempDir(), 4<<20))
	e.commit.mu.Lock()
	e.commit.closing = true
	e.commit.wakeAll()
	e.commit.mu.Unlock()
	e.stop()
	e.background.Wait()
	rows := make([]iterator.Entry, n)
	for i := range rows {
		rows[i] = iterator.Entry{Key: append(bytes.Clone(testBucket), indexTestKey(i)...), Seq: 1, Kind: base.KindPut}
	}
	for _, c := range []struct {
		rows    uint64
		indexed int
	}{{n, n}, {0, 0}, {1 << 20, 0}, {1 << 63, 0}} {
		tables, err := e.tables.Write(&compact.Merge{Rows: iterator.NewSliceIter(rows), TargetBytes: 1 << 40}, 0, c.rows, tablefiles.Awaited)
		if err != nil || len(tables) != 1 {
			t.Fatal(len(tables), err)
		}
		got := 0
		if x := tables[0].Index(); x != nil {
			got = x.Len()
		}
		if got != c.indexed {
			t.Errorf("index of a table announced with %d rows has %d entries, want %d", c.rows, got, c.indexed)
		}
		e.tables.Discard(tables)
	}
	if used := e.budget.UsedBy(arena.ClassIndex) + e.tables.Promised(); used != 0 {
		t.Errorf("%d bytes of indexes left", used)
	}
}

// TestPointIndexesKeepToTheirShare of a memory too small for all.
func TestPointIndexesKeepToTheirShare(t *testing.T) {
	const n, memory = 40_000, 1 << 20
	e := mustOpen(t, indexTestConfig(t.TempDir(), memory))
	most := int64(0)
	for i := range n {
		if err := commitOne(e, base.KindPut, indexTestKey(i), nil); err != nil {
			t.Fatal(err)
		}
		most = max(most, e.budget.UsedBy(arena.ClassIndex))
	}
	eventually(t, "no debt", func() bool { return e.Stats().CompactionDebt == 0 })
	if most = max(most, e.budget.UsedBy(arena.ClassIndex)); most > memory/indexer.Share {
		t.Errorf("indexes took %d bytes, their share is %d", most, memory/indexer.Share)
	}
	for i := 0; i < n; i += 97 {
		if ok, err := e.Has(testBucket, indexTestKey(i)); !ok || err != nil {
			t.Fatal(i, ok, err)
		}
	}
}

// TestDamagedTableStaysWithoutIndex: the indexer reports damage once and goes on, and so does
// who would compress it better.
func TestDamagedTableStaysWithoutIndex(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, indexTestConfig(dir, 16<<20))
	fillIndexTest(t, e, 5000)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[base.FileHeaderBytes+20] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var reports atomic.Int64
	cfg := indexTestConfig(dir, 16<<20)
	cfg.OnEvent = func(ev report.Event) {
		if errors.Is(ev.Err, base.ErrCorrupt) {
			reports.Add(1)
		}
	}
	e = mustOpen(t, cfg)
	eventually(t, "every table is reported twice", func() bool { return reports.Load() == 2*int64(len(names)) })
	e.indexer.Wake()
	time.Sleep(3 * retryDelay)
	if n := reports.Load(); n != 2*int64(len(names)) {
		t.Errorf("%d reports of %d tables", n, len(names))
	}
	if indexed, _ := indexedTables(e); indexed != 0 {
		t.Errorf("%d damaged tables have an index", indexed)
	}
}
