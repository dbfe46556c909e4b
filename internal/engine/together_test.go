package engine

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// holdFlushes lets no flush begin until the result is called, or the test ends.
func holdFlushes(t *testing.T, e *Engine) (release func()) {
	return hold(t, &e.flushing)
}

// holdMerges lets nothing be merged until the result is called, or the test ends: so the store does not
// come to rest, however slow the machine is, and there is an active memtable as long as nobody seals it.
func holdMerges(t *testing.T, e *Engine) (release func()) {
	return hold(t, &e.merging)
}

func hold(t *testing.T, mu *sync.Mutex) (release func()) {
	mu.Lock()
	release = sync.OnceFunc(mu.Unlock)
	t.Cleanup(release)
	return release
}

// onFaults configures a store in memory on whose disk faults can be set.
func onFaults() (config.Config, *faultfs.FS) {
	disk := memfs.New()
	disk.StopJournal()
	fsys := faultfs.New(disk)
	cfg := indexTestConfig("/db", 256<<20)
	cfg.FS = fsys
	return cfg, fsys
}

// fillLayers puts the same keys again and again, deletes some, and returns what is there, when so many
// memtables are sealed. Nothing is flushed meanwhile (holdFlushes).
func fillLayers(t *testing.T, e *Engine, sealed int) (want map[int]string) {
	t.Helper()
	const keys = 300
	want = map[int]string{}
	pad := make([]byte, 4000)
	for n := 0; len(e.State().Layers) <= sealed; n++ {
		key := n * 7 % keys
		var err error
		if n%11 == 3 {
			delete(want, key)
			err = commitOne(e, base.KindDelete, indexTestKey(key), nil)
		} else {
			want[key] = fmt.Sprint("value", n)
			err = commitOne(e, base.KindPut, indexTestKey(key), append([]byte(want[key]), pad...))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range keys {
		if _, ok := want[key]; !ok {
			want[key] = "deleted"
		}
	}
	return want
}

func checkLayers(t *testing.T, e *Engine, want map[int]string) {
	t.Helper()
	for key, value := range want {
		got, err := e.GetTo(testBucket, indexTestKey(key), nil)
		if value == "deleted" && err == base.ErrNotFound {
			continue
		}
		if err != nil || string(got[:min(len(got), len(value))]) != value || len(got) != len(value)+4000 {
			t.Fatalf("key %d: %d bytes %.20q, %v, want %s", key, len(got), got, err, value)
		}
	}
}

// flushAtOnce has the flusher flush what is sealed.
func flushAtOnce(e *Engine) {
	e.commit.mu.Lock()
	e.commit.flushRest = true
	e.commit.sealed.Signal()
	e.commit.mu.Unlock()
}

// TestFlushedTogether: small memtables that wait become one run, in which each key is once.
func TestFlushedTogether(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
	holdMerges(t, e)
	release := holdFlushes(t, e)
	want := fillLayers(t, e, 3)
	flushAtOnce(e)
	release()
	eventually(t, "what is sealed is flushed", func() bool { return len(e.State().Layers) <= 1 })
	runs := e.State().Version.L0
	if n := len(runs); n < 1 || n > 2 { // the active one by itself, once the store is quiet
		t.Errorf("%d runs", n)
	}
	for _, r := range runs {
		if n := r.Tables[0].Entries; n > 300 {
			t.Errorf("the table has %d entries of 300 keys", n)
		}
	}
	checkLayers(t, e, want)
}

// TestFullDiskFlushesOne: where there is no space for all of them, one memtable is flushed by itself.
func TestFullDiskFlushesOne(t *testing.T) {
	cfg, fsys := onFaults()
	var failed atomic.Int32
	cfg.OnEvent = func(ev report.Event) {
		if ev.Err != nil {
			failed.Add(1)
		}
	}
	e := mustOpen(t, cfg)
	holdMerges(t, e)
	release := holdFlushes(t, e)
	want := fillLayers(t, e, 3)
	fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.sst", Do: faultfs.NoSpace()}) // once
	flushAtOnce(e)
	release()
	eventually(t, "what is sealed is flushed", func() bool { return len(e.State().Layers) <= 1 })
	if first := e.State().Version.L0; len(first) < 2 || failed.Load() > 0 {
		t.Errorf("%d runs, %d background errors", len(first), failed.Load())
	}
	checkLayers(t, e, want)
}

// TestEmptyAboveUndecided: a spare that is too small for a commit becomes an empty sealed memtable. It is
// decided when its link is written, and the one below it not before its durable commit is synced: until
// then neither is flushed.
func TestEmptyAboveUndecided(t *testing.T) {
	fsys := faultfs.New(vfs.OS())
	cfg := indexTestConfig(t.TempDir(), 256<<20)
	cfg.FS, cfg.SyncInterval = fsys, time.Hour
	e := mustOpen(t, cfg)
	holdMerges(t, e)
	release := holdFlushes(t, e)
	commit := func(value []byte, durable bool) error {
		return commitAs(e, base.KindPut, []byte("key"), value, durable)
	}
	if err := commit([]byte("old"), false); err != nil {
		t.Fatal(err)
	}
	fillLayers(t, e, 1)
	mapsLogs(t, e)
	under := func(ready func(c *committer) bool) func() bool {
		return func() bool {
			e.commit.mu.Lock()
			defer e.commit.mu.Unlock()
			return ready(&e.commit)
		}
	}
	for spare := under(func(c *committer) bool { return c.spare != nil }); !spare(); time.Sleep(time.Millisecond) {
		putOne(t, e, "other", 4000, false)
	}
	rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true, Do: faultfs.Delay(300 * time.Millisecond)})
	done := make(chan error, 3)
	go func() { done <- tryPut(e, "first", 10, true) }()
	eventually(t, "the first sync has begun", func() bool { return rule.Seen() > 0 })
	go func() { done <- commit([]byte("new"), true) }()
	eventually(t, "the next commit waits for it", under(func(c *committer) bool { return c.queue.Waiting() > 0 }))
	layers := len(e.State().Layers)
	go func() { done <- tryPut(e, "large", 12<<20, false) }()
	eventually(t, "the spare was given up", func() bool { return len(e.State().Layers) == layers+2 })
	eventually(t, "the empty one is decided before the one below it", under(func(c *committer) bool {
		l := e.State().Layers
		if !e.decided(l[1]) || e.decided(l[2]) {
			return false
		}
		c.flushRest = true
		if n := len(e.together()); n != len(l)-3 {
			t.Errorf("%d of %d layers would be flushed, want those below the undecided one", n, len(l))
		}
		return true
	}))
	release()
	rule.Stop()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if value, err := e.GetTo(testBucket, []byte("key"), nil); err != nil || string(value) != "new" {
		t.Errorf("%q, %v", value, err)
	}
}

