package cairn_test

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestBatch(t *testing.T) {
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		put(t, db, "old", "1")
		put(t, db, "range/1", "1")
		put(t, db, "range/2", "1")
		batch := cairn.NewBatch()
		batch.Put(b("new"), b("1"))
		batch.Put(b("new"), b("2"))
		batch.Delete(b("old"))
		batch.Put(b("range/3"), b("lost"))
		batch.DeleteRange(cairn.Prefix(b("range/")))
		batch.Put(b("range/2"), b("kept"))
		batch.Put(b("put, deleted"), nil)
		batch.Delete(b("put, deleted"))
		batch.DeleteRange(cairn.Range{Low: b("z"), High: b("a")}) // nothing
		if batch.Len() != 8 {
			t.Errorf("%d writes", batch.Len())
		}
		seq := db.Stats().Seq
		check(t, db.Write(batch))
		if s := db.Stats().Seq; s != seq+8 {
			t.Errorf("sequence %d, was %d", s, seq)
		}
	}, func(t *testing.T, db *cairn.DB) {
		wantKeys(t, db, "new", "range/2")
		wantValue(t, db, "new", "2")
		wantValue(t, db, "range/2", "kept")
	})
}

// wantKeys checks the keys of the whole store.
func wantKeys(t testing.TB, db *cairn.DB, want ...string) {
	t.Helper()
	var got []string
	check(t, db.View(func(tx *cairn.Tx) error {
		got = keysOf(tx, cairn.Range{})
		return nil
	}))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("keys %q, want %q", got, want)
	}
}

func keysOf(tx *cairn.Tx, r cairn.Range) (keys []string) {
	for k := range tx.Keys(r) {
		keys = append(keys, string(k))
	}
	return keys
}

// TestBatchErrors: the first error decides, and then nothing is written.
func TestBatchErrors(t *testing.T) {
	db := openNew(t, nil)
	long := make([]byte, cairn.MaxKeyBytes+1)
	for name, c := range map[string]struct {
		spoil func(*cairn.Batch)
		want  error
	}{
		"empty key":        {func(batch *cairn.Batch) { batch.Put(nil, b("1")) }, cairn.ErrEmptyKey},
		"long key":         {func(batch *cairn.Batch) { batch.Put(long, b("1")) }, cairn.ErrKeyTooLarge},
		"long value":       {func(batch *cairn.Batch) { batch.Put(b("x"), make([]byte, cairn.MaxValueBytes+1)) }, cairn.ErrValueTooLarge},
		"delete of empty":  {func(batch *cairn.Batch) { batch.Delete(b("")) }, cairn.ErrEmptyKey},
		"delete of long":   {func(batch *cairn.Batch) { batch.Delete(long) }, cairn.ErrKeyTooLarge},
		"range from long":  {func(batch *cairn.Batch) { batch.DeleteRange(cairn.Range{Low: long}) }, cairn.ErrKeyTooLarge},
		"range up to long": {func(batch *cairn.Batch) { batch.DeleteRange(cairn.Range{High: long}) }, cairn.ErrKeyTooLarge},
		"two errors":       {func(batch *cairn.Batch) { batch.Delete(long); batch.Delete(nil) }, cairn.ErrKeyTooLarge},
	} {
		batch := cairn.NewBatch()
		batch.Put(b("good"), b("1"))
		c.spoil(batch)
		batch.Put(b("good too"), b("1"))
		for range 2 {
			if err := db.Write(batch); err == nil {
				t.Errorf("%s: no error", name)
			} else {
				expect(t, err, c.want)
			}
		}
		wantKeys(t, db)
		batch.Reset()
		if batch.Len() != 0 {
			t.Errorf("%d writes after Reset", batch.Len())
		}
		batch.Put(b("reset"), nil)
		check(t, db.Write(batch))
		check(t, db.Delete(b("reset")))
	}
}

