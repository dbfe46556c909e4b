package cairn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// followed skips a test where a store cannot be read while it is written.
func followed(t testing.TB, dir string) {
	t.Helper()
	name := filepath.Join(dir, "LOCK")
	l, err := vfs.OS().Lock(name, false)
	check(t, err)
	check(t, l.Close())
	err = errors.ErrUnsupported
	if w, ok := vfs.OS().(vfs.Watcher); ok {
		var watch vfs.Watch
		if watch, err = w.Watch(name); err == nil {
			check(t, watch.Close())
		}
	}
	if errors.Is(err, errors.ErrUnsupported) && runtime.GOOS != "linux" {
		t.Skip("stores are read beside a writer on Linux only")
	} else if err != nil {
		t.Skipf("NOT TESTED: readers beside a writer, on the file system of %s: %v", dir, err)
	}
}

// everything returns what a transaction sees, by a scan of pairs, and compares with that a scan of keys,
// one backward, and gets.
func everything(t testing.TB, tx *cairn.Tx) map[string]string {
	t.Helper()
	all, keys := map[string]string{}, []string(nil)
	for k, v := range tx.Scan(cairn.Range{}) {
		all[string(k)], keys = string(v), append(keys, string(k))
	}
	var others [2][]string
	for k := range tx.Keys(cairn.Range{}) {
		others[0] = append(others[0], string(k))
	}
	for k := range tx.ScanBackward(cairn.Range{}) {
		others[1] = append(others[1], string(k))
	}
	check(t, tx.Err())
	slices.Reverse(others[1])
	if !slices.Equal(keys, others[0]) || !slices.Equal(keys, others[1]) {
		t.Fatalf("scans of one snapshot differ: %d, %d and %d keys", len(keys), len(others[0]), len(others[1]))
	}
	for k, want := range all {
		if v, err := tx.Get(b(k)); err != nil || string(v) != want {
			t.Fatalf("get %q: %.20q, %v; the scan has %.20q", k, v, err, want)
		}
	}
	return all
}

func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s: %q is %.30q (%v), want %.30q", what, k, g, ok, v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %q should not be there", what, k)
		}
	}
	t.FailNow()
}

// besides is a writer with its model, and readers of the same store.
type besides struct {
	testing.TB
	rand    *rand.Rand
	dir     string
	options cairn.Options
	db      *cairn.DB
	model   map[string]string
	readers []*cairn.DB
	pinned  []snapshotOf
}

// snapshotOf is a transaction of a reader, and what it has to see until it ends.
type snapshotOf struct {
	tx   *cairn.Tx
	want map[string]string
}

func (x *besides) key() string { return fmt.Sprintf("key-%03d", x.rand.IntN(300)) }

// step writes something, and not only little things.
func (x *besides) step() {
	x.Helper()
	long := bytes.Repeat([]byte{byte('a' + x.rand.IntN(26))}, 1+x.rand.IntN(3000))
	switch n := x.rand.IntN(100); {
	case n < 60:
		k := x.key()
		check(x, x.db.Put(b(k), long))
		x.model[k] = string(long)
	case n < 75:
		k := x.key()
		check(x, x.db.Delete(b(k)))
		delete(x.model, k)
	case n < 80:
		low, high := x.key(), x.key()
		if low > high {
			low, high = high, low
		}
		check(x, x.db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{Low: b(low), High: b(high)}) }))
		maps.DeleteFunc(x.model, func(k, _ string) bool { return k >= low && k < high })
	case n < 96:
		batch := cairn.NewBatch()
		for range 1 + x.rand.IntN(200) {
			k := x.key()
			batch.Put(b(k), long)
			x.model[k] = string(long)
		}
		check(x, x.db.Write(batch))
	case n < 98:
		check(x, x.db.Compact(context.Background(), cairn.Range{}))
	case n < 99: // a large transaction: its tables come by way of the log
		check(x, x.db.Update(func(tx *cairn.Tx) error {
			for i := range 5000 {
				k := fmt.Sprintf("key-%03d", i%300)
				if err := tx.Put(b(k), long); err != nil {
					return err
				}
				x.model[k] = string(long)
			}
			return nil
		}))
	default:
		check(x, x.db.Close())
		x.look("after the writer has closed the store")
		x.open()
	}
}