// waitsForTheFlush returns a store to which more was written than may wait to be flushed, and which would
// come to rest but for a flush that is under way, until it is released.
func waitsForTheFlush(t *testing.T) (e *Engine, want map[int]string, release func()) {
	for range 40 {
		e = mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
		release = holdFlushes(t, e)
		want = fillLayers(t, e, 4)
		for range 500 {
			if resting(e) {
				return e, want, release
			}
			time.Sleep(2 * time.Millisecond)
		}
		release() // there was a pause, in which it came to rest before
	}
	t.Fatal("it never would")
	return nil, nil, nil
}

func resting(e *Engine) bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.commit.flushing && e.commit.resting
}

// TestRestsAfterTheFlush: what is sealed behind a flush that is under way when the store comes to rest is
// not flushed, but merged with its table.
func TestRestsAfterTheFlush(t *testing.T) {
	e, want, release := waitsForTheFlush(t)
	release()
	eventually(t, "the store is at rest", func() bool { return len(e.State().Layers) == 0 && e.events.Flushes.Load() > 1 })
	e.merging.Lock() // whoever writes tables has counted them
	defer e.merging.Unlock()
	if flushes, merges := e.events.Flushes.Load(), e.events.Compactions.Load(); flushes != 2 || merges != 0 {
		t.Errorf("%d flushes and %d compactions, want the one that was under way and a merge of everything", flushes, merges)
	}
	checkLayers(t, e, want)
}

// TestCommitsEndResting: if there are commits while the merge of everything waits for a flush, what is
// sealed is flushed when it is due.
func TestCommitsEndResting(t *testing.T) {
	e, want, release := waitsForTheFlush(t)
	stop := make(chan struct{})
	ended := busy(t, base.KindPut, e, stop)
	eventually(t, "it does not rest any more", func() bool { return !resting(e) })
	release()
	eventually(t, "no more than may wait is sealed", func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return sealedBytes(e) <= e.cfg.WaitingBytes() || len(ended) > 0
	})
	if close(stop); <-ended {
		t.Error("it was flushed when the store came to rest")
	}
	delete(want, 0) // the busy one's
	checkLayers(t, e, want)
}

// TestReplayedTogether: what Open replays after a kill becomes one run, if it is little.
func TestReplayedTogether(t *testing.T) {
	dir := t.TempDir()
	e := mustOpen(t, indexTestConfig(dir, 256<<20))
	release := holdFlushes(t, e)
	want := fillLayers(t, e, 3)
	left := t.TempDir() // by a kill
	err := os.CopyFS(left, os.DirFS(dir))
	release()
	if err != nil {
		t.Fatal(err)
	}
	for memory, most := range map[int64]int{256 << 20: 1, 16 << 20: 4} {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(left)); err != nil {
			t.Fatal(err)
		}
		e := mustOpen(t, indexTestConfig(copied, memory))
		if n := len(e.State().Version.L0); n > most || most > 1 && n < 2 {
			t.Errorf("%d MiB: %d runs, want %d", memory>>20, n, most)
		}
		checkLayers(t, e, want)
		e.Close()
	}
}

// TestRestOnAFullDisk: where a merge of everything finds no space, the next one is of little only.
func TestRestOnAFullDisk(t *testing.T) {
	for range 20 {
		if restOnAFullDisk(t) {
			return
		}
	}
	t.Error("no merge found the disk full")
}

// restOnAFullDisk reports whether it was a merge that found the disk full: there may have been a flush before it, or it may have
// ended before the disk was full.
func restOnAFullDisk(t *testing.T) bool {
	cfg, fsys := onFaults()
	e := mustOpen(t, cfg)
	if rs := e.State(); e.restLimit(rs) <= tree.RestMerge {
		t.Errorf("%d bytes may be merged at once", e.restLimit(rs))
	}
	want := fillLayers(t, e, 2)
	full := fsys.Add(faultfs.Rule{Kinds: faultfs.Write | faultfs.Preallocate, Name: "*.sst", Sticky: true, Do: faultfs.NoSpace()})
	rests := func() bool { return len(e.State().Layers) == 0 }
	eventually(t, "there was no space", func() bool { return e.restShort.Load() || e.waitsForSpace() || rests() })
	merged := e.restShort.Load()
	if rs := e.State(); merged && e.restLimit(rs) != tree.RestMerge {
		t.Errorf("%d bytes may be merged at once on a full disk", e.restLimit(rs))
	}
	full.Stop()
	eventually(t, "the store is at rest", rests)
	checkLayers(t, e, want)
	return merged
}
