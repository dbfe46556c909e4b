package cairn_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// hookFS calls functions before a file is opened, and before it is read.
type hookFS struct {
	vfs.FS
	opens, reads atomic.Pointer[func(base string)]
	open, most   atomic.Int64 // files that are, and can be; 0: any number
}

const none = -1 // can be open

// Watch implements vfs.Watcher.
func (h *hookFS) Watch(name string) (vfs.Watch, error) { return h.FS.(vfs.Watcher).Watch(name) }

func (h *hookFS) Open(name string) (vfs.File, error) {
	call(&h.opens, name)
	if most := h.most.Load(); h.open.Add(1) > most && most != 0 {
		h.open.Add(-1)
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	f, err := h.FS.Open(name)
	if err != nil {
		h.open.Add(-1)
		return nil, err
	}
	return &hookFile{f, h, name}, nil
}

func call(hook *atomic.Pointer[func(string)], name string) {
	if f := hook.Load(); f != nil {
		(*f)(filepath.Base(name))
	}
}

type hookFile struct {
	vfs.File
	fs   *hookFS
	name string
}

func (f *hookFile) ReadAt(b []byte, off int64) (int, error) {
	call(&f.fs.reads, f.name)
	return f.File.ReadAt(b, off)
}

func (f *hookFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// once is a hook that calls f the first time that a file is opened or read whose name ends like that.
func once(suffix string, f func()) *func(string) {
	var done atomic.Bool
	hook := func(name string) {
		if strings.HasSuffix(name, suffix) && done.CompareAndSwap(false, true) {
			f()
		}
	}
	return &hook
}

// hooked returns a store in memory in which "a" is "1", who writes it, and who reads it, through hooks.
func hooked(t *testing.T) (m *memfs.FS, w *cairn.DB, h *hookFS, r *cairn.DB) {
	t.Helper()
	m = memfs.New()
	m.StopJournal()
	w = openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "1")
	h = &hookFS{FS: m}
	r, err := cairn.Open("/db", &cairn.Options{FS: h, ReadOnly: true, Memory: 4 << 20})
	check(t, err)
	return m, w, h, r
}

// TestReaderClosedMeanwhile: Close of a reader that is catching up waits for that, and gives everything back.
func TestReaderClosedMeanwhile(t *testing.T) {
	_, w, h, r := hooked(t)
	wantValue(t, r, "a", "1")
	blocked, release := make(chan bool), make(chan bool)
	h.reads.Store(once(".log", func() {
		close(blocked)
		<-release
	}))
	put(t, w, "big", strings.Repeat("x", 700<<10)) // a memtable of its own, and so another State
	got, closed := make(chan error), make(chan error)
	go func() {
		_, err := r.Get(b("a"))
		got <- err
	}()
	<-blocked
	go func() { closed <- r.Close() }()
	time.Sleep(50 * time.Millisecond) // until it waits
	close(release)
	if err := <-got; err != nil && !errors.Is(err, cairn.ErrClosed) {
		t.Errorf("the read that was under way: %v", err)
	}
	check(t, <-closed)
}

// TestReadersCloseAnyTime is the same as it comes.
func TestReadersCloseAnyTime(t *testing.T) {
	dir := t.TempDir()
	followed(t, dir)
	w := openAt(t, dir, &cairn.Options{Memory: 8 << 20, Durability: cairn.Relaxed})
	put(t, w, "n", "0")
	var over atomic.Bool
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; !over.Load(); i++ {
			if err := w.Put(fmt.Appendf(nil, "%d", i%500), make([]byte, 20_000)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writing.Wait()
	defer over.Store(true)
	for i := range 60 {
		r, err := cairn.Open(dir, &cairn.Options{Memory: 4 << 20, ReadOnly: true})
		check(t, err)
		var reading sync.WaitGroup
		for range 4 {
			reading.Go(func() {
				for err := error(nil); !errors.Is(err, cairn.ErrClosed); {
					if _, err = r.Get(b("n")); err != nil && !errors.Is(err, cairn.ErrClosed) {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(i%20) * time.Millisecond)
		check(t, r.Close())
		reading.Wait()
	}
}

// TestWriterComesMeanwhile: a writer that opens the store between a reader's look at the lock and at the log has
// a commit in the log that is not durable, or never will be. The reader does not see it, and is none the worse.
func TestWriterComesMeanwhile(t *testing.T) {
	for what, do := range map[string]faultfs.Action{"slow": faultfs.Delay(300 * time.Millisecond), "failing": faultfs.Fail(syscall.EIO)} {
		for _, opening := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, opening %v", what, opening), func(t *testing.T) {
				m := memfs.New()
				m.StopJournal()
				first := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
				put(t, first, "a", "1")
				faults, h := faultfs.New(m), &hookFS{FS: m}
				outcome := make(chan error, 1)
				var came atomic.Bool
				comes := once("CURRENT", func() {
					came.Store(true)
					w, err := cairn.Open("/db", &cairn.Options{FS: faults, Memory: 4 << 20})
					if err != nil {
						t.Error(err)
						return
					}
					t.Cleanup(func() { w.Close() })
					put(t, w, "b", "2")
					syncs := faults.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true, Do: do})
					go func() { outcome <- w.Put(b("a"), b("not durable")) }()
					for syncs.Seen() == 0 {
						time.Sleep(time.Millisecond)
					}
				})
				if opening {
					check(t, first.Close())
					h.opens.Store(comes)
				}
				r, err := cairn.Open("/db", &cairn.Options{FS: h, ReadOnly: true, Memory: 4 << 20})
				check(t, err)
				defer r.Close()
				if !opening {
					check(t, first.Close())
				}
				for !opening && !came.Load() { // somebody has come and gone: it looks at the lock, and at the manifest
					second, err := cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20})
					check(t, err)
					check(t, second.Close())
					h.opens.Store(comes)
					wantValue(t, r, "a", "1")
				}
				wantValue(t, r, "a", "1")
				wantValue(t, r, "b", "2")
				if err := <-outcome; err == nil {
					wantValue(t, r, "a", "not durable")
				} else {
					wantValue(t, r, "a", "1")
				}
			})
		}
	}
}

