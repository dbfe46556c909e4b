package cairn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

// logs returns the names of the log segments in a store's directory, and the bytes of
// all its files.
func logs(t *testing.T, dir string) (names []string, bytes int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".log") {
			names = append(names, f.Name())
		}
		if info, err := f.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return names, bytes
}

// atRest waits until a store has let go of its log, and of what else it does not need: the
// space it puts aside goes a moment after the log. It has at most so many bytes then.
func atRest(t *testing.T, db *cairn.DB, dir string, most int64) (bytes int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		names, bytes := logs(t, dir)
		if debt := db.Stats().CompactionDebt; len(names) == 0 && debt == 0 && bytes <= most {
			return bytes
		} else if time.Now().After(deadline) {
			t.Fatalf("not at rest: %v, debt %d, %d bytes of at most %d", names, debt, bytes, most)
		}
	}
}

// A store that nobody writes to becomes tables and no log; what was written is there, in
// this process and after a kill, and writing goes on as if nothing had been.
func TestStoreComesToRest(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		dir := t.TempDir()
		db, err := cairn.Open(dir, &cairn.Options{Durability: durability})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		key := func(i int) []byte { return fmt.Appendf(nil, "key-%06d", i) }
		const perRound = 3000
		written := 0
		verify := func(db *cairn.DB) {
			t.Helper()
			n := 0
			if err := db.View(func(tx *cairn.Tx) error {
				for k, v := range tx.Scan(cairn.Range{}) {
					if want := key(n); string(k) != string(want) || len(v) != 400 || !strings.HasPrefix(string(v), string(want)) {
						return fmt.Errorf("%q in place of %q, a value of %d bytes", k, want, len(v))
					}
					n++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if n != written {
				t.Fatalf("%d keys of %d", n, written)
			}
		}
		for range 3 {
			batch := cairn.NewBatch()
			for range perRound {
				batch.Put(key(written), append(key(written), make([]byte, 400-len(key(0)))...))
				written++
			}
			if err := db.Write(batch); err != nil {
				t.Fatal(err)
			}
			// Less than the bytes of the keys and values once: they compress to a fraction.
			atRest(t, db, dir, int64(written)*400)
			verify(db)
			if err := db.Put(key(written), append(key(written), make([]byte, 400-len(key(0)))...)); err != nil {
				t.Fatal(err)
			}
			written++
			killed := copyLive(t, dir)
			other, err := cairn.Open(killed, nil)
			if err != nil {
				t.Fatal(err)
			}
			if dropped := other.Stats().Recovery.DroppedBytes; dropped > 0 {
				t.Errorf("%d bytes dropped", dropped)
			}
			verify(other)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
		}
		// A store of a few writes has no table made of each.
		before := db.Stats().Flushes
		for i := range 3 {
			if err := db.Put(key(i), append(key(i), make([]byte, 400-len(key(0)))...)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(60 * time.Millisecond)
		}
		if s := db.Stats(); s.Flushes != before || s.CompactionDebt != 0 {
			t.Errorf("%d flushes of single pairs, debt %d", s.Flushes-before, s.CompactionDebt)
		}
		verify(db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a snapshot sees survives the merge of a store that comes to rest, and goes when the
// snapshot does, without anybody writing.
func TestRestUnderASnapshot(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, &cairn.Options{Durability: cairn.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 5000
	r := rand.New(rand.NewPCG(1, 2))
	write := func() (values [][]byte) {
		t.Helper()
		batch := cairn.NewBatch()
		for i := range n {
			v := make([]byte, 400)
			for j := range v {
				v[j] = byte(r.Uint32())
			}
			values = append(values, v)
			batch.Put(fmt.Appendf(nil, "key-%06d", i), v)
		}
		if err := db.Write(batch); err != nil {
			t.Fatal(err)
		}
		return values
	}
	same := func(tx *cairn.Tx, values [][]byte) error {
		i := 0
		for k, v := range tx.Scan(cairn.Range{}) {
			if i == n || !bytes.Equal(v, values[i]) {
				return fmt.Errorf("%q has a value that is not its own", k)
			}
			i++
		}
		if i != n {
			return fmt.Errorf("%d keys of %d", i, n)
		}
		return nil
	}
	old := write()
	tx, err := db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	now := write()
	both := atRest(t, db, dir, math.MaxInt64)
	if err := same(tx, old); err != nil {
		t.Errorf("in the snapshot: %v", err)
	}
	if err := db.View(func(tx *cairn.Tx) error { return same(tx, now) }); err != nil {
		t.Error(err)
	}
	tx.Rollback()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, one := logs(t, dir)
		if one < both*3/4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes with the snapshot, %d without", both, one)
		}
	}
	if err := db.View(func(tx *cairn.Tx) error { return same(tx, now) }); err != nil {
		t.Error(err)
	}
}

// A store that is scanned again and again is merged into one table although somebody goes
// on writing to it: every scan finds what was there when it began, an old snapshot too.
func TestScannedStoreIsMerged(t *testing.T) {
	const n, bare = 20_000, 64 << 10
	db, err := cairn.Open(t.TempDir(), &cairn.Options{Durability: cairn.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := func(i int) []byte { return fmt.Appendf(nil, "key-%06d", i) }
	value := func(i, version int) []byte { return fmt.Appendf(nil, "%d of %d %080d", version, i, 0) }
	write := func(version int) {
		batch := cairn.NewBatch()
		for at, i := range rand.New(rand.NewPCG(1, uint64(version))).Perm(n) {
			batch.Put(key(i), value(i, version))
			if at%1000 == 999 {
				if err := db.Write(batch); err != nil {
					t.Error(err)
				}
				batch.Reset()
			}
		}
	}
	check := func(tx *cairn.Tx, version int) {
		i := 0
		for k, v := range tx.Scan(cairn.Range{Low: []byte("key-"), High: []byte("key.")}) {
			if !bytes.Equal(k, key(i)) || !bytes.Equal(v, value(i, version)) {
				t.Fatalf("row %d of version %d: %s = %.20s", i, version, k, v)
			}
			i++
		}
		if i != n {
			t.Fatalf("%d rows of %d", i, n)
		}
	}
	write(1)
	old, err := db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	write(2)
	defer old.Rollback()
	var stop atomic.Bool
	trickled := make(chan int)
	go func() { // there is never quiet
		n := 0
		for ; !stop.Load(); n++ {
			time.Sleep(2 * time.Millisecond)
			if err := db.Put(fmt.Appendf(nil, "trickle-%06d", n), value(n, 3)); err != nil {
				t.Error(err)
			}
		}
		trickled <- n
	}()
	defer stop.Store(true)
	merged := func() bool { s := db.Stats(); return s.Tables == 1 && s.LogBytes < bare }
	for deadline := time.Now().Add(20 * time.Second); !merged(); {
		if time.Now().After(deadline) {
			t.Fatalf("not merged: %+v", db.Stats())
		}
		if err := db.View(func(tx *cairn.Tx) error { check(tx, 2); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	check(old, 1)
	stop.Store(true)
	for i := range <-trickled {
		if v, err := db.Get(fmt.Appendf(nil, "trickle-%06d", i)); err != nil || !bytes.Equal(v, value(i, 3)) {
			t.Fatalf("trickle %d: %.20s (%v)", i, v, err)
		}
	}
	if err := db.View(func(tx *cairn.Tx) error { check(tx, 2); return nil }); err != nil {
		t.Fatal(err)
	}
}

// Compact leaves nothing that a rest would do: small tables are joined.
func TestNothingLeftAfterCompact(t *testing.T) {
	db := openAt(t, t.TempDir(), nil)
	for i := range byte(6) {
		check(t, db.Put([]byte{i, 1}, noise(1000)))
		check(t, db.Compact(t.Context(), cairn.Range{Low: []byte{i}}))
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	compacted := db.Stats()
	if compacted.Tables > 3 { // a rest before the end may have joined some
		t.Errorf("levels %+v, debt %d", compacted.Levels, compacted.CompactionDebt)
	}
	rested := compacted
	for deadline := time.Now().Add(20 * time.Second); rested.CompactionDebt > 0 && time.Now().Before(deadline); rested = db.Stats() {
		time.Sleep(time.Millisecond) // what is left may be an empty memtable
	}
	if rested.CompactionDebt > 0 || rested.Compactions != compacted.Compactions {
		t.Errorf("%d merges after Compact, levels %+v, debt %d", rested.Compactions-compacted.Compactions, rested.Levels, rested.CompactionDebt)
	}
}

// TestCompactEndsBesideAWriter: Compact is of what was committed before the call. What a writer adds meanwhile, faster than it
// merges, does not keep it from ending.
func TestCompactEndsBesideAWriter(t *testing.T) {
	large(t)
	const pairs, most = 20_000, 400_000
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 8 << 20, Durability: cairn.Relaxed})
	put := func(i int) {
		value := make([]byte, 1000)
		rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}).Read(value)
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i*7919%pairs), value))
	}
	for i := range pairs {
		put(i)
	}
	var ended atomic.Bool
	done := make(chan error)
	go func() {
		err := db.Compact(t.Context(), cairn.Range{})
		ended.Store(true)
		done <- err
	}()
	written := 0
	for ; written < most && !ended.Load(); written++ {
		put(written)
	}
	if written == most {
		t.Errorf("Compact had not returned after %d puts", most)
	}
	check(t, <-done)
}

// TestSegmentAfterRestHasItsName: the segment that was made for relaxed commits goes unused when the store rests. The next one, for
// durable commits, was taken for one behind it, which is confirmed together with it: its name was not durable, and after a power cut
// the log was missing.
func TestSegmentAfterRestHasItsName(t *testing.T) {
	disk := memfs.New()
	disk.AllowMaps()
	db := openAt(t, "/db", &cairn.Options{FS: disk, Memory: 64 << 20})
	put := func(d cairn.Durability, key string, n int) {
		t.Helper()
		check(t, db.Update(func(tx *cairn.Tx) error {
			tx.SetDurability(d)
			return tx.Put(b(key), make([]byte, n))
		}))
	}
	for i := range 32 {
		put(cairn.Relaxed, fmt.Sprint("relaxed", i), 15_000)
	}
	time.Sleep(5 * time.Millisecond) // for the next segment
	for i := range 42 {
		put(cairn.Durable, fmt.Sprint("durable", i), 10)
	}
	for deadline := time.Now().Add(10 * time.Second); db.Stats().LogBytes > 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	put(cairn.Durable, "last", 100)
	again := openAt(t, "/db", &cairn.Options{FS: disk.Crash(memfs.SyncedOnly())})
	wantValue(t, again, "last", string(make([]byte, 100)))
}

// TestCompactJoinsWhatItMade: Compact merges piece by piece where there is little memory. What compresses well was left as a
// small table for each piece, in about every other of these stores.
func TestCompactJoinsWhatItMade(t *testing.T) {
	for range 10 {
		db := openAt(t, "/db", &cairn.Options{FS: memfs.New(), Memory: 1 << 20, Durability: cairn.Relaxed})
		for i := range 1500 {
			check(t, db.Put(fmt.Appendf(nil, "k%05d", i), bytes.Repeat([]byte{byte(i)}, 3000)))
		}
		check(t, db.Compact(t.Context(), cairn.Range{}))
		if n := db.Stats().Tables; n > 3 { // fewer are not worth it
			t.Errorf("%d tables", n)
		}
		check(t, db.Close())
	}
}

// TestCompactEndsInAMerge: a context that ends while Compact merges ends that too, and nothing is left of it. Where the
// machine stands still for long enough the store merges by itself meanwhile: then it is tried again.
func TestCompactEndsInAMerge(t *testing.T) {
	for range 20 {
		if endsInAMerge(t) {
			return
		}
	}
	t.Error("no merge ended with its context")
}

func endsInAMerge(t *testing.T) bool {
	t.Helper()
	fs := memfs.New()
	fs.StopJournal()
	h := &hookFS{FS: fs}
	options := &cairn.Options{FS: h, Memory: 16 << 20, Compression: cairn.None}
	db := openAt(t, "/db", options)
	for i := range 5000 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), noise(1000)))
	}
	check(t, db.Close())
	db = openAt(t, "/db", options)
	for i := 0; i < 5000; i += 10 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), noise(500)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reads := atomic.Int64{}
	hook := func(name string) { // the first are the table's ends
		if strings.HasSuffix(name, ".sst") && reads.Add(1) == 20 {
			cancel()
		}
	}
	h.reads.Store(&hook)
	err := db.Compact(ctx, cairn.Range{})
	s, after := db.Stats(), reads.Load()
	if s.BackgroundError != nil {
		t.Error(s.BackgroundError)
	}
	check(t, db.Compact(t.Context(), cairn.Range{}))
	if s := db.Stats(); s.Tables != 1 || s.Entries != 5000 {
		t.Errorf("%d tables, %d entries", s.Tables, s.Entries)
	}
	check(t, db.Close())
	ended := errors.Is(err, context.Canceled) && s.CompactedBytes == 0
	return ended && after > 20 // it was the merge that had read
}