func (x *besides) open() {
	x.Helper()
	db, err := cairn.Open(x.dir, &x.options)
	check(x, err)
	x.db = db
}

// look checks that readers see what has been written, and snapshots what they saw.
func (x *besides) look(when string) {
	x.Helper()
	for i, r := range x.readers {
		tx, err := r.Begin(false)
		check(x, err)
		x.Cleanup(func() { tx.Rollback() }) // else Close waits for it if the test fails
		same(x, fmt.Sprintf("%s, reader %d", when, i), everything(x, tx), x.model)
		if x.rand.IntN(20) == 0 && len(x.pinned) < 5 {
			x.pinned = append(x.pinned, snapshotOf{tx, maps.Clone(x.model)})
			continue
		}
		check(x, tx.Rollback())
		k := x.key()
		if v, err := r.Get(b(k)); string(v) != x.model[k] || (err == nil) != (x.model[k] != "") {
			x.Fatalf("%s: get %q: %.20q, %v", when, k, v, err)
		}
	}
	if n := len(x.pinned); n > 0 && x.rand.IntN(10) == 0 {
		i := x.rand.IntN(n)
		same(x, when+", an old snapshot", everything(x, x.pinned[i].tx), x.pinned[i].want)
		check(x, x.pinned[i].tx.Rollback())
		x.pinned = slices.Delete(x.pinned, i, i+1)
	}
}

// unpin ends the snapshots that are left.
func (x *besides) unpin() {
	x.Helper()
	for _, s := range x.pinned {
		same(x, "an old snapshot at the end", everything(x, s.tx), s.want)
		check(x, s.tx.Rollback())
	}
	x.pinned = nil
}

// TestReadersBesideAWriter: readers that are open while a store is written see every commit once it has
// returned, whole, whatever the writer does meanwhile with its log and tables; their snapshots stay.
func TestReadersBesideAWriter(t *testing.T) {
	steps := 1500
	if testing.Short() {
		steps = 300
	}
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for _, disk := range []string{"memory", "disk"} {
			t.Run(fmt.Sprintf("%v on %s", durability, disk), func(t *testing.T) {
				x := &besides{TB: t, rand: rand.New(rand.NewPCG(1, uint64(len(disk)))), dir: "/db", model: map[string]string{}}
				x.options = cairn.Options{Durability: durability, Memory: 4 << 20}
				if disk == "disk" {
					x.dir = t.TempDir()
					followed(t, x.dir)
				} else {
					m := memfs.New()
					m.StopJournal()
					x.options.FS = m
				}
				x.open()
				for step := range steps {
					if step%100 == 50 && len(x.readers) < 3 {
						x.readers = append(x.readers, openAt(t, x.dir, &cairn.Options{ReadOnly: true, Memory: 4 << 20, FS: x.options.FS}))
					}
					x.step()
					if step%5 == 0 {
						x.look(fmt.Sprintf("step %d", step))
					}
					if step%300 == 299 {
						x.unpin()
						check(t, x.readers[0].Close())
						x.readers = x.readers[1:]
					}
				}
				check(t, x.db.Close())
				x.look("at the end")
				x.unpin()
			})
		}
	}
}

