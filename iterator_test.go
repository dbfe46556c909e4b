package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// letters puts a, c, e, ... y with themselves as values.
func letters(t *testing.T, db *cairn.DB) {
	for c := byte('a'); c <= 'y'; c += 2 {
		check(t, db.Put([]byte{c}, []byte{c}))
	}
	check(t, db.Put(b("zz"), b("outside")))
	check(t, db.Put(b("0"), b("outside")))
}

func TestIterator(t *testing.T) {
	everywhere(t, letters, func(t *testing.T, db *cairn.DB) {
		check(t, db.View(func(tx *cairn.Tx) error {
			it := tx.Iter(cairn.Range{Low: b("c"), High: b("u")}) // c e ... s
			at := func(ok bool, want string) {
				t.Helper()
				if ok != (want != "") || it.Valid() != ok || string(it.Key()) != want || it.Err() != nil {
					t.Fatalf("%v on %q, %v; want %q", ok, it.Key(), it.Err(), want)
				}
				if v, err := it.Value(); ok && (string(v) != want || err != nil) {
					t.Fatalf("value %q, %v; want %q", v, err, want)
				}
			}
			at(false, "")
			at(it.Next(), "") // from nowhere it leads nowhere
			at(it.Prev(), "")
			at(it.First(), "c")
			at(it.Next(), "e")
			at(it.Prev(), "c")
			at(it.Prev(), "")
			at(it.Next(), "") // stays off
			at(it.Last(), "s")
			at(it.Prev(), "q")
			at(it.Next(), "s")
			at(it.Next(), "")
			at(it.Prev(), "")
			at(it.Seek(b("f")), "g")
			at(it.Seek(b("g")), "g")
			at(it.Prev(), "e")
			at(it.SeekLT(b("g")), "e")
			at(it.SeekLT(b("f")), "e")
			at(it.Next(), "g")
			at(it.Seek(b("")), "c") // clamped to the bounds
			at(it.Seek(nil), "c")
			at(it.Seek(b("a")), "c")
			at(it.SeekLT(b("zzz")), "s")
			at(it.Seek(b("t")), "")
			at(it.Seek(b("u")), "")
			at(it.Seek(b("zzz")), "")
			at(it.SeekLT(b("c")), "")
			at(it.SeekLT(b("a")), "")
			at(it.SeekLT(nil), "")
			at(it.SeekLT(b("cc")), "c")
			check(t, it.Close())
			endedIterator(t, it)
			return nil
		}))
	})
}

func TestRanges(t *testing.T) {
	top := string([]byte{0xFF, 0xFF})
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		for _, k := range []string{"a", "aa", "ab", "b", "\xff", top, top + "\x00", "\x00"} {
			put(t, db, k, "v")
		}
	}, func(t *testing.T, db *cairn.DB) {
		all := []string{"\x00", "a", "aa", "ab", "b", "\xff", top, top + "\x00"}
		check(t, db.View(func(tx *cairn.Tx) error {
			for _, c := range []struct {
				r    cairn.Range
				want []string
			}{
				{cairn.Range{}, all},
				{cairn.Range{Low: []byte{}}, all},
				{cairn.Range{High: []byte{}}, nil},
				{cairn.Range{Low: b("a")}, all[1:]},
				{cairn.Range{High: b("a")}, all[:1]},
				{cairn.Range{Low: b("a"), High: b("b")}, all[1:4]},
				{cairn.Range{Low: b("a"), High: b("a\x00")}, all[1:2]},
				{cairn.Range{Low: b("b"), High: b("a")}, nil},
				{cairn.Range{Low: b("a"), High: b("a")}, nil},
				{cairn.Prefix(b("a")), all[1:4]},
				{cairn.Prefix(b("ab")), all[3:4]},
				{cairn.Prefix(b("c")), nil},
				{cairn.Prefix(nil), all},
				{cairn.Prefix(b("\xff")), all[5:]},
				{cairn.Prefix(b(top)), all[6:]},
			} {
				if got := keysOf(tx, c.r); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Errorf("%q: %q, want %q", c.r, got, c.want)
				}
				n := len(c.want)
				for k := range tx.ScanBackward(c.r) {
					if n--; n < 0 || string(k) != c.want[n] {
						t.Errorf("%q backward: %q at %d", c.r, k, n)
						break
					}
				}
				if n > 0 {
					t.Errorf("%q backward: %d rows are missing", c.r, n)
				}
			}
			return nil
		}))
	})
}

