package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn"
)

// TestReadYourOwnWrites runs random writes in one transaction, on top of what the
// store holds, and compares gets and scans both ways with a model after each.
func TestReadYourOwnWrites(t *testing.T) {
	for _, memory := range []int64{64 << 20, 1 << 20} { // the second spills
		t.Run(fmt.Sprintf("memory=%d", memory), func(t *testing.T) {
			r := rand.New(rand.NewPCG(testSeed(t), 2))
			db := openNew(t, &cairn.Options{Memory: memory, Durability: cairn.Relaxed})
			m := newModel()
			key := func() string { return fmt.Sprintf("k%03d", r.IntN(300)) }
			for i := range 200 {
				k := key()
				put(t, db, k, fmt.Sprint("committed", i))
				m.put(k, fmt.Sprint("committed", i))
			}
			check(t, db.Update(func(tx *cairn.Tx) error {
				ownWrites(t, r, tx, m, key)
				return nil
			}))
			check(t, db.View(func(tx *cairn.Tx) error { m.check(t, tx); return nil }))
		})
	}
}

func ownWrites(t *testing.T, r *rand.Rand, tx *cairn.Tx, m *model, key func() string) {
	for i := range 3000 {
		k := key()
		switch p := r.IntN(100); {
		case p < 60:
			v := fmt.Sprintf("%d%0*d", i, r.IntN(300), 0)
			check(t, tx.Put(b(k), b(v)))
			m.put(k, v)
		case p < 80:
			check(t, tx.Delete(b(k)))
			m.delete(k)
		case p < 83:
			low, high := key(), key()
			check(t, tx.DeleteRange(cairn.Range{Low: b(low), High: b(high)}))
			m.deleteRange(low, high)
		case p < 84:
			m.check(t, tx)
		}
		v, err := tx.Get(b(k))
		if want, ok := m.values[k]; ok != (err == nil) || string(v) != want {
			t.Fatalf("write %d: get %s: %q, %v; want %q", i, k, v, err, want)
		}
		if ok, err := tx.Has(b(k)); ok != (m.values[k] != "") || err != nil {
			t.Fatalf("write %d: has %s: %v, %v", i, k, ok, err)
		}
	}
	m.check(t, tx)
}

func TestCompareAndSwap(t *testing.T) {
	db := openNew(t, nil)
	check(t, db.Update(func(tx *cairn.Tx) error {
		swap := func(key string, old, new []byte, want bool) {
			t.Helper()
			if ok, err := tx.CompareAndSwap(b(key), old, new); ok != want || err != nil {
				t.Fatalf("%v, %v; want %v", ok, err, want)
			}
		}
		swap("a", []byte{}, b("1"), false) // absent is not empty
		swap("a", b("1"), b("2"), false)
		swap("a", nil, b("1"), true)
		swap("a", nil, b("2"), false)
		swap("a", b("2"), b("3"), false)
		swap("a", b("1"), []byte{}, true)
		swap("a", nil, b("2"), false) // empty is not absent
		swap("a", []byte{}, b("4"), true)
		if v, err := tx.Get(b("a")); string(v) != "4" || err != nil {
			t.Fatalf("%q, %v", v, err)
		}
		if ok, err := tx.PutIfAbsent(b("a"), b("5")); ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := tx.PutIfAbsent(b("b"), nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := tx.PutIfAbsent(b("b"), nil); ok || err != nil {
			t.Fatal(ok, err)
		}
		_, err := tx.CompareAndSwap(nil, nil, nil)
		expect(t, err, cairn.ErrEmptyKey)
		return nil
	}))
	wantValue(t, db, "a", "4")
}

func TestSnapshotStays(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) { put(t, db, "a", "old"); put(t, db, "b", "old") },
		func(t *testing.T, db *cairn.DB) {
			tx, err := db.Begin(false)
			check(t, err)
			defer tx.Rollback()
			seq := tx.Seq()
			put(t, db, "a", "new")
			put(t, db, "c", "new")
			check(t, db.Delete(b("b")))
			check(t, db.Compact(t.Context(), cairn.Range{}))
			v, err := tx.Get(b("a"))
			if string(v) != "old" || err != nil || tx.Seq() != seq || db.Stats().Seq != seq+3 {
				t.Errorf("%q, %v", v, err)
			}
			if keys := keysOf(tx, cairn.Range{}); fmt.Sprint(keys) != "[a b]" {
				t.Errorf("%v", keys)
			}
			for _, err := range []error{tx.Put(b("x"), nil), tx.Delete(b("x")), tx.DeleteRange(cairn.Range{}),
				tx.DeleteRange(cairn.Range{Low: b("b"), High: b("a")})} {
				expect(t, err, cairn.ErrReadOnly)
			}
			for _, key := range []string{"x", "a"} { // whether they would have written or not
				_, err := tx.PutIfAbsent(b(key), nil)
				expect(t, err, cairn.ErrReadOnly)
				_, err = tx.CompareAndSwap(b(key), b("wrong"), nil)
				expect(t, err, cairn.ErrReadOnly)
			}
			check(t, tx.Err())
			check(t, tx.Commit()) // the same as Rollback
			if tx.CommitSeq() != seq {
				t.Errorf("commit sequence %d", tx.CommitSeq())
			}
		})
}

