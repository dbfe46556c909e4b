package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// restingCommit commits one value for n keys of 100 B.
func restingCommit(t *testing.T, e *Engine, value byte, n int) {
	t.Helper()
	var entries frame.Entries
	defer runtime.KeepAlive(&entries) // and with it the parts
	for i := range n {
		entries.Add(base.KindPut, testBucket, indexTestKey(i), bytes.Repeat([]byte{value}, 100))
	}
	if _, err := e.Commit(&Write{Entries: entries.Parts(), Bytes: entries.Bytes(), Count: n, Durable: true}); err != nil {
		t.Fatal(err)
	}
}

// TestCommitWhileComingToRest: the active memtable has been sealed because nobody wrote,
// and before everything is merged there is a commit after all. Its memtable is not among
// those that are merged: it is still written to.
func TestCommitWhileComingToRest(t *testing.T) {
	const n = 10_000
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	restingCommit(t, e, '1', n)
	e.flushing.Lock() // neither the merge nor a flush begins
	eventually(t, "the memtable is sealed", func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.commit.mem == nil
	})
	restingCommit(t, e, '2', n/2)
	e.flushing.Unlock()
	restingCommit(t, e, '3', n/4)
	check := func(when string) {
		t.Helper()
		for i := range n {
			want := byte('1')
			switch {
			case i < n/4:
				want = '3'
			case i < n/2:
				want = '2'
			}
			if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || len(v) != 100 || v[0] != want {
				t.Fatalf("%s: key %d is %.1q (%v), want %c", when, i, v, err, want)
			}
		}
	}
	check("at once")
	eventually(t, "the store is at rest", func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.commit.mem == nil && len(e.State().Layers) == 0
	})
	check("at rest")
	restingCommit(t, e, '3', n/4)
	check("afterwards")
}

// TestRestAwaitsTheFlusher: while a memtable waits for the flusher the active one is not
// sealed, however quiet it is: it would be flushed by itself, and then merged, where one
// merge does for both.
func TestRestAwaitsTheFlusher(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	e.flushing.Lock()
	restingCommit(t, e, '1', 10_000)
	e.commit.mu.Lock()
	e.sealActive().Unref()
	e.commit.sealed.Signal()
	e.commit.mu.Unlock()
	restingCommit(t, e, '2', 10_000)
	active := func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.commit.mem != nil
	}
	for range 10 {
		if time.Sleep(pace.RestAfter); !active() {
			t.Error("sealed while another memtable waits")
			break
		}
	}
	e.flushing.Unlock()
	eventually(t, "the store is at rest", func() bool { return !active() && len(e.State().Layers) == 0 })
}

// TestStallEndsWithTheMerge: a flush has failed, a commit waits for it to be tried again, and
// before that the store comes to rest: nothing is left to be tried.
func TestStallEndsWithTheMerge(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	restingCommit(t, e, '1', 10_000)
	done := make(chan error)
	go func() {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		e.flushErr = errors.New("the disk is on fire")
		done <- e.stall()
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("after the merge: %v", err)
		}
	case <-time.After(10 * time.Second):
		e.setFlushError(nil) // or Close waits as well
		<-done
		t.Fatal("still waiting")
	}
}

// TestQuickTables: while a small store is written to, what is merged into its last level is
// compressed with little effort; when it is at rest nothing of that is left.
func TestQuickTables(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	quick := func() (n int) {
		for _, left := range e.merger.Leftovers.All() {
			if left.Quick {
				n++
			}
		}
		return n
	}
	for i := 0; quick() == 0; i++ {
		if i == 1000 {
			t.Fatal("nothing was ever merged quickly")
		}
		restingCommit(t, e, byte(i), 5000)
	}
	eventually(t, "all is compressed well", func() bool { return quick() == 0 && e.Stats().CompactionDebt == 0 })
}