// TestIteratorIsASnapshot: it shows the transaction's own writes as of its making,
// whatever is written later, even if that spills.
func TestIteratorIsASnapshot(t *testing.T) {
	for _, later := range []int{3, 3000} { // writes; the second spills
		t.Run(fmt.Sprint(later), func(t *testing.T) {
			db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
			m := newModel()
			for i := range 100 {
				put(t, db, fmt.Sprintf("k%03d", i), "committed")
				m.put(fmt.Sprintf("k%03d", i), "committed")
			}
			tx, err := db.Begin(true)
			check(t, err)
			defer tx.Rollback()
			check(t, tx.Put(b("k010"), b("own")))
			m.put("k010", "own")
			check(t, tx.DeleteRange(cairn.Range{Low: b("k020"), High: b("k030")}))
			m.deleteRange("k020", "k030")
			check(t, tx.Put(b("k025"), b("own, over the deleted")))
			m.put("k025", "own, over the deleted")
			old := tx.Iter(cairn.Range{})
			var walked []string
			step := func(ok bool) bool {
				if ok {
					v, err := old.Value()
					check(t, err)
					walked = append(walked, string(old.Key())+"="+string(v))
				}
				return ok
			}
			ok := step(old.First()) // already positioned when the writes come
			for i := range later {
				check(t, tx.Put(fmt.Appendf(nil, "k%03d", i%120), fmt.Appendf(nil, "%0200d", i)))
			}
			check(t, tx.Delete(b("k040")))
			check(t, tx.DeleteRange(cairn.Range{Low: b("k050"), High: b("k060")}))
			put(t, db, "k041", "committed later")
			for range 2 {
				for ; ok; ok = step(old.Next()) {
				}
				var want []string
				for _, k := range m.keys {
					want = append(want, k+"="+m.values[k])
				}
				if fmt.Sprint(walked) != fmt.Sprint(want) {
					t.Fatalf("walked %q\nwant %q", walked, want)
				}
				check(t, old.Err())
				check(t, db.Compact(t.Context(), cairn.Range{}))
				walked = nil
				ok = step(old.First()) // a second time, on another state of the store
			}
			check(t, old.Close())
		})
	}
}

// TestIteratorBesideFlushes: an iterator that stands somewhere while the store
// moves on neither loses nor repeats a row, and what it handed out stays until the
// next step.
func TestIteratorBesideFlushes(t *testing.T) {
	db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
	value := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%05d", i), 50) }
	for i := range 3000 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), value(i)))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-stop:
				return
			default:
				db.Put(fmt.Appendf(nil, "key%05d", r.IntN(3500)), make([]byte, 250))
			}
		}
	})
	check(t, db.View(func(tx *cairn.Tx) error {
		before := db.Stats().Flushes
		i, round := 0, 0
		it := tx.Iter(cairn.Range{})
		// Replaced values are of zeros, so take the first pass as the truth.
		first := map[string]string{}
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.Value()
			check(t, err)
			first[string(it.Key())] = string(v)
			i++
		}
		for db.Stats().Flushes < before+20 && round < 2000 {
			round++
			n := 0
			for ok := it.Last(); ok; ok = it.Prev() {
				key := it.Key()
				kept := string(key)
				v, err := it.Value()
				check(t, err)
				if n%500 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				if string(key) != kept || string(v) != first[kept] {
					t.Fatalf("%q changed under the iterator", kept)
				}
				n++
			}
			check(t, it.Err())
			if n != i {
				t.Fatalf("%d rows, then %d", i, n)
			}
		}
		return it.Close()
	}))
}

// TestManyIterators: an idle iterator holds next to nothing.
func TestManyIterators(t *testing.T) {
	db := openNew(t, nil)
	letters(t, db)
	check(t, db.View(func(tx *cairn.Tx) error {
		var all []*cairn.Iterator
		for range 10_000 {
			all = append(all, tx.Iter(cairn.Prefix(b("c"))))
		}
		for _, it := range all {
			if !it.First() || it.Next() {
				t.Fatal("not one row")
			}
		}
		return nil // the transaction's end closes them
	}))
	if n := db.Stats().PinnedBytes; n != 0 {
		t.Errorf("%d bytes pinned", n)
	}
}

