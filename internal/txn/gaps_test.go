package txn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// in returns a key of the bucket.
func in(key string) []byte { return append(bytes.Clone(bucket), key...) }

// gapsHold looks for gaps where v's transaction stands, and returns how many there are. None may hold a key that it sees.
func (v *sortedView) gapsHold(t *testing.T, r *rand.Rand, all []string) (n int) {
	t.Helper()
	it := v.tx.NewIter(bucket, base.PrefixEnd(bucket))
	defer it.Close()
	it.First()
	for range 20 {
		key := in(all[r.IntN(len(all))])
		low, high, _, ok := (*gaps)(it).Gap(key, math.MaxInt)
		if !ok {
			continue
		}
		n++
		if bytes.Compare(key, low) < 0 || bytes.Compare(key, high) >= 0 {
			t.Fatalf("%q is not from %q to %q", key, low, high)
		}
		for k := range v.want {
			if k := in(k); bytes.Compare(low, k) <= 0 && bytes.Compare(k, high) < 0 {
				t.Fatalf("%q is there, and so is a gap from %q to %q", k, low, high)
			}
		}
	}
	return n
}

// TestGaps: where many keys in a row are deleted, and some put again, transactions of all ages see what they are
// to see.
func TestGaps(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	found, asked := 0, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 2))
		e := openEngine(t, newWatchedFS(), 1<<20)
		all := sortedKeys(r, 300+r.IntN(700))
		now := map[string]string{}
		var views []*sortedView
		begin := func(writable bool) *sortedView {
			tx, err := Begin(e, writable)
			check(t, err)
			t.Cleanup(tx.Rollback) // Close waits for it
			return &sortedView{tx, maps.Clone(now)}
		}
		// write does something to a writable transaction.
		write := func(v *sortedView, step int) {
			from := r.IntN(len(all))
			run := all[from:min(len(all), from+1+r.IntN(len(all)))]
			switch r.IntN(8) {
			case 0:
				for _, k := range run {
					v.want[k] = fmt.Sprint("value ", step)
					check(t, v.tx.Put(in(k), []byte(v.want[k])))
				}
			case 1:
				check(t, v.tx.DeleteRange(in(run[0]), in(run[len(run)-1])))
				for _, k := range run[:len(run)-1] {
					delete(v.want, k)
				}
			case 2, 3, 4:
				for _, k := range run {
					delete(v.want, k)
					check(t, v.tx.Delete(in(k)))
				}
			default:
				for range r.IntN(4) {
					k := run[r.IntN(len(run))]
					v.want[k] = fmt.Sprint("one ", step)
					check(t, v.tx.Put(in(k), []byte(v.want[k])))
				}
			}
		}
		for step := range 120 {
			switch r.IntN(12) {
			case 0:
				views = append(views, begin(false))
			case 1:
				if len(views) > 3 {
					views[0].tx.Rollback()
					views = views[1:]
				}
			case 2:
				if r.IntN(6) == 0 {
					check(t, e.Compact(context.Background(), nil, nil))
				}
			case 3:
				sortNow(e)
			default:
				v := begin(true)
				for range 1 + r.IntN(2) {
					write(v, step)
					if r.IntN(8) == 0 && v.tx.writes.Len() > 0 {
						check(t, v.tx.spill())
					}
					v.walk(t, r, all)
					asked, found = asked+20, found+v.gapsHold(t, r, all)
				}
				if r.IntN(4) == 0 {
					v.tx.Rollback()
					break
				}
				_, err := v.tx.Commit()
				check(t, err)
				now = v.want
			}
			for _, v := range append(slices.Clone(views), begin(false)) {
				v.walk(t, r, all)
				asked, found = asked+20, found+v.gapsHold(t, r, all)
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
	t.Logf("%d of %d times there was a gap", found, asked)
	if found < asked/20 {
		t.Error("too seldom")
	}
}

// TestNoGapWhereReadsFail: keys that a walk did not come to, since what was in front of them could not be read, are there
// for the next one.
func TestNoGapWhereReadsFail(t *testing.T) {
	for _, backward := range []bool{false, true} {
		tries := 20
		for ; tries > 0 && !walkFails(t, backward); tries-- { // else the store has come to rest meanwhile
		}
		if tries == 0 {
			t.Errorf("backward %v: nothing failed", backward)
		}
	}
}

// walkFails looks at a walk that fails, and at the next one, and reports whether it failed.
func walkFails(t *testing.T, backward bool) bool {
	t.Helper()
	const n, size = 20000, 100 // hundreds of rows a block: the walk is long before it fails
	fs, v := &unreadableFS{FS: newWatchedFS()}, newValues()
	e := openEngine(t, fs, 64<<20)
	check(t, Apply(e, batchOf(n, 0, size, v)))
	check(t, e.Compact(context.Background(), bucket, base.PrefixEnd(bucket)))
	check(t, e.Close())
	e = openEngine(t, fs, 64<<20)
	for i := 100; i < n-100; i++ {
		check(t, Delete(e, bucket, userKey(i)))
	}
	tx, err := Begin(e, false)
	check(t, err)
	t.Cleanup(tx.Rollback)
	it := tx.NewIter(bucket, base.PrefixEnd(bucket))
	move, from, to := it.Next, key(99), key(n-100)
	if backward {
		move, from, to = it.Prev, to, from
	}
	if !it.Seek(from) {
		t.Fatal(it.Err())
	}
	fs.fails.Store(1)
	for move() { // the block it stands in may have more rows
	}
	failed := it.Err() != nil
	fs.fails.Store(0)
	it.Close()
	it = tx.NewIter(bucket, base.PrefixEnd(bucket))
	move = it.Next
	if backward {
		move = it.Prev
	}
	if !it.Seek(from) || !move() || !bytes.Equal(it.Key(), to) {
		t.Errorf("backward %v: at %x, %v, want %x", backward, it.Key(), it.Err(), to)
	}
	tx.Rollback()
	check(t, e.Close())
	return failed
}

// TestOwnGaps: what a transaction has deleted itself is a gap for it alone, and not for an iterator that it made before.
func TestOwnGaps(t *testing.T) {
	const n = 500
	e := openEngine(t, newWatchedFS(), 1<<20)
	for i := range n {
		check(t, Put(e, bucket, userKey(i), []byte("x")))
	}
	first := func(it *Iter, want int) {
		t.Helper()
		if !it.First() || !bytes.Equal(it.Key(), key(want)) {
			t.Fatalf("first is %x, %v, want %x", it.Key(), it.Err(), key(want))
		}
	}
	for _, spilled := range []bool{false, true} {
		tx, err := Begin(e, true)
		check(t, err)
		t.Cleanup(tx.Rollback) // Close waits for it
		check(t, tx.Put(key(n), nil))
		for i := range 20 {
			check(t, tx.Delete(key(i)))
		}
		before := tx.NewIter(bucket, base.PrefixEnd(bucket))
		for i := 20; i < n-1; i++ {
			check(t, tx.Delete(key(i)))
		}
		if spilled {
			check(t, tx.spill())
			for i := range 100 {
				check(t, tx.Delete(key(i)))
			}
		}
		behind := tx.NewIter(bucket, base.PrefixEnd(bucket))
		first(behind, n-1)
		if _, _, _, ok := (*gaps)(behind).Gap(key(n/2), math.MaxInt); !ok {
			t.Fatal("no gap")
		}
		first(before, 20)
		for i := range 50 {
			if !before.Next() || !bytes.Equal(before.Key(), key(i+21)) {
				t.Fatalf("at %x, %v", before.Key(), before.Err())
			}
		}
		tx.Rollback()
		tx.Recycle()
		tx, err = Begin(e, true) // in the same memory
		check(t, err)
		t.Cleanup(tx.Rollback)
		for i := range n / 2 {
			check(t, tx.Delete(key(i)))
		}
		for i := range n { // as many as before, and more
			check(t, tx.Put(key(n+i), nil))
		}
		first(tx.NewIter(bucket, base.PrefixEnd(bucket)), n/2)
		tx.Rollback()
	}
}

// TestQueueDoesNotCrawl: who takes the first or the last of many keys, again and again, passes few of those that are
// deleted already, whatever else is done.
func TestQueueDoesNotCrawl(t *testing.T) {
	const n = 5000
	for name, c := range map[string]struct {
		last  bool
		batch int  // keys taken in one transaction
		push  int  // every third time a key comes, so far behind the one that was taken; 0: none
		first bool // another key is put before one is looked for
		long  int  // bytes that each key has besides
		lag   int  // a snapshot that is so many commits old looks, too
	}{
		"first":                {},
		"last":                 {last: true},
		"ten at once":          {batch: 10},
		"last ten at once":     {batch: 10, last: true},
		"all at once":          {batch: n},
		"last, all at once":    {batch: n, last: true},
		"one behind all":       {push: 2 * n},
		"one soon to be next":  {push: 7},
		"one in front":         {push: -101},
		"one above the last":   {last: true, push: 101},
		"written before":       {first: true},
		"last, written before": {first: true, last: true, batch: 3},
		"long keys":            {long: 3000},
		"an old snapshot":      {lag: 20},
		"old, last":            {lag: 300, last: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, newWatchedFS(), 256<<20)
			keyOf := func(i int) []byte {
				return binary.BigEndian.AppendUint64(append(bytes.Clone(bucket), make([]byte, c.long)...), uint64(i))
			}
			for i := range n {
				check(t, Put(e, bucket, keyOf(2 * i)[len(bucket):], []byte("job")))
			}
			passed, moves := 0, 0
			look := func(tx *Tx) []byte {
				it := tx.NewIter(bucket, base.PrefixEnd(bucket))
				defer it.Close()
				if ok := c.last && it.Last() || !c.last && it.First(); !ok {
					t.Fatal("nothing is left", it.Err())
				}
				passed, moves = passed+it.rows.TakePassed(), moves+1
				return bytes.Clone(it.Key())
			}
			var old []*Tx
			for moves < n/2 {
				if c.lag > 0 {
					tx, err := Begin(e, false)
					check(t, err)
					if old = append(old, tx); len(old) > c.lag {
						look(old[0])
						old[0].Rollback()
						old = old[1:]
					}
				}
				tx, err := Begin(e, true)
				check(t, err)
				if c.first {
					check(t, tx.Put(binary.BigEndian.AppendUint64(bytes.Clone(base.PrefixEnd(bucket)), 7), nil))
				}
				var key []byte
				for range min(max(c.batch, 1), n/2) {
					key = look(tx)
					check(t, tx.Delete(key))
				}
				if at := int(binary.BigEndian.Uint64(key[len(key)-8:])) + c.push; c.push != 0 && moves%3 == 0 && at >= 0 {
					check(t, tx.Put(keyOf(at), []byte("job")))
				}
				_, err = tx.Commit()
				check(t, err)
			}
			for _, tx := range old {
				tx.Rollback()
			}
			t.Logf("%d deleted keys were passed in %d moves", passed, moves)
			if passed > 50*moves {
				t.Error("it crawls")
			}
		})
	}
}