// TestReaderFailsTwice: a read that fails, and then what it wants is gone because the writer has gone on, are not the same
// failure twice: the reader looks once more.
func TestReaderFailsTwice(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	w := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "1")
	h := &hookFS{FS: m}
	h.opens.Store(once(".log", func() {
		check(t, w.Compact(t.Context(), cairn.Range{}))
		gone(t, m, "/db/000001.log")
	}))
	faults := faultfs.New(h)
	failed := faults.Add(faultfs.Rule{Kinds: faultfs.Open, Name: "*.log", At: 1, Do: faultfs.Fail(syscall.EIO)})
	r := openAt(t, "/db", &cairn.Options{FS: faults, ReadOnly: true, Memory: 4 << 20})
	wantValue(t, r, "a", "1")
	if failed.Fired() == 0 {
		t.Error("no log was opened")
	}
}

// gone waits until a file is not there any more.
func gone(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if f, err := fsys.Open(name); err != nil {
			return
		} else if f.Close(); time.Now().After(deadline) {
			t.Fatalf("%s is still there", name)
		}
	}
}

// TestWriterRecoversMeanwhile: a writer that opens the store, whose last one was killed, makes a table of the log and
// removes that between a reader's look at the manifest and at the log, and shows nothing yet. The segment was
// provisional, and one of those may be missing; but the log has not ended before this one.
func TestWriterRecoversMeanwhile(t *testing.T) {
	for _, opening := range []bool{false, true} {
		t.Run(fmt.Sprintf("opening %v", opening), func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			m.AllowMaps() // provisional segments
			failing, reader, writer := faultfs.New(m), &hookFS{FS: m}, &hookFS{FS: m}
			first := openAt(t, "/db", &cairn.Options{FS: failing, Memory: 4 << 20, Durability: cairn.Relaxed})
			put(t, first, "a", "1")
			var r *cairn.DB
			open := func() (err error) {
				r, err = cairn.Open("/db", &cairn.Options{FS: reader, ReadOnly: true, Memory: 4 << 20})
				return err
			}
			if !opening {
				check(t, open())
			}
			killed(t, first, failing)
			look, found := make(chan bool), make(chan error)
			replays, goOn := make(chan bool), make(chan bool)
			go func() {
				<-look
				err := error(nil)
				if opening {
					err = open()
				}
				if err == nil {
					_, err = r.Get(b("a"))
				}
				found <- err
			}()
			writer.opens.Store(once(".log", func() {
				reader.opens.Store(once(".log", func() {
					replays <- true
					<-goOn
				}))
				look <- true
				<-replays
			}))
			w, err := cairn.Open("/db", &cairn.Options{FS: writer, Memory: 4 << 20})
			check(t, err)
			defer w.Close()
			goOn <- true
			check(t, <-found)
			check(t, r.Close())
		})
	}
}