// TestBatchAgain: a batch can be written more than once.
func TestBatchAgain(t *testing.T) {
	db := openNew(t, nil)
	batch := cairn.NewBatch()
	check(t, db.Write(batch)) // empty: nothing happens
	batch.Put(b("a"), b("1"))
	for range 3 {
		check(t, db.Write(batch))
		wantValue(t, db, "a", "1")
		check(t, db.Delete(b("a")))
	}
	batch.Put(b("b"), b("2"))
	check(t, db.Write(batch))
	wantKeys(t, db, "a", "b")
}

// TestBatchOfAnySize: from one write to more than memory holds, all or nothing.
func TestBatchOfAnySize(t *testing.T) {
	for _, n := range []int{1, 100, 1000, 20_000} {
		opts := inMemory(&cairn.Options{Memory: 1 << 20})
		db := openAt(t, "/db", opts)
		put(t, db, "range/x", "1")
		batch := cairn.NewBatch()
		for i := range n {
			batch.Put(fmt.Appendf(nil, "key%06d", i*7919%n), fmt.Appendf(nil, "%0200d", i))
		}
		batch.DeleteRange(cairn.Prefix(b("range/")))
		batch.Put(b("key000000"), b("last"))
		check(t, db.Write(batch))
		verify := func() {
			t.Helper()
			check(t, db.View(func(tx *cairn.Tx) error {
				i := 0
				for k := range tx.Keys(cairn.Range{}) {
					if string(k) != fmt.Sprintf("key%06d", i) {
						t.Fatalf("n=%d: row %d is %q", n, i, k)
					}
					i++
				}
				if i != n {
					t.Fatalf("%d rows of %d", i, n)
				}
				return nil
			}))
			wantValue(t, db, "key000000", "last")
			if n > 1 {
				wantValue(t, db, fmt.Sprintf("key%06d", 7919%n), fmt.Sprintf("%0200d", 1))
			}
		}
		verify()
		check(t, db.Close())
		db = openAt(t, "/db", opts)
		verify()
		check(t, db.Close())
	}
}