// TestQueueOfMany: of those who put keys and those who take the first one, all at once, each key is taken once, and
// all are.
func TestQueueOfMany(t *testing.T) {
	const each, putters, takers = 1500, 2, 3
	e := openEngine(t, newWatchedFS(), 8<<20)
	var left atomic.Int64
	left.Store(each * putters)
	var wait sync.WaitGroup
	var taken sync.Map
	for p := range putters {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(p), 3))
			for i := range each {
				key := fmt.Appendf(nil, "%08d/%d/%d", i+r.IntN(500), p, i)
				if err := Put(e, bucket, key, key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	take := func() error {
		tx, err := Begin(e, true)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		it := tx.NewIter(bucket, base.PrefixEnd(bucket))
		if !it.First() {
			return it.Err()
		}
		key := bytes.Clone(it.Key())
		if err := tx.Delete(key); err != nil {
			return err
		}
		if _, err := tx.Commit(); errors.Is(err, base.ErrConflict) || err != nil {
			return err
		}
		if _, again := taken.LoadOrStore(string(key), true); again {
			return fmt.Errorf("%q was taken twice", key)
		}
		left.Add(-1)
		return nil
	}
	for range takers {
		wait.Go(func() {
			for idle := 0; left.Load() > 0; idle++ {
				before := left.Load()
				if err := take(); err != nil && !errors.Is(err, base.ErrConflict) {
					t.Error(err)
					return
				}
				if left.Load() != before {
					idle = 0
				}
				if idle > 1_000_000 {
					t.Errorf("%d keys were never seen", left.Load())
					return
				}
			}
		})
	}
	wait.Wait()
	it, err := Begin(e, false)
	check(t, err)
	defer it.Rollback()
	if rows := it.NewIter(bucket, base.PrefixEnd(bucket)); rows.First() {
		t.Errorf("%q is left", rows.Key())
	}
}

// TestOldSnapshotLeavesOutNewerRuns: an old snapshot's iterator is not over tables in which nothing is as old as that, as
// those of a large transaction, and sees what it saw.
func TestOldSnapshotLeavesOutNewerRuns(t *testing.T) {
	const n = 100
	e := openEngine(t, newWatchedFS(), 64<<20)
	check(t, Put(e, bucket, userKey(n), nil))
	begin := func(writable bool) *Tx {
		tx, err := Begin(e, writable)
		check(t, err)
		t.Cleanup(tx.Rollback) // Close waits for it
		return tx
	}
	rows := func(tx *Tx) (rows, sources int) {
		it := tx.NewIter(bucket, base.PrefixEnd(bucket))
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			rows++
		}
		check(t, it.Err())
		return rows, len(it.sources)
	}
	old := begin(false)
	_, before := rows(old)
	large := begin(true)
	for i := range n {
		check(t, large.Put(key(i), nil))
	}
	check(t, large.DeleteRange(key(n), key(n+1)))
	check(t, large.spill())
	_, err := large.Commit()
	check(t, err)
	if got, sources := rows(old); got != 1 || sources > before {
		t.Errorf("the old snapshot has %d rows in %d sources, want 1 in %d", got, sources, before)
	}
	if got, _ := rows(begin(false)); got != n {
		t.Errorf("a new snapshot has %d rows, want %d", got, n)
	}
}