// killed ends a writer as a kill does: what it would still do fails.
func killed(t *testing.T, w *cairn.DB, faults *faultfs.FS) {
	t.Helper()
	faults.Add(faultfs.Rule{Kinds: faultfs.Mutations, Sticky: true, Do: faultfs.Fail(syscall.EIO)})
	expect(t, w.Close(), syscall.EIO)
}

// TestReaderLetsGoOfAReplayedLog: a reader that has replayed the log of a writer that was killed while the next one
// made tables of it kept it in memory until somebody wrote.
func TestReaderLetsGoOfAReplayedLog(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	failing, writer := faultfs.New(m), &hookFS{FS: m}
	first, err := cairn.Open("/db", &cairn.Options{FS: failing, Memory: 64 << 20})
	check(t, err)
	put(t, first, "a", strings.Repeat("x", 1<<20))
	r := openAt(t, "/db", &cairn.Options{FS: m, ReadOnly: true, Memory: 64 << 20})
	killed(t, first, failing)
	writer.opens.Store(once(".log", func() { wantValue(t, r, "a", strings.Repeat("x", 1<<20)) }))
	w, err := cairn.Open("/db", &cairn.Options{FS: writer, Memory: 64 << 20})
	check(t, err)
	check(t, w.Close())
	for deadline := time.Now().Add(20 * time.Second); r.Stats().Memtables > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a reader keeps %d bytes of a log that has become tables", r.Stats().Memtables)
		}
	}
	wantValue(t, r, "a", strings.Repeat("x", 1<<20))
}

// ingested returns a store as a power cut has left it when a large transaction stood in the log, and not in the manifest yet.
func ingested(t *testing.T) *memfs.FS {
	t.Helper()
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 1 << 20})
	check(t, db.Update(func(tx *cairn.Tx) error {
		for i := range 3000 {
			if err := tx.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 1000)); err != nil {
				return err
			}
		}
		return nil
	}))
	j := m.Journal()
	for i, op := range j.Ops() {
		if op.Kind != memfs.OpWrite || !strings.HasSuffix(op.Name, ".log") {
			continue
		}
		image := j.State(i+1, memfs.Everything())
		image.StopJournal()
		r, err := cairn.Open("/db", &cairn.Options{FS: image, ReadOnly: true})
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		check(t, err)
		_, err = r.Get(b("000001"))
		check(t, r.Close())
		if err == nil {
			return image
		}
	}
	t.Fatal("the transaction is nowhere in the log")
	return nil
}

