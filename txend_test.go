package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestNoHandleIsUsedTwice: a transaction that has ended stays so, whatever is begun after it.
func TestNoHandleIsUsedTwice(t *testing.T) {
	db := openNew(t, nil)
	seen := map[*cairn.Tx]bool{}
	for range 1000 {
		tx, err := db.Begin(true)
		check(t, err)
		defer tx.Rollback() // or closing the store would wait for it
		if seen[tx] {
			t.Fatal("a transaction begins in the handle of another")
		}
		for old := range seen {
			expect(t, old.Put([]byte("k"), nil), cairn.ErrTxClosed)
		}
		seen[tx] = true
		tx.Rollback()
	}
}

// TestForgottenTransaction: once the collector has found one that was never ended, Close no longer waits for
// it, and says that the memtable it has read is still there.
func TestForgottenTransaction(t *testing.T) {
	opts := inMemory(nil)
	db, err := cairn.Open("/db", opts)
	check(t, err)
	check(t, db.Put([]byte("k"), []byte("v")))
	func() {
		tx, err := db.Begin(true)
		check(t, err)
		_, err = tx.Get([]byte("k"))
		check(t, err)
		check(t, tx.Put([]byte("l"), []byte("w")))
	}()
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	for {
		select {
		case err := <-closed:
			expect(t, err, cairn.ErrTxForgotten)
			again, err := cairn.Open("/db", opts)
			check(t, err)
			defer again.Close()
			v, err := again.Get([]byte("k"))
			check(t, err)
			if string(v) != "v" {
				t.Errorf("%q", v)
			}
			return
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// TestForgottenInACall: as long as a call runs its transaction is in use, though it is the last one and
// the transaction never ends.
func TestForgottenInACall(t *testing.T) {
	calls := map[string]func(*cairn.Tx) error{
		"Has": func(tx *cairn.Tx) error { _, err := tx.Has([]byte("k")); return err },
		"Get": func(tx *cairn.Tx) error { _, err := tx.Get([]byte("k")); return err },
	}
	for name, call := range calls {
		for _, writable := range []bool{false, true} {
			t.Run(fmt.Sprint(name, writable), func(t *testing.T) {
				fs := &hookFS{FS: memfs.New()}
				opts := &cairn.Options{FS: fs}
				db, err := cairn.Open("/db", opts)
				check(t, err)
				check(t, db.Put([]byte("k"), []byte("v")))
				check(t, db.Close()) // to a table, which nobody has read
				db, err = cairn.Open("/db", opts)
				check(t, err)
				defer db.Close()
				reads, open := int64(0), int64(0)
				hook := func(string) {
					if !bytes.Contains(debug.Stack(), []byte("cairn_test.forgetIn(")) {
						return // the point index is made meanwhile
					}
					for range 3 {
						runtime.GC()
						time.Sleep(time.Millisecond) // cleanups
					}
					reads++
					open += db.Stats().OpenTransactions
				}
				fs.reads.Store(&hook)
				check(t, forgetIn(db, writable, call))
				fs.reads.Store(nil)
				if reads == 0 || open != reads {
					t.Errorf("%d reads, while %d transactions were open", reads, open)
				}
				untilEnded(t, db)
			})
		}
	}
}

// forgetIn calls a method of a transaction that never ends.
//
//go:noinline
func forgetIn(db *cairn.DB, writable bool, call func(*cairn.Tx) error) error {
	tx, err := db.Begin(writable)
	if err != nil {
		return err
	}
	return call(tx)
}

// TestForgottenBesideKept: the collector finds a transaction that is forgotten also while others are
// referred to that have ended.
func TestForgottenBesideKept(t *testing.T) {
	db, err := cairn.Open("/db", inMemory(nil))
	check(t, err)
	defer db.Close()
	var kept []*cairn.Tx
	for i := range 100 {
		tx, err := db.Begin(i%2 == 0)
		check(t, err)
		tx.Rollback()
		kept = append(kept, tx)
		check(t, db.View(func(tx *cairn.Tx) error {
			kept = append(kept, tx)
			return nil
		}))
	}
	func() {
		_, err := db.Begin(false)
		check(t, err)
	}()
	untilEnded(t, db)
	runtime.KeepAlive(kept)
	runtime.GC() // or Close waits, if that failed
}

// TestForgottenIterators: of iterators that stood on a row when their transaction was forgotten the tables go, with their files, once
// others have taken their place; what Key and Value returned of a table or a memtable stays as it was.
func TestForgottenIterators(t *testing.T) {
	fs := memfs.New()
	db, err := cairn.Open("/db", &cairn.Options{FS: fs, Memory: 4 << 20, Durability: cairn.Relaxed})
	check(t, err)
	fill := func(c string) {
		for i := range 2000 {
			put(t, db, fmt.Sprintf("%04d%s", i, c), strings.Repeat(c, 500))
		}
	}
	tables := func() (names []string) {
		all, err := fs.List("/db")
		check(t, err)
		return slices.DeleteFunc(all, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	}
	fill("a")
	check(t, db.Compact(t.Context(), cairn.Range{}))
	put(t, db, "1000m", strings.Repeat("m", 500))
	for _, writable := range []bool{false, true} {
		old := tables()
		inTable, inTableValue := forgetIteratorAt(t, db, writable, "0000a")
		inMemory, inMemoryValue := forgetIteratorAt(t, db, writable, "1000m")
		for range 3 {
			check(t, db.Compact(t.Context(), cairn.Range{}))
			fill("a")
			put(t, db, "1000m", strings.Repeat("m", 500))
		}
		untilEnded(t, db)
		kept := func(name string) bool { return slices.Contains(old, name) }
		for tries := 0; slices.ContainsFunc(tables(), kept); tries++ {
			if tries == 1000 {
				t.Fatalf("writable %v: tables %v are there still, of %v", writable, tables(), old)
			}
			time.Sleep(time.Millisecond)
		}
		if string(inTable) != "0000a" || string(inTableValue) != strings.Repeat("a", 500) {
			t.Errorf("writable %v: of a table: %q %q", writable, inTable, inTableValue)
		}
		if string(inMemory) != "1000m" || string(inMemoryValue) != strings.Repeat("m", 500) {
			t.Errorf("writable %v: of a memtable: %q %q", writable, inMemory, inMemoryValue)
		}
	}
	expect(t, db.Close(), cairn.ErrTxForgotten)
}

// forgetIteratorAt returns what an iterator says of a key, in a transaction that never ends, with others that stand elsewhere,
// and nowhere.
//
//go:noinline
func forgetIteratorAt(t *testing.T, db *cairn.DB, writable bool, at string) (key, value []byte) {
	tx, err := db.Begin(writable)
	check(t, err)
	other, closed, it := tx.Iter(cairn.Range{}), tx.Iter(cairn.Range{}), tx.Iter(cairn.Range{})
	if tx.Iter(cairn.Range{}); !other.Last() || !closed.First() || !it.Seek(b(at)) {
		t.Fatal("the iterators do not stand where they should")
	}
	check(t, closed.Close())
	value, err = it.Value()
	check(t, err)
	return it.Key(), value
}

// untilEnded runs the collector until it has found the transactions that were forgotten.
func untilEnded(t *testing.T, db *cairn.DB) {
	t.Helper()
	for range 1000 {
		if db.Stats().OpenTransactions == 0 {
			return
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	t.Error("a transaction that is forgotten is not found")
}

// TestEndedAtOnce: of several that end a transaction at once, one does, and what others have going on is none the worse.
func TestEndedAtOnce(t *testing.T) {
	db := openAt(t, "/db", &cairn.Options{FS: memfs.New(), Memory: 4 << 20, Durability: cairn.Relaxed})
	var over atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for ; !over.Load(); time.Sleep(100 * time.Microsecond) {
			err := db.Update(func(tx *cairn.Tx) error {
				_, err := tx.Get(b("other"))
				if err != nil && !errors.Is(err, cairn.ErrNotFound) {
					return err
				}
				return tx.Put(b("other"), b("x"))
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	committed := 0
	for i := range 500 {
		tx, err := db.Begin(true)
		check(t, err)
		check(t, tx.Put(b("n"), fmt.Append(nil, i)))
		var ending sync.WaitGroup
		var ready atomic.Int32
		atOnce := func() { // as far as the processors do
			for ready.Add(1); ready.Load() < 2; runtime.Gosched() {
			}
		}
		var commits [2]error
		ending.Go(func() {
			atOnce()
			commits[0] = tx.Commit()
		})
		ending.Go(func() {
			atOnce()
			if i%2 == 0 {
				commits[1] = tx.Commit()
			} else {
				commits[1] = errors.Join(tx.Rollback(), cairn.ErrTxClosed)
			}
		})
		ending.Wait()
		done := 0
		for _, err := range commits {
			if err == nil {
				done++
			} else if !errors.Is(err, cairn.ErrTxClosed) {
				t.Fatal(err)
			}
		}
		if done > 1 {
			t.Fatal("it was committed twice")
		}
		committed += done
		if done == 1 {
			wantValue(t, db, "n", fmt.Sprint(i))
		}
	}
	over.Store(true)
	others.Wait()
	t.Logf("%d of 2000 were committed", committed)
}

// TestIteratorsKnowThatTheirTransactionEnded: one that stood on a key, with others behind it perhaps, says so; one that had
// come to its end before has seen everything.
func TestIteratorsKnowThatTheirTransactionEnded(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "1")
	put(t, db, "b", "2")
	for _, writable := range []bool{false, true} {
		tx, err := db.Begin(writable)
		check(t, err)
		midst, end, closed := tx.Iter(cairn.Range{}), tx.Iter(cairn.Range{}), tx.Iter(cairn.Range{})
		if !midst.First() || !end.Last() || end.Next() || !closed.First() {
			t.Fatal("the iterators do not stand where they should")
		}
		check(t, closed.Close())
		tx.Rollback()
		expect(t, midst.Err(), cairn.ErrTxClosed)
		expect(t, midst.Close(), cairn.ErrTxClosed)
		check(t, end.Err())
		check(t, end.Close())
	}
}

// collected collects garbage until closed, which gets what Close returned.
func collected(t *testing.T, closed <-chan error) {
	t.Helper()
	for range 1000 {
		runtime.GC()
		select {
		case err := <-closed:
			check(t, err)
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatal("Close has not returned")
}

// TestCloseInACleanup: a cleanup may close the store, also one with a transaction that the same collection has found, whose
// own cleanup may wait for this one: Close never returned.
func TestCloseInACleanup(t *testing.T) {
	closed := make(chan error, 1)
	func() {
		db, err := cairn.Open("/db", inMemory(nil))
		check(t, err)
		tx, err := db.Begin(false)
		check(t, err)
		_, err = tx.Get(b("a"))
		expect(t, err, cairn.ErrNotFound)
		runtime.AddCleanup(&struct{ db *cairn.DB }{db}, func(db *cairn.DB) { closed <- db.Close() }, db)
	}()
	collected(t, closed)
}

// TestCloseInAFinalizer: a finalizer may close the store, one with a transaction that was forgotten, too, though no other finalizer
// runs until it has closed it: Close never returned.
func TestCloseInAFinalizer(t *testing.T) {
	db, err := cairn.Open("/db", inMemory(nil))
	check(t, err)
	tx, err := db.Begin(false)
	check(t, err)
	closed := make(chan error, 1)
	runtime.SetFinalizer(&struct{ db *cairn.DB }{db}, func(any) { closed <- db.Close() })
	for range 1000 {
		if runtime.GC(); errors.Is(db.Sync(), cairn.ErrClosed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(tx) // and is forgotten, with Close waiting for it
	collected(t, closed)
}