// TestReaderAtEveryInstant: while commits that each write all of a set are under way, readers see sets that are
// whole, never an older one than before, and none older than what had returned when they began.
func TestReaderAtEveryInstant(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(fmt.Sprint(durability), func(t *testing.T) {
			dir := t.TempDir()
			followed(t, dir)
			db := openAt(t, dir, &cairn.Options{Durability: durability, Memory: 4 << 20})
			var done atomic.Bool
			var acknowledged atomic.Int64
			var readers sync.WaitGroup
			for range 2 {
				r := openAt(t, dir, &cairn.Options{ReadOnly: true, Memory: 4 << 20})
				readers.Go(func() {
					for last, looks := int64(0), 0; !done.Load(); looks++ {
						least := max(acknowledged.Load(), last)
						set, err := readSet(r, looks%2 == 0)
						if err != nil || set < least {
							t.Errorf("set %d, %v; %d had been written", set, err, least)
							return
						}
						last = set
					}
				})
			}
			value := make([]byte, 2000)
			for i, end := int64(1), time.Now().Add(2*time.Second); time.Now().Before(end); i++ {
				batch := cairn.NewBatch()
				for k := range setSize {
					batch.Put(fmt.Appendf(nil, "member %d", k), append(fmt.Appendf(nil, "%d ", i), value...))
				}
				check(t, db.Write(batch))
				acknowledged.Store(i)
			}
			done.Store(true)
			readers.Wait()
			t.Logf("%d commits", acknowledged.Load())
		})
	}
}

// TestReaderVerifiesTablesOfNow: Verify of a reader checked the tables it had seen last: not those that the writer had made
// since, and commits that it had seen in the log need no others.
func TestReaderVerifiesTablesOfNow(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, read before: %v", durability, read), func(t *testing.T) {
				m := memfs.New()
				m.StopJournal()
				w := openAt(t, "/db", &cairn.Options{FS: m, Durability: durability, Memory: 4 << 20})
				put(t, w, "0", "1")
				f := &blinkFS{FS: m}
				r := openAt(t, "/db", &cairn.Options{FS: f, ReadOnly: true, Memory: 4 << 20})
				for i := range 20 {
					key := fmt.Sprint(1 + i)
					put(t, w, key, "1")
					if read {
						wantValue(t, r, key, "1")
					}
					check(t, w.Compact(t.Context(), cairn.Range{}))
					rows := uint64(2 + i)
					if report, err := r.Verify(t.Context()); err != nil || report.Entries != rows || report.Tables == 0 {
						t.Errorf("%+v, %v; the tables have %d rows", report, err, rows)
					}
				}
				failure := error(syscall.EIO)
				f.err.Store(&failure)
				put(t, w, "a", "1")
				check(t, w.Compact(t.Context(), cairn.Range{}))
				report, err := r.Verify(t.Context())
				if expect(t, err, syscall.EIO); report.Tables > 0 {
					t.Errorf("%+v of a store that could not be looked at", report)
				}
				f.err.Store(nil)
				check(t, w.Close())
				if report, err := r.Verify(t.Context()); err != nil || report.Entries != 22 {
					t.Errorf("closed: %+v, %v; the tables have 22 rows", report, err)
				}
			})
		}
	}
}

const setSize = 7

// readSet returns the number of the set that is there, by gets or a scan.
func readSet(db *cairn.DB, scan bool) (set int64, err error) {
	err = db.View(func(tx *cairn.Tx) error {
		var numbers []int64
		note := func(v []byte) {
			n := int64(0)
			fmt.Sscan(string(v[:bytes.IndexByte(v, ' ')]), &n)
			numbers = append(numbers, n)
		}
		if scan {
			for _, v := range tx.Scan(cairn.Range{}) {
				note(v)
			}
		} else {
			for k := range setSize {
				v, err := tx.Get(fmt.Appendf(nil, "member %d", k))
				if errors.Is(err, cairn.ErrNotFound) {
					break
				} else if err != nil {
					return err
				}
				note(v)
			}
		}
		if len(numbers) == 0 {
			return tx.Err()
		}
		if len(numbers) != setSize || slices.Max(numbers) != slices.Min(numbers) {
			return fmt.Errorf("a set in parts: %v", numbers)
		}
		set = numbers[0]
		return tx.Err()
	})
	return set, err
}

