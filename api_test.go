package cairn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/invariants"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// everywhere runs test on a store that holds what fill put there: in the log, in
// tables, and after opening it again.
func everywhere(t *testing.T, fill, test func(t *testing.T, db *cairn.DB)) {
	for _, place := range []string{"log", "tables", "reopened"} {
		t.Run(place, func(t *testing.T) {
			opts := inMemory(&cairn.Options{Durability: cairn.Relaxed})
			db := openAt(t, "/db", opts)
			fill(t, db)
			switch place {
			case "tables":
				check(t, db.Compact(t.Context(), cairn.Range{}))
			case "reopened":
				check(t, db.Close())
				db = openAt(t, "/db", opts)
			}
			test(t, db)
		})
	}
}

func TestOneShot(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		put(t, db, "a", "1")
		put(t, db, "gone", "1")
		put(t, db, "twice", "first")
		put(t, db, "twice", "second")
		check(t, db.Put(b("empty"), nil))
		check(t, db.Delete(b("gone")))
		check(t, db.Delete(b("never there")))
	}, func(t *testing.T, db *cairn.DB) {
		wantValue(t, db, "a", "1")
		wantValue(t, db, "twice", "second")
		wantValue(t, db, "gone", "")
		wantValue(t, db, "never there", "")
		for key, want := range map[string]bool{"a": true, "empty": true, "gone": false, "b": false} {
			if ok, err := db.Has(b(key)); ok != want || err != nil {
				t.Errorf("has %q: %v, %v", key, ok, err)
			}
		}
		if v, err := db.Get(b("empty")); v == nil || len(v) != 0 || err != nil {
			t.Errorf("an empty value is %#v, %v", v, err)
		}
		check(t, db.View(func(tx *cairn.Tx) error {
			v, err := tx.Get(b("empty"))
			if v == nil || len(v) != 0 {
				t.Errorf("an empty value is %#v in a transaction", v)
			}
			for k, v := range tx.Scan(cairn.Range{}) {
				if v == nil {
					t.Errorf("scan: the value of %q is nil", k)
				}
			}
			return err
		}))
	})
}

// TestGetReturnsACopy: what Get returned is the caller's to change.
func TestGetReturnsACopy(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) { put(t, db, "a", "value") }, func(t *testing.T, db *cairn.DB) {
		v, err := db.Get(b("a"))
		check(t, err)
		for i := range v {
			v[i] = 'x'
		}
		wantValue(t, db, "a", "value")
	})
}

// TestArgumentsAreCopied: keys and values may be overwritten after the call.
func TestArgumentsAreCopied(t *testing.T) {
	db := openNew(t, nil)
	key, value := b("key"), b("value")
	spoil := func() { copy(key, "xxx"); copy(value, "xxxxx") }
	restore := func() { copy(key, "key"); copy(value, "value") }
	check(t, db.Put(key, value))
	spoil()
	wantValue(t, db, "key", "value")
	restore()
	batch := cairn.NewBatch()
	batch.Put(key, value)
	spoil()
	check(t, db.Write(batch))
	wantValue(t, db, "key", "value")
	check(t, db.Update(func(tx *cairn.Tx) error {
		restore()
		check(t, tx.Put(key, value))
		spoil()
		v, err := tx.Get(b("key"))
		if string(v) != "value" {
			t.Errorf("own write reads %q", v)
		}
		return err
	}))
	wantValue(t, db, "key", "value")
}

func TestGetTo(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		put(t, db, "a", "value")
		check(t, db.Put(b("empty"), nil))
	}, func(t *testing.T, db *cairn.DB) {
		buf := make([]byte, 3, 64)
		v, err := db.GetTo(b("a"), buf)
		if err != nil || string(v) != "value" || &v[0] != &buf[0] {
			t.Fatalf("%q, %v", v, err)
		}
		v, err = db.GetTo(b("a"), make([]byte, 0, 2))
		if err != nil || string(v) != "value" {
			t.Fatalf("too small a buffer: %q, %v", v, err)
		}
		if v, err = db.GetTo(b("empty"), nil); err != nil || v == nil || len(v) != 0 {
			t.Fatalf("empty value: %#v, %v", v, err)
		}
		if v, err = db.GetTo(b("b"), buf); !errors.Is(err, cairn.ErrNotFound) || len(v) != 0 || cap(v) != cap(buf) {
			t.Fatalf("absent: %q, %v; the buffer must come back", v, err)
		}
		if v, err = db.GetTo(nil, buf); !errors.Is(err, cairn.ErrEmptyKey) || cap(v) != cap(buf) {
			t.Fatalf("empty key: %q, %v", v, err)
		}
	})
}