// TestBatchIsThereWhileItIsWritten: nobody has a large batch any more but Write, which waits for
// a log segment, and the garbage collector comes by.
func TestBatchIsThereWhileItIsWritten(t *testing.T) {
	db := openAt(t, t.TempDir(), &cairn.Options{FS: collecting{vfs.OS()}})
	const pairs, size = 100, 100_000 // most of it is outside the Go heap
	value := func(i int) []byte { return bytes.Repeat([]byte{'v', byte(i)}, size/2) }
	batch := cairn.NewBatch()
	for i := range pairs {
		batch.Put(fmt.Appendf(nil, "%d", i), value(i))
	}
	check(t, db.Write(batch))
	for i := range pairs {
		if v, err := db.Get(fmt.Appendf(nil, "%d", i)); err != nil || !bytes.Equal(v, value(i)) {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}

// collecting is a file system that collects garbage before it makes a file.
type collecting struct{ vfs.FS }

func (c collecting) Create(name string) (vfs.File, error) {
	runtime.GC()
	time.Sleep(20 * time.Millisecond) // what is cleaned up then is so on a goroutine
	return c.FS.Create(name)
}

// copyOf is what must not be done: go vet would say so.
func copyOf(b *cairn.Batch) *cairn.Batch {
	c := reflect.New(reflect.TypeOf(b).Elem())
	c.Elem().Set(reflect.ValueOf(b).Elem())
	return c.Interface().(*cairn.Batch)
}

// TestCopiedBatch: whatever is done with a batch that was copied, the store holds what somebody has put, and can be opened.
func TestCopiedBatch(t *testing.T) {
	m := memfs.New()
	db, err := cairn.Open("/db", &cairn.Options{FS: m})
	check(t, err)
	batch := cairn.NewBatch()
	batch.Put(b("a"), b("1"))
	copied := copyOf(batch)
	copied.Put(b("a longer key"), b("2"))
	batch.Put(b("b"), b("3"))
	check(t, db.Write(batch))
	batch.Reset()
	others := cairn.NewBatch()
	others.Put(b("of others"), b("4"))
	check(t, db.Write(copied))
	if n := copied.Len(); n != 0 {
		t.Errorf("%d writes after the reset", n)
	}
	db, err = cairn.Open("/db", &cairn.Options{FS: m.Crash(memfs.Everything())})
	check(t, err)
	var keys []string
	check(t, db.View(func(tx *cairn.Tx) error {
		for k := range tx.Keys(cairn.Range{}) {
			keys = append(keys, string(k))
		}
		return tx.Err()
	}))
	if got := strings.Join(keys, ", "); got != "a, a longer key, b" {
		t.Error(got)
	}
}

// aboutToCreate is a file system that tells, once it is armed, when a file is about to be made, and waits: the first time.
type aboutToCreate struct {
	vfs.FS
	suffix      string
	armed       *atomic.Bool
	began, goOn chan struct{}
}

func (f aboutToCreate) Create(name string) (vfs.File, error) {
	if strings.HasSuffix(name, f.suffix) && f.armed.CompareAndSwap(true, false) {
		f.began <- struct{}{}
		<-f.goOn
	}
	return f.FS.Create(name)
}

// TestBatchChangedMeanwhile: of a batch to which somebody adds, or that is reset, and whose memory serves others, while it is
// written, as one frame or as tables, what it was is written, and the batch that was added to says so the next time.
func TestBatchChangedMeanwhile(t *testing.T) {
	const entries, size = 3000, 100
	for _, file := range []string{"RESERVE", ".sst"} {
		for name, change := range map[string]func(batch *cairn.Batch){
			"added to": func(batch *cairn.Batch) { batch.Put(b("late"), make([]byte, size)) },
			"reset":    func(batch *cairn.Batch) { batch.Reset() },
			"others'": func(batch *cairn.Batch) {
				batch.Reset()
				for _, other := range []*cairn.Batch{batch, cairn.NewBatch()} {
					for i := range entries {
						other.Put(fmt.Append(nil, "other", i), make([]byte, size+1))
					}
				}
			},
		} {
			t.Run(file+" "+name, func(t *testing.T) {
				options := &cairn.Options{}
				if file == ".sst" {
					options.Memory = 1 << 20
				}
				m := memfs.New()
				m.AllowMaps()
				waits := aboutToCreate{m, file, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
				options.FS = waits
				db, err := cairn.Open("/db", options)
				check(t, err)
				check(t, db.Put(b("before"), b("1")))
				batch := cairn.NewBatch()
				for i := range entries {
					batch.Put(fmt.Append(nil, "key", i), make([]byte, size))
				}
				waits.armed.Store(true)
				written := make(chan error, 1)
				go func() { written <- db.Write(batch) }()
				<-waits.began
				change(batch)
				waits.goOn <- struct{}{}
				check(t, <-written)
				keys, others := 0, 0
				check(t, db.View(func(tx *cairn.Tx) error {
					for k := range tx.Keys(cairn.Range{}) {
						if bytes.HasPrefix(k, b("key")) {
							keys++
						} else {
							others++
						}
					}
					return tx.Err()
				}))
				if keys != entries || others != 1 {
					t.Errorf("%d keys of it, and %d others", keys, others)
				}
				if name == "added to" {
					expect(t, db.Write(batch), cairn.ErrBatchChanged)
					batch.Reset()
				}
				check(t, db.Write(batch))
				check(t, db.Close())
			})
		}
	}
}

// TestBatchErrorSaysWhich: writes are counted as they were called, those that add nothing too.
func TestBatchErrorSaysWhich(t *testing.T) {
	batch := cairn.NewBatch()
	for range 2 {
		batch.Put(b("k"), nil)
		batch.DeleteRange(cairn.Range{Low: b("k"), High: b("k")})
		batch.Delete(nil)
		batch.Put(nil, nil)
		err := openNew(t, nil).Write(batch)
		expect(t, err, cairn.ErrEmptyKey)
		if !strings.Contains(err.Error(), "write 3 of") {
			t.Errorf("the third was refused, and the error is: %v", err)
		}
		batch.Reset()
	}
}