// TestNoReaderSeesWhatAPowerCutTakes: of durable commits readers see those only that no power cut can take back.
func TestNoReaderSeesWhatAPowerCutTakes(t *testing.T) {
	const writers = 3
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	reader := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20, ReadOnly: true})
	counts := func(db *cairn.DB) (n [writers]int) {
		check(t, db.View(func(tx *cairn.Tx) error {
			for w := range n {
				v, err := tx.Get(fmt.Appendf(nil, "writer %d", w))
				if err != nil && !errors.Is(err, cairn.ErrNotFound) {
					return err
				}
				fmt.Sscan(string(v), &n[w])
			}
			return nil
		}))
		return n
	}
	var over atomic.Bool
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := 1; !over.Load(); i++ {
				if err := db.Put(fmt.Appendf(nil, "writer %d", w), fmt.Appendf(nil, "%d %01000d", i, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer writing.Wait()
	defer over.Store(true)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		seen := counts(reader)
		choice := memfs.SyncedOnly()
		if i%3 == 0 {
			choice = memfs.Random(r.Uint64())
		}
		image, err := cairn.Open("/db", &cairn.Options{FS: m.Crash(choice), Memory: 4 << 20})
		check(t, err)
		left := counts(image)
		check(t, image.Close())
		for w := range seen {
			if left[w] < seen[w] {
				t.Fatalf("look %d, %v: a reader saw commit %d of writer %d; a power cut left %d", i, choice, seen[w], w, left[w])
			}
		}
		m.TrimJournal()
	}
	if seen := counts(reader); slices.Min(seen[:]) < 100 {
		t.Errorf("only %v commits", seen)
	}
}

// TestReadersOfAFailingLog: commits whose write has failed are never seen, though their frames may stand in the
// log, whole, where the next one's were to come.
func TestReadersOfAFailingLog(t *testing.T) {
	for _, do := range []faultfs.Action{faultfs.Fail(syscall.EIO), faultfs.DoneBut(syscall.EIO), faultfs.Short(faultfs.Half, syscall.EIO)} {
		m := memfs.New()
		m.StopJournal()
		faults := faultfs.New(m)
		x := &besides{TB: t, rand: rand.New(rand.NewPCG(5, 6)), dir: "/db", model: map[string]string{}}
		x.options = cairn.Options{FS: faults, Memory: 4 << 20}
		x.open()
		x.readers = append(x.readers, openAt(t, "/db", &cairn.Options{FS: m, ReadOnly: true, Memory: 4 << 20}))
		failed := 0
		for i := range 600 {
			fails := i%10 == 9
			if fails {
				faults.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", At: 1, Do: do})
			}
			k, v := x.key(), fmt.Sprintf("%d %0300d", i, i)
			switch err := x.db.Put(b(k), b(v)); {
			case err == nil:
				x.model[k] = v
			case !fails || errors.Is(err, cairn.ErrCommitUnknown):
				t.Fatalf("put %d: %v", i, err)
			default:
				failed++
			}
			faults.Heal()
			x.look(fmt.Sprintf("put %d", i))
		}
		x.unpin()
		check(t, x.db.Close())
		x.look("at the end")
		x.unpin()
		if failed < 50 {
			t.Errorf("only %d puts have failed", failed)
		}
	}
}

// TestReaderOnAFailingDisk: a reader that cannot read says so, and reads what is there as soon as it can.
func TestReaderOnAFailingDisk(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	faults := faultfs.New(m)
	x := &besides{TB: t, rand: rand.New(rand.NewPCG(7, 8)), dir: "/db", model: map[string]string{}}
	x.options = cairn.Options{FS: m, Memory: 4 << 20}
	x.open()
	reader := openAt(t, "/db", &cairn.Options{FS: faults, ReadOnly: true, Memory: 4 << 20})
	x.readers = append(x.readers, reader)
	failures := 0
	for i := range 800 {
		x.step()
		kinds := []faultfs.Kind{faultfs.Read, faultfs.Open, faultfs.Open | faultfs.Read | faultfs.List}[i%3]
		faults.Add(faultfs.Rule{Kinds: kinds, At: int64(1 + x.rand.IntN(3)), Sticky: i%2 == 0, Do: faultfs.Fail(syscall.EIO)})
		for range 3 {
			k := x.key()
			v, err := reader.Get(b(k))
			switch want, ok := x.model[k]; {
			case err == nil && ok && string(v) == want:
			case errors.Is(err, cairn.ErrNotFound) && !ok:
			case errors.Is(err, syscall.EIO):
				failures++
			default:
				t.Fatalf("step %d: get %q: %.20q, %v; want %.20q (%v)", i, k, v, err, want, ok)
			}
		}
		faults.Heal()
		if i%4 == 0 {
			x.look(fmt.Sprintf("step %d, once the disk is well", i))
		}
	}
	x.unpin()
	check(t, x.db.Close())
	if failures < 50 {
		t.Errorf("only %d gets have failed", failures)
	}
}

// dimFS is a file system whose locks cannot be shared so many times, with an error.
type dimFS struct {
	*memfs.FS
	times int
	err   error
}

func (f *dimFS) Lock(name string, shared bool) (io.Closer, error) {
	l, err := f.FS.Lock(name, shared)
	return &dimLock{l, f}, err
}

type dimLock struct {
	io.Closer
	fs *dimFS
}

// Share implements vfs.Sharer.
func (l *dimLock) Share() ([]byte, error) {
	if l.fs.times--; l.fs.times >= 0 {
		return nil, l.fs.err
	}
	return l.Closer.(vfs.Sharer).Share()
}

// TestWriterThatCannotShow: where a writer can show nothing, and readers that are there would not find that out, its
// first commit waits until it can; where nobody can read beside it, it goes on.
func TestWriterThatCannotShow(t *testing.T) {
	for _, err := range []error{syscall.EIO, errors.ErrUnsupported} {
		t.Run(err.Error(), func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			db, failed := cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20})
			check(t, failed)
			put(t, db, "a", "1")
			check(t, db.Close())
			r := openAt(t, "/db", &cairn.Options{FS: m, ReadOnly: true, Memory: 4 << 20})
			w := openAt(t, "/db", &cairn.Options{FS: &dimFS{m, 2, err}, Memory: 4 << 20})
			failed = w.Put(b("a"), b("2"))
			if errors.Is(err, errors.ErrUnsupported) {
				check(t, failed)
				return
			}
			expect(t, failed, err)
			wantValue(t, r, "a", "1")
			put(t, w, "a", "3")
			wantValue(t, r, "a", "3")
		})
	}
}

