package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// busy commits something small every few milliseconds, so that the store does not rest, until stop is
// closed, or for some seconds, which it reports.
func busy(t *testing.T, kind base.Kind, e *Engine, stop chan struct{}) (ended chan bool) {
	ended = make(chan bool, 1)
	go func() {
		for range 600 {
			select {
			case <-stop:
				ended <- false
				return
			case <-time.After(5 * time.Millisecond):
				if err := commitOne(e, kind, indexTestKey(0), nil); err != nil {
					t.Error(err)
				}
			}
		}
		ended <- true
	}()
	return ended
}

// TestCompactFindsTheDiskFull while small memtables wait, and the flusher sleeps. The next put waits
// for another attempt, and nobody woke the flusher for it.
func TestCompactFindsTheDiskFull(t *testing.T) {
	disk := memfs.New()
	disk.StopJournal()
	fsys := faultfs.New(disk)
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, SyncInterval: time.Second, Memory: 256 << 20})
	value := make([]byte, 16<<10)
	for n := 0; len(e.State().Layers) < 3; n++ {
		if err := commitOne(e, base.KindPut, indexTestKey(n), value); err != nil {
			t.Fatal(err)
		}
	}
	rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Create | faultfs.Write | faultfs.Preallocate, Name: "*.sst", Sticky: true, Do: faultfs.NoSpace()})
	if err := e.Compact(t.Context(), nil, nil); !errors.Is(err, base.ErrNoSpace) {
		t.Fatal(err)
	}
	rule.Stop()
	stop := make(chan struct{})
	ended := busy(t, base.KindDelete, e, stop) // deletes are let in
	if err := commitOne(e, base.KindPut, indexTestKey(1), value); err != nil {
		t.Error(err)
	}
	if close(stop); <-ended {
		t.Error("the put waited for the store to rest")
	}
}

// slowLogs is a file system on which a write to a log is held up.
type slowLogs struct {
	vfs.FS
	armed        atomic.Bool
	inside, open chan struct{}
}

func (s *slowLogs) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = heldUp{f, s}
	}
	return f, err
}

type heldUp struct {
	vfs.File
	s *slowLogs
}

func (f heldUp) WriteAt(p []byte, off int64) (int, error) {
	if len(p) > 100_000 && p[5000] == 'h' && f.s.armed.CompareAndSwap(true, false) {
		close(f.s.inside)
		<-f.s.open
	}
	return f.File.WriteAt(p, off)
}

// TestSealedBeforeItIsWritten: whether a memtable is too large to wait was asked when it was sealed,
// of what was written of it by then, and then not before the next one was sealed.
func TestSealedBeforeItIsWritten(t *testing.T) {
	disk := memfs.New()
	disk.StopJournal()
	fsys := &slowLogs{FS: disk, inside: make(chan struct{}), open: make(chan struct{})}
	e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, SyncInterval: time.Second, Memory: 256 << 20})
	value := make([]byte, 200_000) // shorter than what goes ahead
	active := func() (seg uint64, capacity int) {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		if e.commit.mem == nil {
			return 0, 0
		}
		return e.commit.mem.Seg.Num, e.commit.mem.Seg.Capacity()
	}
	n := 0
	put := func(value []byte) {
		if err := commitOne(e, base.KindPut, indexTestKey(n), value); err != nil {
			t.Error(err)
		}
	}
	for _, capacity := active(); capacity < 16<<20; _, capacity = active() { // twice of what may wait
		put(value)
		n++
	}
	seg, _ := active()
	done := make(chan struct{}, 1000)
	held := make([]byte, len(value))
	held[6000] = 'h'
	for i := range held {
		held[i] = 'h'
	}
	fsys.armed.Store(true)
	go func() { put(held); done <- struct{}{} }()
	<-fsys.inside
	begun := 1
	for now := seg; now == seg; now, _ = active() {
		go func() { put(value); done <- struct{}{} }()
		begun++
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // the flusher has looked
	close(fsys.open)
	for range begun {
		<-done
	}
	stop := make(chan struct{})
	ended := busy(t, base.KindPut, e, stop)
	eventually(t, "it is flushed", func() bool { return len(e.State().Layers) < 2 || len(ended) > 0 })
	if close(stop); <-ended {
		t.Error("it was flushed when the store came to rest")
	}
}

// sealedBytes returns how much log sealed memtables stand for. commit.mu is held.
func sealedBytes(e *Engine) (n int64) {
	for _, l := range e.State().Layers {
		if l.Mem != nil && l.Mem != e.commit.mem {
			n += l.Mem.LogBytes()
		}
	}
	return n
}

