package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// provisionalStore has three log segments, mapped, of relaxed commits, the flusher being kept from
// making tables of them.
func provisionalStore(t *testing.T, fsys vfs.FS) *Engine {
	t.Helper()
	e := relaxedOn(t, "/db", fsys)
	holdFlushes(t, e)
	holdMerges(t, e)
	for i := 0; i < 2; i++ {
		fill(t, e, fmt.Sprint("segment", i))
	}
	putOne(t, e, "last", 5, false)
	if n := len(e.commit.log.Segments(nil)); n != 3 || !e.commit.mem.Seg.Mapped() {
		t.Fatalf("%d segments, mapped %v", n, e.commit.mem.Seg.Mapped())
	}
	return e
}

// fill commits until the segment changes.
func fill(t *testing.T, e *Engine, key string) {
	t.Helper()
	putOne(t, e, key, 50_000, false)
	for seg := e.commit.mem; e.commit.mem == seg; {
		putOne(t, e, key, 50_000, false)
	}
}

// mapped returns a file system whose log files can be mapped, and one over it that can fail.
func mapped(t *testing.T) (*memfs.FS, *faultfs.FS) {
	t.Helper()
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	fsys := memfs.New()
	fsys.AllowMaps()
	return fsys, faultfs.New(fsys)
}

// TestRelaxedCommitsWaitForNoSync: neither of the segment they are in, nor of that behind it.
func TestRelaxedCommitsWaitForNoSync(t *testing.T) {
	_, faults := mapped(t)
	syncs := faults.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true})
	e := provisionalStore(t, faults)
	if syncs.Seen() != 0 {
		t.Errorf("%d syncs of log segments", syncs.Seen())
	}
	first := e.commit.log.Segments(nil)[0].Num
	if got := e.ledger.FirstProvisional(); got != first {
		t.Errorf("first provisional is %d, want %d", got, first)
	}
	// What is synced without being confirmed does not count as durable.
	for _, s := range e.commit.log.Segments(nil) {
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	e.commit.mu.Lock()
	e.commit.log.Advance()
	durable, segments := e.commit.log.End(), len(e.commit.log.Segments(nil))
	e.commit.mu.Unlock()
	if durable != 0 || segments != 3 {
		t.Errorf("durable up to %v, %d segments unsynced", durable, segments)
	}
	putOne(t, e, "durable", 5, true)
	if got := e.ledger.FirstProvisional(); got != 0 && got <= e.commit.mem.Seg.Num {
		t.Errorf("after a durable commit the first provisional is %d", got)
	}
	if e.commit.log.End().Segment() != e.commit.mem.Seg.Num || len(e.commit.log.Segments(nil)) != 1 {
		t.Errorf("durable up to %v, %d segments unsynced", e.commit.log.End(), len(e.commit.log.Segments(nil)))
	}
}