// TestKeysTouchNoValues counts what is read from table files.
func TestKeysTouchNoValues(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	f := faultfs.New(m)
	opts := &cairn.Options{FS: f, Compression: cairn.None, Durability: cairn.Relaxed}
	db := openAt(t, "/db", opts)
	const n, size = 2000, 2000
	for i := range n {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), bytes.Repeat([]byte{byte(i)}, size)))
	}
	read := func(walk func(tx *cairn.Tx) int) (bytes int64) {
		check(t, db.Close())
		db = openAt(t, "/db", opts)
		f.StartTrace()
		check(t, db.View(func(tx *cairn.Tx) error {
			if got := walk(tx); got != n {
				t.Errorf("%d rows", got)
			}
			return nil
		}))
		for _, e := range f.Trace(faultfs.Read) {
			bytes += e.Length
		}
		return bytes
	}
	keys := read(func(tx *cairn.Tx) (n int) {
		for range tx.Keys(cairn.Range{}) {
			n++
		}
		return n
	})
	iterator := read(func(tx *cairn.Tx) (n int) {
		it := tx.Iter(cairn.Range{})
		for ok := it.Last(); ok; ok = it.Prev() {
			n++
		}
		return n
	})
	pairs := read(func(tx *cairn.Tx) (n int) {
		for range tx.Scan(cairn.Range{}) {
			n++
		}
		return n
	})
	t.Logf("keys read %d bytes, an iterator backward %d, pairs %d", keys, iterator, pairs)
	if pairs < n*size {
		t.Errorf("pairs read %d bytes of %d; the test counts wrong", pairs, n*size)
	}
	if limit := int64(n * size / 20); keys > limit || iterator > limit {
		t.Errorf("keys read %d bytes, an iterator %d: values among them", keys, iterator)
	}
}

// TestScanErrorSticks: a scan that fails says so by Tx.Err, View returns it, and
// Update does not commit.
func TestScanErrorSticks(t *testing.T) {
	errDisk := errors.New("the disk is bad")
	f := faultfs.New(memfs.New())
	opts := &cairn.Options{FS: f, Memory: 1 << 20, Durability: cairn.Relaxed}
	db := openAt(t, "/db", opts)
	for i := range 5000 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), bytes.Repeat([]byte{byte(i)}, 300)))
	}
	check(t, db.Close())
	for name, scan := range map[string]func(tx *cairn.Tx) int{
		"Keys": func(tx *cairn.Tx) int { return len(keysOf(tx, cairn.Range{})) },
		"Scan": func(tx *cairn.Tx) (n int) {
			for range tx.Scan(cairn.Range{}) {
				n++
			}
			return n
		},
		"ScanBackward": func(tx *cairn.Tx) (n int) {
			for range tx.ScanBackward(cairn.Range{}) {
				n++
			}
			return n
		},
	} {
		db := openAt(t, "/db", opts)
		// At first reading goes well for a while; then the disk is bad.
		f.Add(faultfs.Rule{Kinds: faultfs.Read, Name: "*.sst", At: 5, Sticky: true, Do: faultfs.Fail(errDisk)})
		var inside error
		err := db.View(func(tx *cairn.Tx) error {
			if n := scan(tx); n >= 5000 {
				t.Errorf("%s: %d rows", name, n)
			}
			inside = tx.Err()
			return nil
		})
		expect(t, inside, errDisk)
		expect(t, err, errDisk)
		err = db.Update(func(tx *cairn.Tx) error {
			scan(tx)
			return tx.Put(b("x"), nil)
		})
		expect(t, err, errDisk)
		tx, err := db.Begin(true)
		check(t, err)
		scan(tx)
		check(t, tx.Put(b("x"), nil))
		expect(t, tx.Commit(), errDisk)
		f.Heal()
		if ok, err := db.Has(b("x")); ok || err != nil {
			t.Errorf("%s: committed in spite of an error: %v", name, err)
		}
		check(t, db.View(func(tx *cairn.Tx) error { // nothing is poisoned
			if n := scan(tx); n != 5000 {
				t.Errorf("%s: %d rows after the disk has healed", name, n)
			}
			return nil
		}))
		check(t, db.Close())
	}
}
