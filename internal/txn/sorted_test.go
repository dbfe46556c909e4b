package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/sorted"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// sortNow sorts the rows that there are, whatever has been walked.
func sortNow(e *engine.Engine) { e.SortRows(func() error { return nil }) }

// sortedKeys are keys of every kind: some share eight bytes and more, some are the beginning
// of others, some end in zeros.
func sortedKeys(r *rand.Rand, n int) []string {
	prefix := []string{"", "same", "a prefix of all keys/"}[r.IntN(3)]
	keys := map[string]bool{}
	for len(keys) < n {
		k := prefix
		switch r.IntN(4) {
		case 0:
			k += fmt.Sprintf("%08d", r.IntN(10*n))
		case 1:
			k += "in common for long/" + fmt.Sprint(r.IntN(10*n))
		case 2:
			k += string(bytes.Repeat([]byte{0}, r.IntN(12)))
		default:
			k += fmt.Sprint(r.IntN(10 * n))
		}
		keys[k] = true
	}
	if r.IntN(2) == 0 {
		keys[prefix+"zz"] = true // the last one, and short
	}
	if r.IntN(2) == 0 { // keys that heads tell apart
		clear(keys)
		for len(keys) < n {
			keys[prefix+fmt.Sprintf("%06d", r.IntN(10*n))] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// sortedView is a transaction and what it must see.
type sortedView struct {
	tx   *Tx
	want map[string]string
}

// walk moves an iterator about and compares. It reports whether that stood on sorted rows.
func (v *sortedView) walk(t *testing.T, r *rand.Rand, all []string) bool {
	t.Helper()
	keys := slices.Sorted(maps.Keys(v.want))
	low, high := bytes.Clone(bucket), base.PrefixEnd(bucket)
	if r.IntN(3) == 0 {
		low = append(low, all[r.IntN(len(all))]...)
	}
	if r.IntN(3) == 0 {
		high = append(bytes.Clone(bucket), all[r.IntN(len(all))]...)
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { k = string(bucket) + k; return k < string(low) || k >= string(high) })
	it := v.tx.NewIter(low, high)
	defer it.Recycle() // the next one begins in its memory
	defer it.Close()
	at, history := -1, []string(nil)
	expect := func(op string, ok bool, i int) {
		t.Helper()
		if history = append(history, op); i < 0 || i >= len(keys) {
			i = -1
		}
		if at = i; ok != (i >= 0) || it.Err() != nil {
			t.Fatalf("%q: %v, %v", history, ok, it.Err())
		}
		if !ok {
			return
		}
		if k := string(it.Key()[len(bucket):]); k != keys[i] {
			t.Fatalf("%q: at %q, want %q", history, k, keys[i])
		}
		if r.IntN(2) == 0 {
			if value, err := it.Value(); err != nil || string(value) != v.want[keys[i]] {
				t.Fatalf("%q: %q is %q, %v, want %q", history, keys[i], value, err, v.want[keys[i]])
			}
		}
	}
	used := false
	for range 30 {
		k := all[r.IntN(len(all))]
		if r.IntN(3) == 0 {
			k += "\x00"
		}
		n, _ := slices.BinarySearch(keys, k)
		internal := append(bytes.Clone(bucket), k...)
		switch r.IntN(8) {
		case 0:
			expect("First", it.First(), 0)
		case 1:
			expect("Last", it.Last(), len(keys)-1)
		case 2, 3, 4:
			expect(fmt.Sprintf("Seek %q", k), it.Seek(internal), n)
		default:
			expect(fmt.Sprintf("SeekLT %q", k), it.SeekLT(internal), n-1)
		}
		for back := r.IntN(3) == 0; at >= 0 && r.IntN(20) > 0; {
			if back {
				expect("Prev", it.Prev(), at-1)
			} else {
				expect("Next", it.Next(), at+1)
			}
			if r.IntN(10) == 0 {
				back = !back
			}
		}
		used = used || it.sorted.Rows != nil
	}
	return used
}

// TestSortedRows: whatever is committed, made a table or merged after rows were sorted, and
// before, transactions of all ages see what they are to see.
func TestSortedRows(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	used, walks := 0, 0
	padding := strings.Repeat("x", 2000) // so that there are tables
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		e := openEngine(t, newWatchedFS(), 1<<20)
		all := sortedKeys(r, 40+r.IntN(400))
		now := map[string]string{}
		var views []*sortedView
		begin := func(writable bool) *sortedView {
			tx, err := Begin(e, writable)
			check(t, err)
			t.Cleanup(tx.Rollback) // Close waits for it
			return &sortedView{tx, maps.Clone(now)}
		}
		for step := range 120 {
			switch r.IntN(12) {
			case 0, 1, 2, 3:
				for range r.IntN(40) {
					k := all[r.IntN(len(all))]
					if r.IntN(3) == 0 {
						delete(now, k)
						check(t, Delete(e, bucket, []byte(k)))
						continue
					}
					now[k] = fmt.Sprint("value ", step, " ", r.IntN(1000)) + padding
					check(t, Put(e, bucket, []byte(k), []byte(now[k])))
				}
			case 4:
				views = append(views, begin(false))
			case 5, 6:
				if r.IntN(4) == 0 {
					low := append(bytes.Clone(bucket), all[r.IntN(len(all))]...)
					check(t, e.Compact(context.Background(), low, append(low, 0)))
				}
			case 7, 8:
				sortNow(e)
			case 9: // with writes of its own
				v := begin(true)
				for range r.IntN(20) {
					k := all[r.IntN(len(all))]
					if r.IntN(3) == 0 {
						delete(v.want, k)
						check(t, v.tx.Delete(append(bytes.Clone(bucket), k...)))
						continue
					}
					v.want[k] = fmt.Sprint("own ", step)
					check(t, v.tx.Put(append(bytes.Clone(bucket), k...), []byte(v.want[k])))
				}
				if r.IntN(2) == 0 {
					sortNow(e)
				}
				v.walk(t, r, all)
				if r.IntN(2) == 0 {
					_, err := v.tx.Commit()
					check(t, err)
					now = v.want
				} else {
					v.tx.Rollback()
				}
			case 10:
				if seed%4 == 0 && r.IntN(4) == 0 {
					low, high := all[r.IntN(len(all))], all[r.IntN(len(all))]
					v := begin(true)
					check(t, v.tx.DeleteRange(append(bytes.Clone(bucket), low...), append(bytes.Clone(bucket), high...)))
					_, err := v.tx.Commit()
					check(t, err)
					maps.DeleteFunc(now, func(k, _ string) bool { return k >= low && k < high })
				}
			default:
				if len(views) > 3 {
					views[0].tx.Rollback()
					views = views[1:]
				}
			}
			for _, v := range append(views, begin(false)) {
				if walks++; v.walk(t, r, all) {
					used++
				}
				if !slices.Contains(views, v) {
					v.tx.Rollback()
				}
			}
		}
		for _, v := range views {
			v.tx.Rollback()
		}
		check(t, e.Close())
	}
	t.Logf("%d of %d walks stood on sorted rows", used, walks)
	if used < walks/10 {
		t.Error("too few")
	}
}

// TestSortedRowsAreMade: who scans a store that is not merged, and is written to, has its rows
// sorted before long.
func TestSortedRowsAreMade(t *testing.T) {
	const n, size = 4000, 100
	v := newValues()
	e := openEngine(t, newWatchedFS(), 64<<20)
	check(t, Apply(e, batchOf(n, 0, size, v)))
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	walked := 0
	for walk := 0; ; walk++ {
		for i := range 20 { // it does not come to rest
			check(t, Put(e, bucket, userKey((walk+i)*31%n), v.of(i, size)))
		}
		tx, err := Begin(e, false)
		check(t, err)
		it := tx.NewIter(bucket, base.PrefixEnd(bucket))
		for ok := it.First(); ok; ok = it.Next() {
			walked++
		}
		check(t, it.Err())
		it.First()
		sorted := it.sorted.Rows != nil
		it.Close()
		tx.Rollback()
		if sorted {
			break
		}
		if walk == 1000 {
			t.Fatalf("%d rows walked, none sorted", walked)
		}
	}
	t.Logf("%d rows walked of %d", walked, n)
	if walked < n/2 {
		t.Errorf("sorted after %d rows", walked)
	}
}

// TestSortedRowsOfManyTables: a level is many tables, one after the other.
func TestSortedRowsOfManyTables(t *testing.T) {
	const n, size = 40_000, 1000
	v := newValues()
	e := openEngine(t, newWatchedFS(), 64<<20)
	check(t, Apply(e, batchOf(n, 0, size, v)))
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	version := map[int]int{}
	for i := 0; i < n; i += 40 {
		version[i] = 1
		check(t, Put(e, bucket, userKey(i), v.of(i+1, size)))
	}
	tables := 0
	for _, r := range e.State().Runs {
		tables = max(tables, len(r.Tables))
	}
	if tables < 2 {
		t.Fatalf("%d tables", tables)
	}
	var it *Iter
	for tries := 0; it == nil || it.sorted.Rows == nil; tries++ { // the store may come to rest meanwhile
		if tries == 100 {
			t.Fatal("never on sorted rows")
		}
		sortNow(e)
		for i := 0; i < n; i += 400 {
			version[i] = 2 + tries
			check(t, Put(e, bucket, userKey(i), v.of(i+version[i], size)))
		}
		tx, err := Begin(e, false)
		check(t, err)
		t.Cleanup(tx.Rollback) // Close waits for it
		it = tx.NewIter(bucket, base.PrefixEnd(bucket))
		defer it.Close()
		it.First()
	}
	row := func(i int) {
		t.Helper()
		if value, err := it.Value(); err != nil || !bytes.Equal(it.Key(), key(i)) || !bytes.Equal(value, v.of(i+version[i], size)) {
			t.Fatalf("row %d is %x with %.20x, %v", i, it.Key(), value, err)
		}
	}
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		row(i)
		i++
	}
	if i != n {
		t.Fatalf("%d rows, %v", i, it.Err())
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		i--
		row(i)
	}
	if i != 0 {
		t.Fatalf("%d rows are left, %v", i, it.Err())
	}
}

// TestSortedRowsAtOnce: while some commit, and the store makes tables and merges them, rows
// are sorted again and again, and whoever walks sees one moment.
func TestSortedRowsAtOnce(t *testing.T) {
	const keys, writers = 400, 2
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	e := openEngine(t, newWatchedFS(), 16<<20)
	var all sync.WaitGroup
	var done atomic.Bool
	put := func(round int) error { // all keys have one value
		tx, err := Begin(e, true)
		if err != nil {
			return err
		}
		for i := range keys {
			if i%7 == round%7 { // but some, which are not there
				err = tx.Delete(key(i))
			} else {
				err = tx.Put(key(i), fmt.Append(nil, round))
			}
			if err != nil {
				return err
			}
		}
		_, err = tx.Commit()
		return err
	}
	check(t, put(0))
	all.Go(func() {
		defer done.Store(true)
		for round := range rounds {
			if err := put(round); err != nil {
				t.Error(err)
				return
			}
			if round%50 == 0 {
				if err := e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	all.Go(func() {
		for !done.Load() {
			sortNow(e)
		}
	})
	var used atomic.Int64
	for range writers {
		all.Go(func() {
			for !done.Load() {
				tx, err := Begin(e, false)
				if err != nil {
					t.Error(err)
					return
				}
				it := tx.NewIter(bucket, base.PrefixEnd(bucket))
				var first []byte
				n := 0
				for ok := it.First(); ok; ok = it.Next() {
					value, err := it.Value()
					if first == nil {
						first = bytes.Clone(value)
					}
					if err != nil || !bytes.Equal(value, first) {
						t.Errorf("row %d is %q, %v, the first %q", n, value, err, first)
						done.Store(true)
						break
					}
					n++
				}
				if it.sorted.Rows != nil {
					used.Add(1)
				}
				if least := keys - keys/7 - 1; n < least && !t.Failed() {
					t.Errorf("%d rows", n)
					done.Store(true)
				}
				it.Close()
				tx.Rollback()
			}
		})
	}
	all.Wait()
	t.Logf("%d walks stood on sorted rows", used.Load())
	if used.Load() == 0 {
		t.Error("none")
	}
}

// TestSortedRowsOfANewerState: what is in tables and newer than the snapshot nobody would look
// for, so there are no rows of such a State.
func TestSortedRowsOfANewerState(t *testing.T) {
	e := openEngine(t, newWatchedFS(), 64<<20)
	check(t, Put(e, bucket, userKey(1), []byte("old")))
	snapshot := e.Visible()
	r := e.Reader()
	defer e.Done(r)
	build := func() *sorted.Rows {
		rs := e.Acquire(r.Slot)
		defer rs.Unref()
		b := sorted.Builder{Order: &e.Order, Slot: r.Slot, Most: 100, Stop: func() error { return nil }}
		return b.Build(rs, snapshot)
	}
	if build() == nil {
		t.Error("no rows of the memtable")
	}
	tx, err := Begin(e, false) // both versions stay
	check(t, err)
	t.Cleanup(tx.Rollback)
	check(t, Put(e, bucket, userKey(1), []byte("new")))
	if build() == nil {
		t.Error("no rows of the memtable, though there are newer ones")
	}
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	if build() != nil {
		t.Error("rows of tables that are newer")
	}
	if snapshot = e.Visible(); build() == nil {
		t.Error("no rows of the table")
	}
}

// TestSortedRowsStop: whoever builds asks whether to go on, also where all rows are deleted, and
// there are none to be noted. The store may come to rest meanwhile: the State is one, and a
// transaction keeps what is deleted.
func TestSortedRowsStop(t *testing.T) {
	const n = 10_000
	e := openEngine(t, newWatchedFS(), 64<<20)
	check(t, Apply(e, batchOf(n, 0, 100, newValues())))
	tx, err := Begin(e, false)
	check(t, err)
	t.Cleanup(tx.Rollback)
	for i := range n {
		check(t, Delete(e, bucket, userKey(i)))
	}
	r := e.Reader()
	defer e.Done(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	build := func(stop func() error) *sorted.Rows {
		b := sorted.Builder{Order: &e.Order, Slot: r.Slot, Most: n, Stop: stop}
		return b.Build(rs, e.Visible())
	}
	asked := 0
	rows := build(func() error { asked++; return nil })
	if rows == nil || rows.Len() != 0 || asked < 5 {
		t.Errorf("%d rows, asked %d times", rows.Len(), asked)
	}
	if build(func() error { return errors.New("stop") }) != nil {
		t.Error("rows of what was not finished")
	}
}

// TestStrideFailsBeforeANewState: what cannot be read ends a walk with the error, though the
// store has moved on meanwhile; it does not begin again.
func TestStrideFailsBeforeANewState(t *testing.T) {
	const n, size = 4000, 1000
	v := newValues()
	for _, times := range []int64{1, 1 << 30} { // a passing error, and one that stays
		fs := &unreadableFS{FS: newWatchedFS()}
		e := openEngine(t, fs, 64<<20)
		check(t, Apply(e, batchOf(n, 0, size, v)))
		check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
		check(t, e.Close())
		e = openEngine(t, fs, 64<<20)
		check(t, Put(e, bucket, userKey(n-1), v.of(7, size)))
		sortNow(e)
		check(t, Put(e, bucket, userKey(n-1), v.of(8, size)))
		tx, err := Begin(e, false)
		check(t, err)
		t.Cleanup(tx.Rollback)
		it := tx.NewIter(bucket, base.PrefixEnd(bucket))
		if !it.First() || !it.Next() || it.sorted.Rows == nil {
			t.Fatalf("not on sorted rows, %v", it.Err())
		}
		rs := e.State()
		for i := 0; e.State() == rs; i++ {
			check(t, Put(e, bucket, userKey(n+i), v.of(i, 50000)))
		}
		fs.fails.Store(times)
		last, rows := bytes.Clone(it.Key()), 2
		for ; it.Next(); rows++ {
			if bytes.Compare(it.Key(), last) <= 0 {
				t.Fatalf("went back from %x to %x", last, it.Key())
			}
			last = append(last[:0], it.Key()...)
		}
		if passed := times == 1 && rows == n; it.Err() == nil && !passed { // a helper may have met the passing one
			t.Errorf("%d rows of %d, ended at %x, without an error", rows, n, last)
		}
		fs.fails.Store(0)
		tx.Rollback()
		check(t, e.Close())
	}
}

// unreadableFS fails that many reads of tables.
type unreadableFS struct {
	vfs.FS
	fails atomic.Int64
}

type unreadableFile struct {
	vfs.File
	fs *unreadableFS
}

func (f *unreadableFS) file(x vfs.File, name string, err error) (vfs.File, error) {
	if err != nil || !isTable(name) {
		return x, err
	}
	return &unreadableFile{x, f}, nil
}

func (f *unreadableFS) Open(name string) (vfs.File, error) {
	x, err := f.FS.Open(name)
	return f.file(x, name, err)
}

func (f *unreadableFS) Create(name string) (vfs.File, error) {
	x, err := f.FS.Create(name)
	return f.file(x, name, err)
}

func (f *unreadableFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fs.fails.Add(-1) >= 0 {
		return 0, errors.New("unreadable")
	}
	return f.File.ReadAt(p, off)
}

// TestSortedRowsPinLittle: an iterator keeps as many blocks in memory as there are runs, not of
// every table it has been in.
func TestSortedRowsPinLittle(t *testing.T) {
	const n, size, memory = 3000, 30_000, 4 << 20
	v := newValues()
	e := openEngine(t, newWatchedFS(), memory)
	for i := range n {
		check(t, Put(e, bucket, userKey(i), v.of(i, size)))
	}
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	var it *Iter
	for tries := 0; it == nil || it.sorted.Rows == nil; tries++ {
		if tries == 100 {
			t.Fatal("never on sorted rows")
		}
		check(t, Put(e, bucket, userKey(n), v.of(1, 10)))
		sortNow(e)
		tx, err := Begin(e, false)
		check(t, err)
		t.Cleanup(tx.Rollback)
		it = tx.NewIter(bucket, base.PrefixEnd(bucket))
		defer it.Close()
		it.First()
	}
	tables, pinned := len(it.tx.e.State().Handles), int64(0)
	for ok := it.First(); ok; ok = it.Next() {
		_, err := it.Value()
		check(t, err)
		pinned = max(pinned, int64(e.Stats().PinnedBytes))
	}
	check(t, it.Err())
	t.Logf("%d KB of %d tables", pinned>>10, tables)
	if tables < 5 || pinned > 100<<10 {
		t.Errorf("%d tables, %d bytes are pinned", tables, pinned)
	}
}

// TestSortedRowsOfUnreadableTables: rows are sorted of all that there is, or not at all, whichever read fails. What
// all keys begin with is wrong where one of the tables was left out.
func TestSortedRowsOfUnreadableTables(t *testing.T) {
	disk := memfs.New()
	disk.StopJournal()
	faults := faultfs.New(disk)
	e := openEngine(t, faults, 64<<20)
	value := bytes.Repeat([]byte{'v'}, 100)
	put := func(key string, n int) {
		for i := range n {
			check(t, Put(e, bucket, fmt.Appendf(nil, key, i), value))
		}
	}
	put("k/what many begin with/%04d", 300)
	put("b%d", 300)
	check(t, e.Close())
	e = openEngine(t, faults, 64<<20)
	check(t, Put(e, bucket, []byte("k/what many begin with/0007"), value))
	for n, failed := int64(1), true; failed; n++ {
		rule := faults.Add(faultfs.Rule{Kinds: faultfs.Read, Name: "*.sst", At: n, Do: faultfs.Fail(syscall.EIO)})
		sortNow(e)
		failed = rule.Fired() > 0
		faults.Heal()
		tx, err := Begin(e, false)
		check(t, err)
		it := tx.NewIter(bucket, base.PrefixEnd(bucket))
		if !it.Seek([]byte("\x00b100")) || string(it.Key()) != "\x00b100" {
			t.Errorf("read %d failed: %q, %v", n, it.Key(), it.Err())
		}
		rows := 0
		for ok := it.First(); ok; ok = it.Next() {
			rows++
		}
		if rows != 600 || it.Err() != nil {
			t.Errorf("read %d failed: %d rows, %v", n, rows, it.Err())
		}
		it.Close()
		tx.Rollback()
		if n == 1 && !failed {
			t.Fatal("nothing is read of tables")
		}
	}
}