// TestReaderClosesTablesOfTheLog: each replay of a log opens the tables of its large transactions. All are closed
// sooner or later, also where a replay has failed.
func TestReaderClosesTablesOfTheLog(t *testing.T) {
	m := ingested(t)
	h := &hookFS{FS: m}
	faults := faultfs.New(h)
	r, err := cairn.Open("/db", &cairn.Options{FS: faults, ReadOnly: true, Memory: 64 << 20})
	check(t, err)
	defer r.Close()
	look := func(want error) {
		t.Helper()
		lock, err := m.Lock("/db/LOCK", false) // somebody has come, and so the log is looked at once more
		check(t, err)
		check(t, lock.Close())
		_, err = r.Get(b("000001"))
		expect(t, err, want)
	}
	before := h.open.Load()
	settles := func(when string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); h.open.Load() != before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d files are open %s, %d before", h.open.Load(), when, before)
			}
		}
	}
	for range 3 {
		look(nil)
	}
	settles("when the log has been looked at again")
	tables := faults.Add(faultfs.Rule{Kinds: faultfs.Open, Name: "*.sst", At: 2, Sticky: true, Do: faultfs.Fail(syscall.EIO)})
	look(syscall.EIO)
	if tables.Fired() == 0 {
		t.Error("the log names no tables")
	}
	faults.Heal()
	look(nil)
	settles("after a replay that failed")
	check(t, r.Close())
	if n := h.open.Load(); n > 0 {
		t.Errorf("%d files are open after Close", n)
	}
}

// TestReaderOfASwappedDirectory: a reader belongs to the store it has opened. It goes on with that while there is
// nothing new, and else says that its directory has gone; never does it read another one.
func TestReaderOfASwappedDirectory(t *testing.T) {
	root := t.TempDir()
	followed(t, root)
	made := func(name string, n int) string {
		dir := filepath.Join(root, name)
		db, err := cairn.Open(dir, &cairn.Options{Memory: 4 << 20})
		check(t, err)
		for i := range n {
			put(t, db, fmt.Sprint(i), name)
		}
		check(t, db.Close())
		return dir
	}
	one, two := made("one", 3), made("two", 50)
	r := openAt(t, one, &cairn.Options{ReadOnly: true, Memory: 4 << 20})
	wantValue(t, r, "1", "one")
	check(t, os.Rename(one, one+" of old"))
	check(t, os.Rename(two, one))
	wantValue(t, r, "1", "one")
	wantValue(t, r, "40", "")
	w := openAt(t, one+" of old", &cairn.Options{Memory: 4 << 20})
	put(t, w, "1", "one again")
	if v, err := r.Get(b("1")); err == nil || !strings.Contains(err.Error(), "renamed") {
		t.Errorf("get of what was written elsewhere: %q, %v", v, err)
	}
	check(t, w.Close())
	check(t, os.Rename(one, two))
	check(t, os.Rename(one+" of old", one))
	wantValue(t, r, "1", "one again")

	// Another store in the place of the first one, with the lock file of that.
	for _, from := range []string{one, two} {
		names, err := os.ReadDir(from)
		check(t, err)
		for _, e := range names {
			if e.Name() != "LOCK" && from == one {
				check(t, os.Remove(filepath.Join(one, e.Name())))
			} else if e.Name() != "LOCK" {
				check(t, os.Rename(filepath.Join(two, e.Name()), filepath.Join(one, e.Name())))
			}
		}
	}
	other := openAt(t, one, &cairn.Options{Memory: 4 << 20})
	put(t, other, "1", "two again")
	_, err := r.Get(b("1"))
	expect(t, err, cairn.ErrCorrupt)
}