// TestProvisionalSegmentLost: the log ends before a segment that was not confirmed. One that was is
// missed, as is one behind which a frame says that it was durable.
func TestProvisionalSegmentLost(t *testing.T) {
	fsys, _ := mapped(t)
	e := provisionalStore(t, fsys)
	unconfirmed := fsys.Clone()
	putOne(t, e, "durable", 5, true)
	putOne(t, e, "more", 5, false)
	confirmed := fsys.Clone()
	segments := e.commit.log.Segments(nil)[:1:1]
	for _, l := range e.State().Layers {
		if l.Mem.Seg.Num != segments[0].Num {
			segments = append(segments, l.Mem.Seg)
		}
	}
	first := slices.MinFunc(segments, func(a, b *wal.Segment) int { return cmp.Compare(a.Num, b.Num) }).Num
	for _, seg := range segments {
		name := fmt.Sprintf("/db/%06d.log", seg.Num)
		for what, lose := range map[string]func(fsys *memfs.FS) error{
			"missing":    func(fsys *memfs.FS) error { return fsys.Remove(name) },
			"empty":      func(fsys *memfs.FS) error { return fsys.Truncate(name, 0) },
			"cut":        func(fsys *memfs.FS) error { return fsys.Truncate(name, 4096) },
			"headerless": func(fsys *memfs.FS) error { return fsys.Corrupt(name, 20, 0x80) },
		} {
			disk := unconfirmed.Clone()
			if err := lose(disk); err != nil {
				t.Fatal(err)
			}
			again, err := Open(config.Config{Dir: "/db", FS: disk, Memory: 64 << 20, SyncInterval: time.Hour})
			if what == "missing" && seg.Num == first { // the manifest's snapshot names it
				if !errors.Is(err, base.ErrCorrupt) {
					t.Errorf("segment %d missing, though its name is older than the manifest's: %v", seg.Num, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("segment %d %s, provisional: %v", seg.Num, what, err)
				continue
			}
			if again.Visible() >= e.Visible()-2 || what != "missing" && what != "empty" && again.recovery.DroppedBytes == 0 {
				t.Errorf("segment %d %s: visible is %d, %d bytes dropped", seg.Num, what, again.Visible(), again.recovery.DroppedBytes)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			disk = confirmed.Clone()
			if err := lose(disk); err != nil {
				t.Fatal(err)
			}
			if again, err := Open(config.Config{Dir: "/db", FS: disk, Memory: 64 << 20, SyncInterval: time.Hour}); !errors.Is(err, base.ErrCorrupt) {
				t.Errorf("segment %d %s, confirmed: %v", seg.Num, what, err)
				again.Close()
			}
		}
	}
}

// tryPut is putOne that returns the error.
func tryPut(e *Engine, key string, size int, durable bool) error {
	return commitAs(e, base.KindPut, []byte(key), make([]byte, size), durable)
}

// reopened opens what a power cut leaves, and reports how much of it is visible.
func reopened(t *testing.T, fsys *memfs.FS, choice memfs.Choice) uint64 {
	t.Helper()
	again := mustOpen(t, config.Config{Dir: "/db", FS: fsys.Crash(choice), Memory: 64 << 20, SyncInterval: time.Hour})
	defer again.Close()
	return again.Visible()
}

// TestSpareGivenUpAtRest: a commit that comes while the spare of a store at rest is synced, and
// given up, does not confirm it before that.
func TestSpareGivenUpAtRest(t *testing.T) {
	fsys, faults := mapped(t)
	e := relaxedOn(t, "/db", faults)
	for i := range 12 {
		putOne(t, e, fmt.Sprint("x", i), 50_000, false)
	}
	c := &e.commit
	c.mu.Lock()
	for c.preparing {
		c.cond.Wait()
	}
	spare := c.spare
	c.mu.Unlock()
	if spare == nil {
		t.Fatal("no spare was made")
	}
	slow := faults.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: fmt.Sprintf("%06d.log", spare.Seg.Num), Do: faultfs.Delay(200 * time.Millisecond)})
	for wait := 0; slow.Fired() == 0; wait++ {
		if time.Sleep(time.Millisecond); wait > 20_000 {
			t.Fatal("the spare was not given up, or not synced")
		}
	}
	putOne(t, e, "durable", 5, true)
	if got := reopened(t, fsys, memfs.SyncedOnly()); got < e.Visible() {
		t.Errorf("%d of %d are there", got, e.Visible())
	}
}

// TestConfirmOnAFullDisk: there is always space in the manifest to confirm segments, so a full disk
// does not poison the store, whichever segment it is that was the last to be made.
func TestConfirmOnAFullDisk(t *testing.T) {
	for n := range 40 {
		_, faults := mapped(t)
		e := mustOpen(t, config.Config{Dir: "/db", FS: faults, Memory: 2 << 20, Relaxed: true, SyncInterval: time.Hour})
		release := holdMerges(t, e)
		putOne(t, e, "first", 5, false)
		for range n + 1 {
			for seg := e.commit.mem; e.commit.mem == seg; {
				putOne(t, e, "k", 5_000, false)
			}
		}
		e.flushing.Lock() // a flush that fails now would have the put refused
		faults.Add(faultfs.Rule{Kinds: faultfs.Preallocate, Sticky: true, Do: faultfs.NoSpace()})
		if err := tryPut(e, "durable", 10, true); err != nil { // there is room for it in the segment
			t.Errorf("after %d segments: %v", n+1, err)
		}
		faults.Heal()
		e.flushing.Unlock()
		release()
		if err := e.Close(); err != nil {
			t.Errorf("after %d segments: Close: %v", n+1, err)
		}
	}
}

// TestConfirmNotAttempted: a sync of the directory that was not tried is tried again, by Sync the
// next time, for a durable commit at once.
func TestConfirmNotAttempted(t *testing.T) {
	fsys, faults := mapped(t)
	e := provisionalStore(t, faults)
	not := faultfs.Rule{Kinds: faultfs.SyncDir, Do: faultfs.Fail(vfs.ErrNotAttempted)}
	faults.Add(not)
	if err := e.Sync(); !errors.Is(err, vfs.ErrNotAttempted) {
		t.Errorf("Sync: %v", err)
	}
	if e.commit.log.End() != 0 {
		t.Errorf("durable up to %v", e.commit.log.End())
	}
	faults.Add(not)
	if err := tryPut(e, "b", 5, true); err != nil {
		t.Errorf("a durable commit: %v", err)
	}
	if first := e.ledger.FirstProvisional(); first != 0 && first <= e.commit.mem.Seg.Num {
		t.Errorf("after a durable commit the first provisional is %d", first)
	}
	if got := reopened(t, fsys, memfs.SyncedOnly()); got < e.Visible() {
		t.Errorf("%d of %d are there", got, e.Visible())
	}
}

// TestSparesTooSmall: what is larger than any spare leaves empty segments behind it.
func TestSparesTooSmall(t *testing.T) {
	for _, memory := range []int64{1 << 20, 16 << 20} {
		fsys, faults := mapped(t)
		e := mustOpen(t, config.Config{Dir: "/db", FS: faults, Memory: memory, Relaxed: true, SyncInterval: time.Hour})
		for i := range 100 {
			putOne(t, e, fmt.Sprint("k", i%50), int(memory/16)-200, i%50 == 49)
			putOne(t, e, fmt.Sprint("s", i%50), 10, false)
		}
		for seed := range uint64(20) {
			if got := reopened(t, fsys, memfs.Random(seed)); got < e.Visible()-1 { // all but the last is durable
				t.Errorf("Memory %d: %d of %d are there", memory, got, e.Visible())
			}
		}
	}
}

// TestDurableSegmentConfirms: a segment that is made durable before it is used confirms those before
// it, whose files are synced for that.
func TestDurableSegmentConfirms(t *testing.T) {
	fsys, _ := mapped(t)
	e := provisionalStore(t, fsys)
	const size = 64 << 10
	m, err := e.segments.Make(segments.Plan{Size: size, Records: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unref()
	defer m.Seg.Drop()
	if got := e.ledger.FirstProvisional(); m.Seg.Mapped() || got != 0 {
		t.Errorf("mapped %v, the first provisional is %d", m.Seg.Mapped(), got)
	}
	if got := reopened(t, fsys, memfs.SyncedOnly()); got < e.Visible() {
		t.Errorf("%d of %d are there", got, e.Visible())
	}
}