// TestNothingLeftBesideASnapshot: what came and went while a snapshot is open leaves nothing, also where tables could go to
// the last level as they are.
func TestNothingLeftBesideASnapshot(t *testing.T) {
	for _, c := range []cairn.Compression{cairn.Balanced, cairn.Fast, cairn.None, cairn.Small} {
		db := openAt(t, t.TempDir(), &cairn.Options{Memory: 16 << 20, Durability: cairn.Relaxed, Compression: c})
		for i := range 3000 {
			check(t, db.Put(fmt.Appendf(nil, "k%05d", i), noise(1000)))
		}
		check(t, db.Compact(t.Context(), cairn.Range{}))
		before := db.Stats().Entries
		tx, err := db.Begin(false)
		check(t, err)
		for i := range 4000 {
			key := fmt.Appendf(nil, "q%05d", i)
			check(t, db.Put(key, key))
			check(t, db.Delete(key))
		}
		check(t, db.Compact(t.Context(), cairn.Range{}))
		if n := db.Stats().Entries; n != before {
			t.Errorf("%v: %d entries more", c, n-before)
		}
		tx.Rollback()
		check(t, db.Close())
	}
}

// A store at rest gives back what few bytes of deletes in its log hide: all of it, by one range delete, key by key, or by a range
// delete of each key, whether or not there is something between one and the next.
func TestDeletedSpaceIsFreeAtRest(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "key%04d", i) }
	const n = 300
	for _, c := range []struct {
		deletes int
		put     func(b *cairn.Batch, i int)
	}{
		{1, func(b *cairn.Batch, _ int) { b.DeleteRange(cairn.Prefix([]byte("key"))) }},
		{n, func(b *cairn.Batch, i int) { b.Delete(key(i)) }},
		{n, func(b *cairn.Batch, i int) { b.DeleteRange(cairn.Range{Low: key(i), High: key(i + 1)}) }},
		{n, func(b *cairn.Batch, i int) { b.DeleteRange(cairn.Range{Low: key(i), High: append(key(i), 0)}) }},
	} {
		dir := t.TempDir()
		db, err := cairn.Open(dir, &cairn.Options{Memory: 16 << 20})
		check(t, err)
		defer db.Close()
		r := rand.New(rand.NewPCG(3, 4))
		value := make([]byte, 16<<10)
		b := cairn.NewBatch()
		for i := range n {
			for j := range value {
				value[j] = byte(r.Uint32())
			}
			b.Put(key(i), value)
		}
		check(t, db.Write(b))
		full := atRest(t, db, dir, 8<<20)
		if full < n*16<<10 {
			t.Fatalf("%d bytes at rest", full)
		}
		b.Reset()
		for i := range c.deletes {
			c.put(b, i)
		}
		check(t, db.Write(b))
		atRest(t, db, dir, full/10)
	}
}