// TestLockFileCut: whoever empties the lock file takes the page away that processes share. Commits go on, and
// readers say that they cannot.
func TestLockFileCut(t *testing.T) {
	dir := t.TempDir()
	followed(t, dir)
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		w := openAt(t, dir, &cairn.Options{Memory: 4 << 20, Durability: durability})
		put(t, w, "a", "1")
		r := openAt(t, dir, &cairn.Options{Memory: 4 << 20, ReadOnly: true})
		wantValue(t, r, "a", "1")
		check(t, os.Truncate(filepath.Join(dir, "LOCK"), 0))
		put(t, w, "a", "2")
		wantValue(t, w, "a", "2")
		_, err := r.Get(b("a"))
		expect(t, err, cairn.ErrCorrupt)
		_, err = cairn.Open(dir, &cairn.Options{ReadOnly: true})
		expect(t, err, cairn.ErrLocked)
		check(t, r.Close())
		check(t, w.Close())
		w = openAt(t, dir, nil) // all is well with the next one
		put(t, w, "a", "3")
		r = openAt(t, dir, &cairn.Options{ReadOnly: true})
		wantValue(t, r, "a", "3")
		check(t, r.Close())
		check(t, w.Close())
	}
}

// TestReaderGivesUpWhenClosed: Close does not wait until a reader has given up a store that changes whenever it is
// looked at.
func TestReaderGivesUpWhenClosed(t *testing.T) {
	m, w, h, r := hooked(t)
	var looks atomic.Int64
	closed := make(chan error, 1)
	changes := func(name string) {
		switch {
		case name == "CURRENT" && looks.Add(1) == 3:
			go func() { closed <- r.Close() }()
			time.Sleep(50 * time.Millisecond) // until it waits
		case strings.HasSuffix(name, ".sst"):
			put(t, w, "a", "2")
			if err := w.Compact(t.Context(), cairn.Range{}); err != nil {
				t.Error(err)
			}
			for gone := false; !gone; { // the table that is being opened
				f, err := m.Open("/db/" + name)
				if gone = err != nil; !gone {
					f.Close()
				}
			}
		}
	}
	h.opens.Store(&changes)
	put(t, w, "a", "3")
	check(t, w.Compact(t.Context(), cairn.Range{}))
	if _, err := r.Get(b("a")); err != nil && !errors.Is(err, cairn.ErrClosed) {
		t.Errorf("the read that was under way: %v", err)
	}
	check(t, <-closed)
	if n := looks.Load(); n > 3 {
		t.Errorf("it looked %d times at a store that it was to let go of", n)
	}
}

// TestReaderThatFailsLetsGo: a reader that could not catch up kept the tables that each attempt had opened, which no
// manifest named any more: for want of descriptors it took all there were, and failed for good.
func TestReaderThatFailsLetsGo(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	h := &hookFS{FS: m}
	faults := faultfs.New(h)
	w := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "0")
	r := openAt(t, "/db", &cairn.Options{FS: faults, ReadOnly: true, Memory: 4 << 20})
	wantValue(t, r, "a", "0")
	before := h.open.Load()
	faults.Add(faultfs.Rule{Kinds: faultfs.Open, Name: "*.log", Sticky: true, Do: faultfs.Fail(syscall.EMFILE)})
	for round := range 5 {
		h.most.Store(none) // while tables have everything it needs no log
		put(t, w, "a", fmt.Sprint("table ", round))
		check(t, w.Compact(t.Context(), cairn.Range{}))
		put(t, w, "b", fmt.Sprint("log ", round))
		h.most.Store(0)
		_, err := r.Get(b("a"))
		expect(t, err, syscall.EMFILE)
		for deadline := time.Now().Add(20 * time.Second); h.open.Load() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d files are open when it has failed %d times, %d before", h.open.Load(), 1+round, before)
			}
		}
	}
	faults.Heal()
	wantValue(t, r, "a", "table 4")
	wantValue(t, r, "b", "log 4")
}