// TestRestAfterAMergeForScans: a store whose last commits were merged for scans, with the
// spare kept for the next one, comes to rest as any other does: no spare and no log is left.
func TestRestAfterAMergeForScans(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	restingCommit(t, e, '0', 5000)
	restingCommit(t, e, '1', 5000)
	e.NoteWalked(1 << 20)
	merged := false
	for range 100 { // before it rests by itself; the compactor may be about to look, too
		merged = merged || e.mergeForScans()
	}
	if !merged {
		t.Log("the compactor did it")
	}
	eventually(t, "nothing is left of the log", func() bool {
		c := &e.commit
		c.mu.Lock()
		defer c.mu.Unlock()
		segments, _ := e.logs.Live()
		return c.mem == nil && c.spare == nil && segments == 0 && len(e.State().Layers) == 0
	})
	restingCommit(t, e, '2', 5000)
	if v, err := e.GetTo(testBucket, indexTestKey(7), nil); err != nil || v[0] != '2' {
		t.Fatalf("afterwards: %.1q %v", v, err)
	}
}

// TestMergeForScansGivesWay: where a memtable waits to be flushed, or a commit for room, or
// somebody compacts, nothing is merged for scans, and what they have walked is not spent.
func TestMergeForScansGivesWay(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	e.stalled.Add(1)
	restingCommit(t, e, '0', 10_000)
	e.NoteWalked(1 << 20)
	for range 50 {
		if e.mergeForScans() {
			t.Fatal("merged although a commit waits")
		}
	}
	if held := e.State().HeldBytes(); !e.walked.PayFor(held*19/10, held) {
		t.Error("what scans have walked is spent")
	}
	e.stalled.Add(-1)
	e.merging.Lock()
	e.mergeForScans()
	e.merging.Unlock()
	eventually(t, "the memtable is made a table all the same", func() bool { return len(e.State().Layers) == 0 })
}

// TestLoneRunStays: what scans have walked pays for no merge that leaves them as many runs, which would only take the
// places away that rows sorted beforehand lead to.
func TestLoneRunStays(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	holdMerges(t, e)
	restingCommit(t, e, '0', 5000)
	if _, err := e.flushAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	e.NoteWalked(1 << 20)
	e.merging.Unlock()
	did, err := e.compactOnce(false, false)
	e.merging.Lock()
	if did || err != nil {
		t.Errorf("merged, %v:\n%s", err, e.State().Version)
	}
}