// blinkFS is a file system where it cannot be found out for a moment who holds a lock.
type blinkFS struct {
	*memfs.FS
	err atomic.Pointer[error]
}

func (f *blinkFS) Watch(name string) (vfs.Watch, error) {
	w, err := f.FS.Watch(name)
	return &blinkWatch{w, f}, err
}

type blinkWatch struct {
	vfs.Watch
	fs *blinkFS
}

func (w *blinkWatch) Holder() (vfs.Holder, error) {
	if err := w.fs.err.Load(); err != nil {
		return vfs.Hidden, *err
	}
	return w.Watch.Holder()
}

// TestReaderThatCannotAsk: a reader that could not find out who holds the lock said that the store is locked.
func TestReaderThatCannotAsk(t *testing.T) {
	f := &blinkFS{FS: memfs.New()}
	f.StopJournal()
	w := openAt(t, "/db", &cairn.Options{FS: f, Memory: 4 << 20})
	put(t, w, "a", "1")
	r := openAt(t, "/db", &cairn.Options{FS: f, ReadOnly: true, Memory: 4 << 20})
	failure := error(syscall.EIO)
	f.err.Store(&failure)
	check(t, w.Compact(t.Context(), cairn.Range{})) // the log that the reader knows ends
	put(t, w, "a", "2")
	_, err := r.Get(b("a"))
	expect(t, err, syscall.EIO)
	if errors.Is(err, cairn.ErrLocked) {
		t.Error(err)
	}
	f.err.Store(nil)
	wantValue(t, r, "a", "2")
}