func TestRollback(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "1")
	tx, err := db.Begin(true)
	check(t, err)
	check(t, tx.Put(b("a"), b("2")))
	check(t, tx.Put(b("b"), b("2")))
	check(t, tx.Rollback())
	check(t, tx.Rollback())
	wantKeys(t, db, "a")
	wantValue(t, db, "a", "1")
	expect(t, tx.Commit(), cairn.ErrTxClosed)
}

func TestCommitSeq(t *testing.T) {
	db := openNew(t, nil)
	last := uint64(0)
	for i := range 5 {
		tx, err := db.Begin(true)
		check(t, err)
		if tx.Seq() != last || tx.CommitSeq() != 0 {
			t.Errorf("snapshot %d, want %d", tx.Seq(), last)
		}
		for j := range i + 1 {
			check(t, tx.Put([]byte{byte(j + 1)}, nil))
		}
		check(t, tx.Commit())
		check(t, tx.Rollback()) // does nothing
		if last += uint64(i + 1); tx.CommitSeq() != last {
			t.Errorf("commit %d has sequence %d, want %d", i, tx.CommitSeq(), last)
		}
	}
}

// TestEndedTransaction: every call on a transaction that has ended, and on its
// iterators, is ErrTxClosed or does nothing.
func TestEndedTransaction(t *testing.T) {
	for _, writable := range []bool{true, false} {
		for _, end := range []string{"commit", "rollback"} {
			db := openNew(t, nil)
			put(t, db, "a", "1")
			tx, err := db.Begin(writable)
			check(t, err)
			it := tx.Iter(cairn.Range{})
			if !it.First() {
				t.Fatal("not on the first key")
			}
			fresh := tx.Iter(cairn.Range{})
			seq := tx.Keys(cairn.Range{})
			if end == "commit" {
				check(t, tx.Commit())
			} else {
				check(t, tx.Rollback())
			}
			endedTx(t, tx)
			for k := range seq {
				t.Errorf("a sequence made before yields %q", k)
			}
			endedIterator(t, it)
			endedIterator(t, fresh)
			endedIterator(t, tx.Iter(cairn.Range{}))
		}
	}
}