// TestReaderThatCannotKeepUpLetsGo: of a store that changed whenever it was looked at a reader kept the tables of one
// manifest more with each look.
func TestReaderThatCannotKeepUpLetsGo(t *testing.T) {
	_, w, h, r := hooked(t)
	check(t, w.Compact(t.Context(), cairn.Range{}))
	put(t, w, "a", "2")
	wantValue(t, r, "a", "2")
	before, most, looks := h.open.Load(), int64(0), 0
	changes := func(name string) {
		if strings.HasSuffix(name, ".log") && looks < 6 { // the tables are open, and the log is not what it was
			looks, most = looks+1, max(most, h.open.Load())
			check(t, w.Compact(t.Context(), cairn.Range{}))
			put(t, w, "b", fmt.Sprint(looks))
			gone(t, h.FS, "/db/"+name)
		}
	}
	h.opens.Store(&changes)
	check(t, w.Compact(t.Context(), cairn.Range{}))
	put(t, w, "a", "3")
	wantValue(t, r, "a", "3")
	if looks < 6 || most > before+2 {
		t.Errorf("%d files were open when it had looked %d times, %d before", most, looks, before)
	}
}

// copied returns a store in memory in which "a" is "1", that nobody has open and that has no lock file.
func copied(t *testing.T) *memfs.FS {
	t.Helper()
	m := memfs.New()
	m.StopJournal()
	w := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "1")
	check(t, w.Close())
	check(t, m.Remove("/db/LOCK"))
	return m
}

// TestReaderOfACopyWithoutLock: who had opened a store without a lock file was never told of a writer that came later, nor let go
// of what that had replaced.
func TestReaderOfACopyWithoutLock(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("the writer has closed %v", closed), func(t *testing.T) {
			m := copied(t)
			r := openAt(t, "/db", &cairn.Options{FS: m, ReadOnly: true, Memory: 4 << 20})
			idle := openAt(t, "/db", &cairn.Options{FS: m, ReadOnly: true, Memory: 4 << 20})
			wantValue(t, r, "a", "1")
			before, err := r.Begin(false)
			check(t, err)
			defer before.Rollback()
			w := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
			put(t, w, "a", "2")
			if closed {
				check(t, w.Close())
			}
			var reading sync.WaitGroup
			for range 4 {
				reading.Go(func() {
					if v, err := r.Get(b("a")); string(v) != "2" || err != nil {
						t.Errorf("a is %q, %v", v, err)
					}
				})
			}
			reading.Wait()
			if v, err := before.Get(b("a")); string(v) != "1" || err != nil {
				t.Errorf("a is %q, %v to a transaction that was there", v, err)
			}
			for deadline := time.Now().Add(20 * time.Second); idle.Stats().Seq != r.Stats().Seq; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("who does not read keeps what was there when it opened the store")
				}
			}
			check(t, w.Close())
			w = openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
			put(t, w, "a", "3")
			wantValue(t, r, "a", "3")
		})
	}
}

// TestNoReaderOfACopyBesideAWriter: where locks cannot be watched, who had opened a store without a lock file did not keep writers
// out, and saw nothing of them. It keeps them out once it can read what they have left.
func TestNoReaderOfACopyBesideAWriter(t *testing.T) {
	m := copied(t)
	faults := faultfs.New(m)
	r := openAt(t, "/db", &cairn.Options{FS: plainFS{faults}, ReadOnly: true, Memory: 4 << 20, LockTimeout: time.Hour})
	wantValue(t, r, "a", "1")
	w := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "2")
	_, err := r.Get(b("a"))
	expect(t, err, cairn.ErrLocked)
	_, err = r.Verify(t.Context())
	expect(t, err, cairn.ErrLocked)
	faults.Add(faultfs.Rule{Kinds: faultfs.Open, Name: "CURRENT", Sticky: true, Do: faultfs.Fail(syscall.EIO)})
	check(t, w.Close())
	_, err = r.Get(b("a"))
	expect(t, err, syscall.EIO)
	w = openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20, LockTimeout: 20 * time.Second})
	put(t, w, "a", "3")
	check(t, w.Close())
	faults.Heal()
	wantValue(t, r, "a", "3")
	expect(t, openError(t, "/db", &cairn.Options{FS: m}), cairn.ErrLocked)
	check(t, r.Close())
	w = openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	put(t, w, "a", "4")
}