// TestDeletesInPauses: small deletes of keys that are not there, with pauses between them that are shorter than a second, do not
// have a small store of large values written again in each. It comes to rest nevertheless.
func TestDeletesInPauses(t *testing.T) {
	const values, rounds = 20, 24
	e := mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
	value := make([]byte, 1<<20)
	for i := range values {
		rand.Read(value)
		if err := commitOne(e, base.KindPut, indexTestKey(2*i), value); err != nil {
			t.Fatal(err)
		}
	}
	pause := func() {
		did, err := true, error(nil)
		if _, err = e.flushAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for did && err == nil {
			did, err = e.compactOnce(true, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pause()
	before := e.Stats().CompactedBytes
	for range rounds {
		for i := range values {
			if err := commitOne(e, base.KindDelete, indexTestKey(2*i+1), nil); err != nil {
				t.Fatal(err)
			}
		}
		pause()
	}
	if written := e.Stats().CompactedBytes - before; written > rounds/2*values<<20 {
		t.Errorf("%d bytes written for the sake of deletes that hide nothing", written)
	}
	eventually(t, "all is merged", func() bool { return e.Stats().CompactionDebt == 0 })
}

// TestCloseCompressesInHaste: Close compresses the last level as quickly as all others, and
// leaves one run of puts as it is. The next time the store is at rest, or somebody asks, it is
// compressed well, and then stays so if it is closed with a little more.
func TestCloseCompressesInHaste(t *testing.T) {
	for _, ask := range []bool{false, true} {
		dir := t.TempDir()
		e := mustOpen(t, indexTestConfig(dir, 64<<20))
		restingCommit(t, e, 'x', 5000)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if got := codecOf(t, dir); got != block.S2 {
			t.Errorf("after Close: %s", got)
		}
		e = mustOpen(t, indexTestConfig(dir, 64<<20))
		if ask {
			if err := e.Compact(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "it is compressed well", func() bool { return e.Stats().Compactions == 1 && e.Stats().CompactionDebt == 0 })
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if got := codecOf(t, dir); got != block.Zstd {
			t.Errorf("at rest, and closed again: %s", got)
		}
		e = mustOpen(t, indexTestConfig(dir, 64<<20))
		restingCommit(t, e, 'y', 600) // more than a tenth of it: everything is merged
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if got := codecOf(t, dir); got != block.Zstd {
			t.Errorf("closed with a little more: %s", got)
		}
	}
}

// TestCloseInHasteOfOthers: a store whose tables are not compressed at all, or are of level 0, is
// closed in haste, however small it is.
func TestCloseInHasteOfOthers(t *testing.T) {
	dir := t.TempDir()
	cfg := indexTestConfig(dir, 64<<20)
	cfg.Profile = tablefiles.ProfileNone
	e := mustOpen(t, cfg)
	restingCommit(t, e, 'x', 5000)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, indexTestConfig(dir, 64<<20))
	restingCommit(t, e, 'y', 600)
	if e.closesWell() {
		t.Error("compressed well, of tables that are not compressed")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	e = mustOpen(t, indexTestConfig(dir, 64<<20))
	restingCommit(t, e, 'x', 5000)
	if _, err := e.flushAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	restingCommit(t, e, 'y', 600)
	switch well := e.closesWell(); {
	case len(e.State().Version.L0) == 0:
		t.Log("NOT LOOKED AT: the table of level 0 was merged before")
	case well:
		t.Error("compressed well, of tables of level 0")
	}
}

// TestCloseIsNoBackgroundError: a store that owes a merge, and that nobody has written to, is closed while the compactor
// is about to begin a manifest for that. It gives up, and nothing has failed.
func TestCloseIsNoBackgroundError(t *testing.T) {
	cfg := indexTestConfig(t.TempDir(), 64<<20)
	e := mustOpen(t, cfg)
	restingCommit(t, e, 'x', 5000)
	if err := e.Close(); err != nil { // compresses in haste
		t.Fatal(err)
	}
	var told atomic.Pointer[report.Event]
	cfg.OnEvent = func(ev report.Event) {
		if ev.Err != nil {
			told.Store(&ev)
		}
	}
	e = mustOpen(t, cfg)
	release := holdMerges(t, e)
	if e.ledger.Live() {
		t.Skip("NOT LOOKED AT: the table was compressed well before")
	}
	e.commit.mu.Lock()
	e.commit.closing = true // as Close begins
	e.commit.mu.Unlock()
	release()
	did, err := true, error(nil)
	for did && err == nil { // first it finds out what there is to merge
		did, err = e.compactOnce(true, true)
	}
	if !errors.Is(err, merger.ErrGivenUp) {
		t.Errorf("the merge ends with %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if ev := told.Load(); ev != nil {
		t.Errorf("%v: %v", ev.Kind, ev.Err)
	}
}

// codecOf returns the codec of the keys of the first block of a closed store's only table.
func codecOf(t *testing.T, dir string) block.Codec {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return block.Codec(b[base.FileHeaderBytes])
}

// TestBacklog: while nothing is flushed, commits go on until three memtables wait, or more
// where there is memory for them.
func TestBacklog(t *testing.T) {
	for _, c := range []struct {
		memory int64
		waits  bool // with four layers
	}{{16 << 20, true}, {2 << 30, false}} {
		e := mustOpen(t, indexTestConfig(t.TempDir(), c.memory))
		e.flushing.Lock()
		layers := func() int { return len(e.State().Layers) }
		var done sync.WaitGroup
		done.Go(func() {
			for i := 0; i < 200 && layers() < 6; i++ {
				restingCommit(t, e, byte(i), 5000)
			}
		})
		for deadline := time.Now().Add(20 * time.Second); layers() < 6 && e.stalled.Load() == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if n, waits := layers(), e.stalled.Load() > 0; waits != c.waits || waits && n != 4 {
			t.Errorf("%d bytes of memory: with %d layers a commit waits: %v", c.memory, n, waits)
		}
		e.flushing.Unlock()
		done.Wait()
	}
}

// heldFS frees the space of files that were removed when it is told to.
type heldFS struct {
	vfs.FS
	hold chan bool
}

func (h heldFS) Unlink(name string) (free func(), err error) {
	return func() { <-h.hold }, h.Remove(name)
}

// TestCloseDoesNotAwaitSpace: where the device is told of it, freeing that of the log takes
// longer than all else of closing a small store.
func TestCloseDoesNotAwaitSpace(t *testing.T) {
	dir := t.TempDir()
	cfg := indexTestConfig(dir, 64<<20)
	hold := make(chan bool)
	defer close(hold)
	cfg.FS = heldFS{cfg.FS, hold}
	e := mustOpen(t, cfg)
	restingCommit(t, e, 'x', 10)
	done := make(chan error)
	go func() { done <- e.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close waits")
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(names) != 0 {
		t.Errorf("after Close: %v, %v", names, err)
	}
}

// TestSmallMemtablesWait: while there are commits, a few small sealed memtables are not flushed;
// when there are none any more, they become one table together with the active one.
func TestSmallMemtablesWait(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
	value := bytes.Repeat([]byte{1}, 16<<10)
	n := 0
	release := holdMerges(t, e)
	for ; len(e.State().Layers) < 3; n++ {
		if err := commitOne(e, base.KindPut, indexTestKey(n), value); err != nil {
			t.Fatal(err)
		}
	}
	if flushes := e.events.Flushes.Load(); flushes != 0 {
		t.Errorf("%d flushes between commits", flushes)
	}
	release()
	eventually(t, "the store rests", func() bool { return len(e.State().Layers) == 0 && e.events.Flushes.Load() > 0 })
	if flushes := e.events.Flushes.Load(); flushes != 1 {
		t.Errorf("%d flushes, want one merge of everything", flushes)
	}
	for i := range n {
		if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || !bytes.Equal(v, value) {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}

// TestPartOfAMergeFails: of the parts that processors merge side by side one cannot be written. The
// others' tables go, the memtables are flushed one by one, or Close says what is wrong, and nothing is lost.
func TestPartOfAMergeFails(t *testing.T) {
	for _, at := range []int64{1, 4, 100, 170, 185, 190, 195} { // of about 200: before and after another part has been written
		for _, closing := range []bool{false, true} {
			disk := memfs.New()
			disk.StopJournal()
			fsys := faultfs.New(disk)
			e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, SyncInterval: time.Hour, Memory: 256 << 20, Relaxed: true})
			value := make([]byte, 8<<10)
			const count = 1600
			rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.sst", At: at, Do: faultfs.Fail(errors.New("injected"))})
			release := holdMerges(t, e)
			for i := range count {
				rand.Read(value)
				copy(value, indexTestKey(i))
				if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
					t.Fatal(err)
				}
			}
			release()
			if !closing {
				eventually(t, "it rests", func() bool { segments, _ := e.logs.Live(); return segments == 0 })
				if at < 180 && rule.Fired() == 0 {
					t.Error("no write failed")
				}
			}
			err := e.Close()
			rested := e.events.LastError.Load() != nil // before Close got to it: it tried again
			if failed := closing && !rested && rule.Fired() > 0; (err != nil) != failed {
				t.Errorf("write %d, %d failed: close: %v", at, rule.Fired(), err)
			}
			rule.Stop()
			if err == nil { // else what is left goes when it is opened
				e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 256 << 20, ReadOnly: true})
				want := len(e.State().Handles)
				names, _ := fsys.List("/db")
				tables := 0
				for _, name := range names {
					if kind, _ := base.ParseFileName(name); kind == base.FileTable {
						tables++
					}
				}
				if e.Close(); tables != want {
					t.Errorf("write %d: %d table files, %d tables", at, tables, want)
				}
			}
			e = mustOpen(t, config.Config{Dir: "/db", FS: fsys, SyncInterval: time.Hour, Memory: 256 << 20})
			for i := range count {
				if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || !bytes.HasPrefix(v, indexTestKey(i)) {
					t.Fatalf("write %d: key %d: %v", at, i, err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRestIsPrepared: what is about to be merged is sorted, and memory for it at hand, unless there
// is a commit.
func TestRestIsPrepared(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
	release := holdMerges(t, e)
	value := bytes.Repeat([]byte{1}, 1<<10)
	for i := range 1000 {
		if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
			t.Fatal(err)
		}
	}
	used := func() int64 { return e.budget.UsedBy(arena.ClassPages) }
	before := used()
	e.prepareRest(e.Visible() - 1)
	if n := used(); n != before {
		t.Errorf("pages take %d bytes, %d before, though there was a commit", n, before)
	}
	e.prepareRest(e.Visible())
	if n := used(); n < before+arena.HugeBytes {
		t.Errorf("pages take %d bytes, %d before", n, before)
	}
	for _, l := range e.State().Layers {
		if l.Mem.Len() > 1 && l.Mem.Part(1, 2) == nil {
			t.Errorf("a memtable of %d records is not sorted", l.Mem.Len())
		}
	}
	release()
	eventually(t, "the store rests", func() bool { return len(e.State().Layers) == 0 })
}

// TestHollowLogIsLetGo: of a store that Compact has emptied, or left nothing to do, no log is left, nor space for what
// might be in it, once nobody writes; a store that is written to again goes on.
func TestHollowLogIsLetGo(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		disk := memfs.New()
		disk.StopJournal()
		cfg := indexTestConfig("/db", 256<<20)
		cfg.FS, cfg.Relaxed = disk, relaxed
		e := mustOpen(t, cfg)
		for round := range 2 {
			for i := range 400 {
				if err := commitOne(e, base.KindPut, indexTestKey(i), bytes.Repeat([]byte{byte(round)}, 40<<10)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 400 {
				if err := commitOne(e, base.KindDelete, indexTestKey(i), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Compact(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "little of the disk is used", func() bool { return disk.Used() < 512<<10 })
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMergeOfEverythingIsCounted: all that a merge of memtables and tables had written counted as flushed.
func TestMergeOfEverythingIsCounted(t *testing.T) {
	for range 20 {
		if countsMergeOfEverything(t) {
			return
		}
	}
	t.Skip("NOT SHOWN: the machine paused between commits every time")
}

// countsMergeOfEverything reports whether everything was merged by Close, and nothing in a pause before.
func countsMergeOfEverything(t *testing.T) bool {
	cfg, _ := onFaults()
	e := mustOpen(t, cfg)
	put := func(from, to int) {
		t.Helper()
		value := make([]byte, 1000)
		for i := from; i < to; i++ {
			rand.Read(value)
			if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, 3000)
	if _, err := e.flushAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	flushed, compacted := e.events.FlushedBytes.Load(), e.events.CompactedBytes.Load()
	put(2900, 4000) // some are there already: what is hidden is for Close to remove
	if !e.merging.TryLock() {
		return false
	}
	e.merging.Unlock()
	if e.events.FlushedBytes.Load() != flushed || e.events.CompactedBytes.Load() != compacted {
		return false
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	flushed, compacted = e.events.FlushedBytes.Load()-flushed, e.events.CompactedBytes.Load()-compacted
	if flushed < 1_000_000 || flushed > 1_400_000 || compacted < 2_700_000 || compacted > 3_300_000 {
		t.Errorf("flushed %d of 1,100,000 bytes, merged %d of 3,000,000", flushed, compacted)
	}
	return true
}