func endedTx(t *testing.T, tx *cairn.Tx) {
	t.Helper()
	_, errGet := tx.Get(b("a"))
	_, errHas := tx.Has(b("a"))
	_, errAbsent := tx.PutIfAbsent(b("a"), nil)
	_, errSwap := tx.CompareAndSwap(b("a"), nil, nil)
	for i, err := range []error{errGet, errHas, errAbsent, errSwap, tx.Put(b("a"), nil), tx.Delete(b("a")),
		tx.DeleteRange(cairn.Range{}), tx.Commit()} {
		if !errors.Is(err, cairn.ErrTxClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for range tx.Scan(cairn.Range{}) {
		t.Error("a scan yields")
	}
	expect(t, tx.Err(), cairn.ErrTxClosed) // the scan's
	check(t, tx.Rollback())
	tx.SetDurability(cairn.Relaxed)
	tx.Seq()
	tx.CommitSeq()
}

func endedIterator(t *testing.T, it *cairn.Iterator) {
	t.Helper()
	if it.First() || it.Last() || it.Next() || it.Prev() || it.Seek(b("a")) || it.SeekLT(b("z")) || it.Valid() || it.Key() != nil {
		t.Error("an ended iterator moves")
	}
	_, err := it.Value()
	expect(t, err, cairn.ErrTxClosed)
	expect(t, it.Err(), cairn.ErrTxClosed)
	it.Close()
	it.Close()
}

// TestManaged: Commit and Rollback inside View and Update are refused, and change
// nothing.
func TestManaged(t *testing.T) {
	db := openNew(t, nil)
	var kept *cairn.Tx
	check(t, db.Update(func(tx *cairn.Tx) error {
		kept = tx
		check(t, tx.Put(b("a"), b("1")))
		expect(t, tx.Commit(), cairn.ErrTxManaged)
		expect(t, tx.Rollback(), cairn.ErrTxManaged)
		return tx.Put(b("b"), b("2"))
	}))
	wantKeys(t, db, "a", "b")
	endedTx(t, kept)
	check(t, db.View(func(tx *cairn.Tx) error {
		kept = tx
		expect(t, tx.Commit(), cairn.ErrTxManaged)
		expect(t, tx.Rollback(), cairn.ErrTxManaged)
		_, err := tx.Get(b("a"))
		return err
	}))
	endedTx(t, kept)
}

func TestFunctionErrors(t *testing.T) {
	db := openNew(t, nil)
	mine := errors.New("mine")
	for _, run := range []func(func(*cairn.Tx) error) error{db.View, db.Update} {
		calls := 0
		// Even an error that looks like a conflict is fn's own.
		for _, want := range []error{mine, cairn.ErrConflict, &cairn.ConflictError{Low: b("x")}} {
			err := run(func(tx *cairn.Tx) error {
				calls++
				tx.Put(b("a"), nil)
				return want
			})
			if err != want {
				t.Errorf("%v, want %v itself", err, want)
			}
		}
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	}
	wantKeys(t, db)
}

func TestPanicRollsBack(t *testing.T) {
	db := openNew(t, nil)
	for _, run := range []func(func(*cairn.Tx) error) error{db.View, db.Update} {
		func() {
			defer func() {
				if r := recover(); r != "mine" {
					t.Errorf("recovered %v", r)
				}
			}()
			run(func(tx *cairn.Tx) error {
				tx.Put(b("a"), nil)
				tx.Iter(cairn.Range{}).First()
				panic("mine")
			})
			t.Error("the panic did not go on")
		}()
	}
	if n := db.Stats().OpenTransactions; n != 0 {
		t.Errorf("%d transactions open", n)
	}
	wantKeys(t, db)
	put(t, db, "b", "1")
}

// TestGoexitRollsBack: runtime.Goexit, as in t.FailNow, ends a transaction too.
func TestGoexitRollsBack(t *testing.T) {
	db := openNew(t, nil)
	t.Run("inner", func(t *testing.T) {
		db.Update(func(tx *cairn.Tx) error {
			tx.Put(b("a"), nil)
			t.SkipNow()
			return nil
		})
	})
	if n := db.Stats().OpenTransactions; n != 0 {
		t.Errorf("%d transactions open", n)
	}
	wantKeys(t, db)
}

// TestUpdateGivesUp after a hundred attempts, and retries until then.
func TestUpdateGivesUp(t *testing.T) {
	for _, until := range []int{1, 2, 100, 1000} {
		db := openNew(t, &cairn.Options{Durability: cairn.Relaxed})
		put(t, db, "a", "0")
		tries := 0
		err := db.Update(func(tx *cairn.Tx) error {
			tries++
			if _, err := tx.Get(b("a")); err != nil {
				return err
			}
			if tries < until { // what fn must not do: write by the side
				put(t, db, "a", fmt.Sprint(tries))
			}
			return tx.Put(b("b"), b("done"))
		})
		if until <= 100 {
			check(t, err)
			wantValue(t, db, "b", "done")
		} else {
			var c *cairn.ConflictError
			if !errors.As(err, &c) || !errors.Is(err, cairn.ErrConflict) || string(c.Low) != "a" {
				t.Errorf("%v", err)
			}
			wantValue(t, db, "b", "")
		}
		if want := min(until, 100); tries != want {
			t.Errorf("%d attempts, want %d", tries, want)
		}
	}
}

// TestUpdateNested: an Update inside an Update is another transaction.
func TestUpdateNested(t *testing.T) {
	db := openNew(t, nil)
	check(t, db.Update(func(outer *cairn.Tx) error {
		check(t, outer.Put(b("outer"), nil))
		check(t, db.Update(func(inner *cairn.Tx) error {
			if _, err := inner.Get(b("outer")); !errors.Is(err, cairn.ErrNotFound) {
				t.Errorf("the inner one sees the outer's write: %v", err)
			}
			return inner.Put(b("inner"), nil)
		}))
		return nil
	}))
	wantKeys(t, db, "inner", "outer")
}

// TestSlicesLast: what Get returned stays as it was until the transaction ends,
// through flushes, compactions, evictions, deletes, and further writes of its own.
func TestSlicesLast(t *testing.T) {
	for _, writable := range []bool{false, true} {
		t.Run(fmt.Sprintf("writable=%v", writable), func(t *testing.T) {
			db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
			name := func(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }
			value := func(i int) []byte { return bytes.Repeat(name(i), 40) }
			for i := range 6000 { // the first in tables, the last in the log
				check(t, db.Put(name(i), value(i)))
			}
			tx, err := db.Begin(writable)
			check(t, err)
			defer tx.Rollback()
			got := map[int][]byte{}
			for i := 0; i < 6000; i += 13 {
				v, err := tx.Get(name(i))
				check(t, err)
				got[i] = v
			}
			if writable {
				ownSlices(t, tx, got, value)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range 6000 {
					db.Put(name(i), make([]byte, 300))
				}
				db.Delete(name(0))
				db.Compact(t.Context(), cairn.Range{})
				for i := range 6000 { // evicts
					db.Get(name(i))
				}
			})
			wg.Wait()
			s := db.Stats()
			if s.Flushes < 5 || s.Compactions == 0 || s.PageEvictions == 0 {
				t.Errorf("too little happened: %+v", s)
			}
			if s.PinnedBytes > s.MemoryLimit/4 {
				t.Errorf("%d bytes pinned of %d", s.PinnedBytes, s.MemoryLimit)
			}
			for i, v := range got {
				if want := value(i % 10000); !bytes.Equal(v, want) {
					t.Fatalf("the value of key %d has changed to %.40q", i, v)
				}
			}
		})
	}
}

// TestManyTransactionsReadOneMemtable: what all of them keep is one memtable, so none has to copy.
func TestManyTransactionsReadOneMemtable(t *testing.T) {
	db := openAt(t, "/db", inMemory(&cairn.Options{Memory: 64 << 20}))
	value := strings.Repeat("v", 20000)
	put(t, db, "a", value)
	for range 200 {
		tx, err := db.Begin(false)
		check(t, err)
		defer tx.Rollback()
		if got, err := tx.Get(b("a")); err != nil || string(got) != value {
			t.Fatalf("%.20q, %v", got, err)
		}
	}
	if n := db.Stats().HeapCopies; n > 0 {
		t.Errorf("%d values were copied", n)
	}
}

// ownSlices adds slices of the transaction's own writes to got, then writes until
// it has spilled more than once.
func ownSlices(t *testing.T, tx *cairn.Tx, got map[int][]byte, value func(int) []byte) {
	for i := range 1000 {
		key := fmt.Appendf(nil, "own%04d", i)
		check(t, tx.Put(key, value(i)))
		v, err := tx.Get(key)
		check(t, err)
		got[10000+i] = v
		check(t, tx.Put(key, nil))
	}
}

// TestAppendToASlice: appending to what Get returned must not reach into the store.
func TestAppendToASlice(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) { put(t, db, "a", "1"); put(t, db, "b", "2") },
		func(t *testing.T, db *cairn.DB) {
			check(t, db.Update(func(tx *cairn.Tx) error {
				check(t, tx.Put(b("own"), b("3")))
				check(t, tx.Put(b("own2"), b("4")))
				for _, k := range []string{"a", "own"} {
					v, err := tx.Get(b(k))
					check(t, err)
					_ = append(v, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
				}
				for k, v := range tx.Scan(cairn.Range{}) {
					_ = append(v, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
					_ = append(k, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
				}
				for k, want := range map[string]string{"a": "1", "b": "2", "own": "3", "own2": "4"} {
					if v, err := tx.Get(b(k)); string(v) != want || err != nil {
						t.Errorf("%s is %q, %v", k, v, err)
					}
				}
				return nil
			}))
			wantKeys(t, db, "a", "b", "own", "own2")
		})
}

// TestLargeTransaction writes far more than memory holds, reads it back while it
// is open, and commits or not.
func TestLargeTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		opts := inMemory(&cairn.Options{Memory: 1 << 20})
		db := openAt(t, "/db", opts)
		for i := range 100 {
			put(t, db, fmt.Sprintf("key%06d", i*50), "old")
		}
		tx, err := db.Begin(true)
		check(t, err)
		const n = 10_000 // 5 MB
		for i := range n {
			check(t, tx.Put(fmt.Appendf(nil, "key%06d", i*7919%n), fmt.Appendf(nil, "%0500d", i)))
		}
		check(t, tx.DeleteRange(cairn.Range{Low: b("key004000"), High: b("key005000")}))
		rows := func(tx *cairn.Tx) (n int) {
			for range tx.Keys(cairn.Range{}) {
				n++
			}
			return n
		}
		if got := rows(tx); got != n-1000 {
			t.Errorf("%d rows inside", got)
		}
		wantValue(t, db, "key000050", "old")
		want := 100
		if commit {
			check(t, tx.Commit())
			want = n - 1000
		}
		check(t, tx.Rollback())
		for range 2 {
			check(t, db.View(func(tx *cairn.Tx) error {
				if got := rows(tx); got != want {
					t.Errorf("%d rows, want %d", got, want)
				}
				return nil
			}))
			check(t, db.Close())
			db = openAt(t, "/db", opts)
		}
		_, err = db.Verify(t.Context())
		check(t, err)
	}
}