// TestTwoAgesDoNotCrawl: iterators of two ages, of two transactions or of one that has deleted something itself, take the
// first of many keys in turn and pass what is deleted in front of it once each.
func TestTwoAgesDoNotCrawl(t *testing.T) {
	const n, turns = 3000, 20
	for _, own := range []bool{false, true} {
		e := openEngine(t, newWatchedFS(), 256<<20)
		begin := func() *Tx {
			tx, err := Begin(e, own)
			check(t, err)
			t.Cleanup(tx.Rollback) // Close waits for it
			return tx
		}
		for i := range n + 1 {
			check(t, Put(e, bucket, userKey(i), nil))
		}
		old := begin()
		young := old
		remove, put := func(i int) { check(t, Delete(e, bucket, userKey(i))) }, func(i int) { check(t, Put(e, bucket, userKey(i), nil)) }
		if own {
			remove, put = func(i int) { check(t, old.Delete(key(i))) }, func(i int) { check(t, old.Put(key(i), nil)) }
		}
		for i := range n {
			remove(i)
		}
		if !own {
			old = begin()
		}
		its := []*Iter{old.NewIter(bucket, base.PrefixEnd(bucket))}
		its[0].First()
		for i := range 3 * n { // more than is looked at for a gap
			put(n + 1 + i)
		}
		if !own {
			young = begin()
		}
		its = append(its, young.NewIter(bucket, base.PrefixEnd(bucket)))
		for range turns {
			for _, it := range its {
				if !it.First() || !bytes.Equal(it.Key(), key(n)) {
					t.Fatalf("first is %x, %v", it.Key(), it.Err())
				}
			}
		}
		passed := its[0].rows.TakePassed() + its[1].rows.TakePassed()
		if t.Logf("own %v: %d keys passed", own, passed); passed > 4*n {
			t.Error("they crawl")
		}
	}
}