// dueInBurst puts values of that size, of so many keys, in a burst, until more is sealed than waits
// else, and returns whether it is to be flushed.
func dueInBurst(t *testing.T, e *Engine, size, keys int) bool {
	t.Helper()
	c := &e.commit
	for n := range 100_000 {
		e.pace.Burst.Begin()
		putOne(t, e, fmt.Sprint("key", n%keys), size, false)
		c.mu.Lock()
		if c.mem != nil && !c.flushRest && sealedBytes(e) > e.cfg.WaitingBytes() {
			defer c.mu.Unlock()
			e.pace.Burst.Begin()
			return e.flushDue()
		}
		c.mu.Unlock()
	}
	t.Fatal("nothing waits")
	return false
}

// TestBurst: in a burst more memtables wait to be flushed, where their logs are mapped, the records are
// bulky, and most of the keys are different.
func TestBurst(t *testing.T) {
	const many = 1 << 30
	for _, c := range []struct {
		what       string
		mapped     bool
		size, keys int
		due        bool
	}{
		{"bulky", true, 4000, many, false},
		{"of half a kilobyte", true, 600, many, false},
		{"small", true, 400, many, true},
		{"the same again and again", true, 4000, 100, true},
		{"not mapped", false, 4000, many, true},
	} {
		disk := memfs.New()
		disk.StopJournal()
		if c.mapped {
			disk.AllowMaps()
		}
		e := relaxedOn(t, "/db", disk)
		if due := dueInBurst(t, e, c.size, c.keys); due != (c.due || !arena.CanDetach) { // where no log is mapped
			t.Errorf("%s: to be flushed: %v", c.what, due)
		}
	}
}

// TestBurstEnds: what waits is flushed when the burst is over, though nothing more is sealed, and small
// records have come behind the bulky ones.
func TestBurstEnds(t *testing.T) {
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	disk := memfs.New()
	disk.StopJournal()
	disk.AllowMaps()
	e := relaxedOn(t, "/db", disk)
	if dueInBurst(t, e, 4000, 1<<30) {
		t.Fatal("nothing waits in a burst")
	}
	active, bulky := e.commit.mem, e.State().BulkyLayers()
	for n := range 2000 {
		e.pace.Burst.Begin()
		putOne(t, e, fmt.Sprint("small", n), 10, false)
	}
	if now := e.State().BulkyLayers(); e.commit.mem == active && (now != bulky || bulky == 0) {
		t.Errorf("%d bulky memtables wait, before small records came %d", now, bulky)
	}
	stop := make(chan struct{})
	ended := busy(t, base.KindPut, e, stop)
	eventually(t, "it is flushed", func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return sealedBytes(e) <= e.cfg.WaitingBytes() || len(ended) > 0
	})
	if close(stop); <-ended {
		t.Error("it was flushed when the store came to rest")
	}
}

// TestBurstRests: what a burst has left is merged at once, when there have been no commits for longer
// than elsewhere.
func TestBurstRests(t *testing.T) {
	for range 10 {
		if burstRests(t) {
			return
		}
	}
	t.Skip("NOT SHOWN: the machine paused between commits every time")
}

// burstRests reports whether commits followed each other, so that something was shown.
func burstRests(t *testing.T) bool {
	begun := make(chan time.Time, 100) // flushes
	note := func(ev report.Event) {
		if ev.Kind == report.EventFlush {
			begun <- time.Now().Add(-ev.Duration)
		}
	}
	e := mustOpen(t, config.Config{Dir: t.TempDir(), FS: vfs.OS(), Memory: 1 << 30, Relaxed: true, SyncInterval: time.Hour, OnEvent: note})
	putOne(t, e, "first", 10, false)
	mapsLogs(t, e)
	n, last, longest := 0, time.Now(), time.Duration(0)
	for ; e.State().LogBytes() < tree.RestMerge*5/4; n++ {
		e.pace.Burst.Begin()
		putOne(t, e, fmt.Sprint("key", n), 16<<10, false)
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	eventually(t, "the store rests", func() bool { return len(e.State().Layers) == 0 })
	pause := (<-begun).Sub(last)
	if flushes := e.events.Flushes.Load(); flushes != 1 || pause < pace.BurstRestAfter {
		t.Logf("%d flushes, the first after %v; the longest commit took %v", flushes, pause, longest)
		if longest < pace.RestAfter/2 {
			t.Error("it did not wait for the end of the burst")
		}
		return false
	}
	for i := range n {
		if v, err := e.GetTo(testBucket, fmt.Append(nil, "key", i), nil); err != nil || len(v) != 16<<10 {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
	return true
}