// TestReadsDoNotAllocate is a promise of GetTo, Has, and of Get in a transaction.
func TestReadsDoNotAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("assertions and the race detector allocate")
	}
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		for i := range 1000 {
			check(t, db.Put(fmt.Appendf(nil, "key%04d", i), bytes.Repeat(b("v"), 100)))
		}
	}, func(t *testing.T, db *cairn.DB) {
		key, absent, buf := b("key0500"), b("key0500x"), make([]byte, 0, 200)
		tx, err := db.Begin(false)
		check(t, err)
		defer tx.Rollback()
		for name, read := range map[string]func() error{
			"GetTo":  func() error { _, err := db.GetTo(key, buf); return err },
			"Has":    func() error { _, err := db.Has(key); return err },
			"Tx.Get": func() error { _, err := tx.Get(key); return err },
			"Tx.Has": func() error { _, err := tx.Has(key); return err },
			"GetTo of an absent key": func() error {
				if _, err := db.GetTo(absent, buf); !errors.Is(err, cairn.ErrNotFound) {
					return errors.New("it is there")
				}
				return nil
			},
		} {
			check(t, read()) // pins its page, fills pools
			if n := testing.AllocsPerRun(200, func() {
				if err := read(); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

// TestScansUseMemoryAgain: a transaction that puts, reads the first key and deletes it makes the order of its writes, and
// of those before, but takes iterators and what they need from those that were closed.
func TestScansUseMemoryAgain(t *testing.T) {
	if invariants.Enabled {
		t.Skip("assertions and the race detector allocate")
	}
	db := openAt(t, t.TempDir(), &cairn.Options{Durability: cairn.Relaxed})
	key := make([]byte, 8)
	put := func(tx *cairn.Tx, n uint64) error {
		binary.BigEndian.PutUint64(key, n)
		return tx.Put(key, key)
	}
	n := uint64(0)
	check(t, db.Update(func(tx *cairn.Tx) error {
		for ; n < 1000; n++ {
			check(t, put(tx, n))
		}
		return nil
	}))
	got := testing.AllocsPerRun(5000, func() {
		check(t, db.Update(func(tx *cairn.Tx) error {
			n++
			check(t, put(tx, n))
			it := tx.Iter(cairn.Range{})
			defer it.Close()
			if !it.First() {
				t.Fatal(it.Err())
			}
			return tx.Delete(it.Key())
		}))
	})
	if got > 8 {
		t.Errorf("%v allocations", got)
	}
}

// TestPutsHardlyAllocate: what a store that is written to allocates in the background, for
// tables and log segments, is little for each put.
func TestPutsHardlyAllocate(t *testing.T) {
	if invariants.Enabled {
		t.Skip("assertions and the race detector allocate")
	}
	db := openAt(t, t.TempDir(), &cairn.Options{Durability: cairn.Relaxed}) // files in memory allocate
	const puts = 100_000
	key, value := make([]byte, 0, 32), make([]byte, 512)
	all := func() {
		for i := range puts {
			key = strconv.AppendInt(append(key[:0], "key"...), int64(i), 10)
			check(t, db.Put(key, value))
		}
	}
	all() // segments grow
	all()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all()
	all()
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / (2 * puts); n > 0.01 {
		t.Errorf("%.4f allocations for each put", n)
	} else {
		t.Logf("%.4f", n)
	}
}

func TestCloseTwice(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "1")
	check(t, db.Close())
	check(t, db.Close())
}

// calls are all calls on a store that can fail.
var calls = map[string]func(db *cairn.DB) error{
	"Get": func(db *cairn.DB) error { _, err := db.Get(b("a")); return err },
	"GetTo": func(db *cairn.DB) error {
		v, err := db.GetTo(b("a"), make([]byte, 9))
		if cap(v) < 9 {
			return fmt.Errorf("the buffer does not come back with %v", err)
		}
		return err
	},
	"Has":    func(db *cairn.DB) error { _, err := db.Has(b("a")); return err },
	"Put":    func(db *cairn.DB) error { return db.Put(b("a"), b("2")) },
	"Delete": func(db *cairn.DB) error { return db.Delete(b("b")) },
	"Write": func(db *cairn.DB) error {
		batch := cairn.NewBatch()
		batch.Put(b("a"), b("2"))
		return db.Write(batch)
	},
	"View": func(db *cairn.DB) error {
		return db.View(func(tx *cairn.Tx) error { _, err := tx.Get(b("a")); return err })
	},
	"Update": func(db *cairn.DB) error {
		return db.Update(func(tx *cairn.Tx) error { _, err := tx.Get(b("a")); tx.Put(b("a"), b("2")); return err })
	},
	"Begin": func(db *cairn.DB) error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for range tx.Scan(cairn.Range{}) {
		}
		return tx.Err()
	},
	"Begin to read": func(db *cairn.DB) error {
		tx, err := db.Begin(false)
		if err != nil {
			return err
		}
		return tx.Commit()
	},
	"Sync":         func(db *cairn.DB) error { return db.Sync() },
	"Compact":      func(db *cairn.DB) error { return db.Compact(context.Background(), cairn.Range{}) },
	"Verify":       func(db *cairn.DB) error { _, err := db.Verify(context.Background()); return err },
	"Write of nil": func(db *cairn.DB) error { return db.Write(nil) },
	"empty Write": func(db *cairn.DB) error {
		return db.Write(cairn.NewBatch())
	},
}

func TestClosedStore(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		opts := inMemory(nil)
		db := openAt(t, "/db", opts)
		put(t, db, "a", "1")
		if readOnly {
			check(t, db.Close())
			opts.ReadOnly = true
			db = openAt(t, "/db", opts)
		}
		check(t, db.Close())
		for name, call := range calls {
			if err := call(db); !errors.Is(err, cairn.ErrClosed) {
				t.Errorf("%s on a closed store (read-only %v): %v", name, readOnly, err)
			}
		}
		if s := db.Stats(); s.Tables != 0 || s.MemoryUsed != 0 {
			t.Errorf("statistics of a closed store: %+v", s)
		}
	}
}

// TestCloseBesideCalls closes a store while everything is called. Each call works
// or says that the store is closed.
func TestCloseBesideCalls(t *testing.T) {
	for round := range 30 {
		m := memfs.New()
		m.StopJournal()
		db, err := cairn.Open("/db", &cairn.Options{FS: m, Durability: cairn.Relaxed, Memory: 1 << 20})
		check(t, err)
		put(t, db, "a", "1")
		var wg sync.WaitGroup
		for name, call := range calls {
			wg.Go(func() {
				for {
					switch err := call(db); {
					case errors.Is(err, cairn.ErrClosed):
						return
					case err != nil && !errors.Is(err, cairn.ErrConflict):
						t.Errorf("%s beside Close: %v", name, err)
						return
					}
					db.Stats()
				}
			})
		}
		time.Sleep(time.Duration(round%4) * 500 * time.Microsecond)
		check(t, db.Close())
		wg.Wait()
	}
}

func TestCloseWaitsForTransactions(t *testing.T) {
	for _, writable := range []bool{false, true} {
		db := openNew(t, nil)
		put(t, db, "a", "1")
		tx, err := db.Begin(writable)
		check(t, err)
		closed := make(chan error, 1)
		go func() { closed <- db.Close() }()
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := db.Begin(false); !errors.Is(err, cairn.ErrClosed) {
			t.Errorf("Begin while closing: %v", err)
		}
		v, err := tx.Get(b("a"))
		if err != nil || string(v) != "1" {
			t.Errorf("%q, %v", v, err)
		}
		if writable {
			check(t, tx.Put(b("b"), b("2")))
			check(t, tx.Commit())
		}
		check(t, tx.Rollback())
		check(t, <-closed)
	}
}

// TestConcurrentClose: each Close returns only once the store is closed.
func TestConcurrentClose(t *testing.T) {
	for range 20 {
		opts := inMemory(nil)
		db, err := cairn.Open("/db", opts)
		check(t, err)
		put(t, db, "a", "1")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
				again, err := cairn.Open("/db", &cairn.Options{FS: opts.FS, ReadOnly: true})
				if err != nil {
					t.Errorf("after Close: %v", err)
					return
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestSyncMakesRelaxedDurable(t *testing.T) {
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m, Durability: cairn.Relaxed, SyncInterval: time.Hour})
	for i := range 100 {
		check(t, db.Put(fmt.Appendf(nil, "%03d", i), b("v")))
	}
	if n := afterPowerCut(t, m); n != 0 {
		t.Errorf("%d relaxed puts survived without a sync; the test shows nothing", n)
	}
	check(t, db.Sync())
	if n := afterPowerCut(t, m); n != 100 {
		t.Errorf("%d of 100 puts survived after Sync", n)
	}
}

// afterPowerCut counts the keys of the store if the power went now and nothing
// unsynced reached the disk.
func afterPowerCut(t *testing.T, m *memfs.FS) (n int) {
	t.Helper()
	j := m.Journal()
	disk := j.State(j.Len(), memfs.Choice{})
	db, err := cairn.Open("/db", &cairn.Options{FS: disk})
	check(t, err)
	check(t, db.View(func(tx *cairn.Tx) error {
		for range tx.Keys(cairn.Range{}) {
			n++
		}
		return nil
	}))
	check(t, db.Close())
	return n
}

func TestSyncInterval(t *testing.T) {
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m, Durability: cairn.Relaxed, SyncInterval: 5 * time.Millisecond})
	put(t, db, "a", "1")
	for deadline := time.Now().Add(5 * time.Second); afterPowerCut(t, m) != 1; {
		if time.Now().After(deadline) {
			t.Fatal("not synced in the background")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSetDurability(t *testing.T) {
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m, Durability: cairn.Relaxed, SyncInterval: time.Hour})
	with := func(d cairn.Durability, key string) {
		check(t, db.Update(func(tx *cairn.Tx) error {
			tx.SetDurability(d)
			return tx.Put(b(key), nil)
		}))
	}
	with(cairn.Relaxed, "a")
	if n := afterPowerCut(t, m); n != 0 {
		t.Errorf("%d keys survived", n)
	}
	with(cairn.Durable, "b") // and everything before it
	if n := afterPowerCut(t, m); n != 2 {
		t.Errorf("%d keys survived a durable commit, want 2", n)
	}
	err := db.Update(func(tx *cairn.Tx) error {
		tx.SetDurability(77)
		return tx.Put(b("c"), nil)
	})
	if ok, _ := db.Has(b("c")); ok || !errors.Is(err, cairn.ErrInvalidOption) {
		t.Errorf("unknown durability: %v, %v", ok, err)
	}
}

func TestCompactAndVerify(t *testing.T) {
	db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
	for i := range 3000 {
		check(t, db.Put(fmt.Appendf(nil, "key%04d", i%500), bytes.Repeat([]byte{byte(i)}, 300)))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	s := db.Stats()
	if s.Entries != 500 || s.Levels[0].Tables != 0 || s.SpaceAmplification != 1 || s.LogBytes > 4096 {
		t.Errorf("after Compact: %+v", s)
	}
	r, err := db.Verify(t.Context())
	if err != nil || r.Entries != 500 || r.Tables != s.Tables || r.Problems != nil {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.Verify(ctx)
	expect(t, err, context.Canceled)
	put(t, db, "more", "1")
	if err := db.Compact(ctx, cairn.Range{}); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
}

func TestStats(t *testing.T) {
	db := openNew(t, &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed})
	if s := db.Stats(); s.MemoryLimit != 4<<20 || s.Seq != 0 || s.DiskBytes != 0 || s.Recovery != (cairn.RecoveryStats{}) {
		t.Errorf("empty store: %+v", s)
	}
	value := make([]byte, 500)
	for i := range 5000 {
		value[0] = byte(i)
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), value))
	}
	tx, err := db.Begin(false)
	check(t, err)
	_, err = tx.Get(b("key04999"))
	check(t, err)
	for i := range 5000 {
		_, err = tx.Get(fmt.Appendf(nil, "key%05d", i))
		check(t, err)
	}
	s := db.Stats()
	if s.Seq != 5000 || s.OpenTransactions != 1 || s.CommittedBytes < 5000*508 || s.Flushes == 0 || s.FlushedBytes == 0 ||
		s.Memtables == 0 || s.MemoryUsed < s.Memtables || s.DiskBytes == 0 || s.BackgroundError != nil || s.PinnedBytes == 0 || s.HeapCopies == 0 {
		t.Errorf("%+v", s)
	}
	if s.WriteAmplification <= 1 || s.LoggedBytes <= s.CommittedBytes {
		t.Errorf("write amplification %v, %d bytes committed, %d logged", s.WriteAmplification, s.CommittedBytes, s.LoggedBytes)
	}
	check(t, tx.Rollback())
	check(t, db.Compact(t.Context(), cairn.Range{}))
	if s := db.Stats(); s.OpenTransactions != 0 || s.PinnedBytes != 0 || s.Entries != 5000 || s.Compactions == 0 || s.CompactedBytes == 0 {
		t.Errorf("%+v", s)
	}
	for deadline := time.Now().Add(5 * time.Second); db.Stats().CompactionDebt != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("debt that nobody works off:", db.Stats().CompactionDebt)
		}
	}
}

