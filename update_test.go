package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// slowSyncs opens a store each sync of which takes some time, as a device's does.
func slowSyncs(t *testing.T) *cairn.DB {
	fsys := faultfs.New(memfs.New())
	db, err := cairn.Open("/db", &cairn.Options{FS: fsys})
	check(t, err)
	fsys.Add(faultfs.Rule{Kinds: faultfs.Sync, Sticky: true, Do: faultfs.Delay(100 * time.Microsecond)})
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func increment(tx *cairn.Tx, key string) error {
	n := uint64(0)
	if v, err := tx.Get([]byte(key)); err == nil {
		n = binary.BigEndian.Uint64(v)
	} else if !errors.Is(err, cairn.ErrNotFound) {
		return err
	}
	return tx.Put([]byte(key), binary.BigEndian.AppendUint64(nil, n+1))
}

// Of goroutines that count in one key none loses until it gives up.
func TestUpdatesGetTheirTurn(t *testing.T) {
	for _, c := range []struct{ goroutines, each int }{{2, 600}, {8, 100}, {64, 10}} {
		db := slowSyncs(t)
		var all sync.WaitGroup
		for range c.goroutines {
			all.Go(func() {
				for range c.each {
					if err := db.Update(func(tx *cairn.Tx) error { return increment(tx, "n") }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		v, err := db.Get([]byte("n"))
		check(t, err)
		if n := binary.BigEndian.Uint64(v); n != uint64(c.goroutines*c.each) {
			t.Errorf("%d goroutines counted to %d, want %d", c.goroutines, n, c.goroutines*c.each)
		}
	}
}

// An Update that goes first, and waits for another one, which waits for its turn to be over, ends, and so does the other.
func TestUpdateThatWaitsForAnother(t *testing.T) {
	db := slowSyncs(t)
	attempts, others := 0, 0
	check(t, db.Update(func(tx *cairn.Tx) error {
		if err := increment(tx, "n"); err != nil {
			return err
		}
		if attempts++; attempts > 12 {
			return nil
		}
		done := make(chan error)
		go func() { done <- db.Update(func(tx *cairn.Tx) error { others++; return increment(tx, "n") }) }()
		return <-done
	}))
	if attempts != 13 || others != 12 {
		t.Errorf("%d attempts, %d by others", attempts, others)
	}
}

// TestUpdateThatReadsMuch: an Update ends that reads more than a transaction remembers key by key, though another key,
// which it does not read, is put each time. It failed a hundred times.
func TestUpdateThatReadsMuch(t *testing.T) {
	const memory = 8 << 20
	db := openNew(t, &cairn.Options{Memory: memory, Durability: cairn.Relaxed})
	key := func(n int) []byte { return fmt.Appendf(nil, "key%06d", n) }
	const n = 30_000
	b := cairn.NewBatch()
	for i := range n {
		b.Put(key(2*i), nil)
	}
	check(t, db.Write(b))
	for _, c := range []struct{ reads, attempts int }{{n / 4, 1}, {n, 9}} { // some 60 bytes each
		attempts := 0
		check(t, db.Update(func(tx *cairn.Tx) error {
			attempts++
			for i := range c.reads {
				if ok, err := tx.Has(key(2 * i)); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			check(t, db.Put(key(c.reads+1|1), nil))
			return tx.Put([]byte("sum"), nil)
		}))
		if attempts > c.attempts {
			t.Errorf("%d reads: %d attempts, want at most %d", c.reads, attempts, c.attempts)
		}
	}
	tx, err := db.Begin(true) // which goes first never
	check(t, err)
	for i := range n {
		tx.Has(key(2 * i))
	}
	check(t, db.Put(key(n+1|1), nil))
	check(t, tx.Put([]byte("sum"), nil))
	var c *cairn.ConflictError
	if err := tx.Commit(); !errors.As(err, &c) || !c.Wide || !strings.Contains(err.Error(), "remembered") {
		t.Errorf("a transaction that reads too much: %v", err)
	}
}

// TestUpdateThatReadsALongKey: an Update that reads one long key, or seeks to it, ends at once, though its neighbour is put each
// time. It failed a hundred times.
func TestUpdateThatReadsALongKey(t *testing.T) {
	for _, n := range []int{20_000, 40_000, 60_000} {
		for how, read := range map[string]func(*cairn.Tx, []byte) bool{
			"Has": func(tx *cairn.Tx, key []byte) bool { ok, err := tx.Has(key); return ok && err == nil },
			"Seek": func(tx *cairn.Tx, key []byte) bool {
				it := tx.Iter(cairn.Range{})
				defer it.Close()
				return it.Seek(key)
			},
		} {
			db := openNew(t, &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed})
			key := func(last byte) []byte { return append(bytes.Repeat([]byte{'a'}, n), last) }
			check(t, db.Put(key('1'), nil))
			attempts := 0
			err := db.Update(func(tx *cairn.Tx) error {
				if attempts++; !read(tx, key('1')) {
					t.Fatalf("%s does not find the key of %d bytes", how, n)
				}
				check(t, db.Put(key('8'), nil))
				return tx.Put(b("z"), nil)
			})
			if err != nil || attempts > 1 {
				t.Errorf("%s of a key of %d bytes: %d attempts, %.80v", how, n, attempts, err)
			}
		}
	}
}

// TestManyWaitToGoFirst: however many Updates have lost often and wait for each other, none loses its place, and so runs into
// conflicts until it gives up, as long as each that goes first ends soon.
func TestManyWaitToGoFirst(t *testing.T) {
	t.Parallel()
	db := openNew(t, &cairn.Options{Durability: cairn.Relaxed})
	const goroutines, each = 256, 3
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				if err := db.Update(func(tx *cairn.Tx) error {
					time.Sleep(10 * time.Millisecond) // many times as often as there is patience for one of them
					return increment(tx, "n")
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if v, err := db.Get([]byte("n")); err != nil || binary.BigEndian.Uint64(v) != goroutines*each {
		t.Errorf("%x counted by %d, %v", v, goroutines*each, err)
	}
}