// TestDefaultMemory is a quarter of what the process may use; with 32 bit the system may give less.
func TestDefaultMemory(t *testing.T) {
	if got, want := openNew(t, nil).Stats().MemoryLimit, arena.SystemLimit()/4; strconv.IntSize == 64 && got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestStatsOfSmallCommits: of a small commit most of what is written to the log is not what was committed.
func TestStatsOfSmallCommits(t *testing.T) {
	db := openNew(t, &cairn.Options{Durability: cairn.Relaxed})
	for i := range 1000 {
		put(t, db, fmt.Sprintf("%05d", i), "")
	}
	s := db.Stats()
	if s.LoggedBytes < 3*s.CommittedBytes || s.LoggedBytes > s.LogBytes || s.Memtables == 0 || s.PointIndexes > 0 || s.WriteAmplification != float64(s.LoggedBytes)/float64(s.CommittedBytes) {
		t.Errorf("%+v", s)
	}
}

// TestStatsOfStalls: what commits wait for flushes counts.
func TestStatsOfStalls(t *testing.T) {
	disk := faultfs.New(inMemory(nil).FS)
	disk.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "*.sst", Sticky: true, Do: faultfs.Delay(50 * time.Millisecond)})
	db := openNew(t, &cairn.Options{FS: disk, Memory: 1 << 20, Durability: cairn.Relaxed})
	value := make([]byte, 32<<10)
	for i := 0; db.Stats().Stalls == 0; i++ {
		if i == 500 {
			t.Fatal("no commit has waited")
		}
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), value))
	}
}

// TestStatsOfLargeTransaction: its tables count as soon as they can be read.
func TestStatsOfLargeTransaction(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, &cairn.Options{Memory: 1 << 20})
	check(t, err)
	defer db.Close()
	value := make([]byte, 1000)
	check(t, db.Update(func(tx *cairn.Tx) error {
		for i := range 5000 {
			if err := tx.Put(fmt.Appendf(nil, "key%05d", i), value); err != nil {
				return err
			}
		}
		return nil
	}))
	if s := db.Stats(); s.Entries != 5000 || s.Tables == 0 || s.RawBytes < 5_000_000 || s.DiskBytes <= s.LogBytes || s.SpaceAmplification < 1 {
		t.Errorf("%+v", s)
	}
}

// TestEvents: what happens in the background is told, and logged for debugging.
func TestEvents(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	var told []string
	kinds, levels := map[cairn.EventKind]int{}, 0
	opts := inMemory(&cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed, Logger: loggerTo(&log), OnEvent: func(e cairn.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds[e.Kind]++
		levels += e.Level
		told = append(told, fmt.Sprintf("level=DEBUG msg=%q done=%d total=%d duration=%v\n", "cairn: "+e.Kind.String(), e.Done, e.Total, e.Duration))
		if e.Time.IsZero() || e.Err != nil {
			t.Errorf("%+v", e)
		}
	}})
	db := openAt(t, "/db", opts)
	for i := range 2000 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), make([]byte, 500)))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	put(t, db, "more", "1")
	opts.FS = opts.FS.(*memfs.FS).Clone() // as after a kill
	recovered := openAt(t, "/db", opts)
	check(t, errors.Join(db.Close(), recovered.Close()))
	if kinds[cairn.EventFlush] == 0 || kinds[cairn.EventCompaction] == 0 || kinds[cairn.EventRecovery] == 0 || levels == 0 {
		t.Errorf("%v, levels %d", kinds, levels)
	}
	logged := slices.Sorted(strings.Lines(log.String())) // two events at once may have been told in another order
	if slices.Sort(told); !slices.Equal(logged, told) {
		t.Errorf("logged: %q\ntold: %q", logged, told)
	}
}

// loggerTo returns a logger that writes all but the time to w.
func loggerTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// TestNoGoroutineStays: a closed store leaves nothing running.
func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		db, err := cairn.Open("/db", inMemory(nil))
		check(t, err)
		put(t, db, "a", "1")
		check(t, db.Close())
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestManyStores: stores in one process do not know of each other.
func TestManyStores(t *testing.T) {
	m := inMemory(nil).FS
	var all []*cairn.DB
	for i := range 8 {
		db := openAt(t, fmt.Sprintf("/db%d", i), &cairn.Options{FS: m, Memory: 2 << 20})
		put(t, db, "who", fmt.Sprint(i))
		all = append(all, db)
	}
	for i, db := range slices.Backward(all) {
		wantValue(t, db, "who", fmt.Sprint(i))
	}
}

// TestVerifyStopsWithItsContext: also where there is nothing to read.
func TestVerifyStopsWithItsContext(t *testing.T) {
	db := openAt(t, t.TempDir(), nil)
	put(t, db, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := db.Verify(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("with %d tables: %v", db.Stats().Tables, err)
		}
		check(t, db.Compact(t.Context(), cairn.Range{}))
	}
}
