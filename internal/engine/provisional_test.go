package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// provisionalStore has three log segments, mapped, of relaxed commits, the flusher being kept from
// making tables of them.
func provisionalStore(t *testing.T, fsys vfs.FS) *Engine {
	t.Helper()
	if !arena.CanDetach {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	e := relaxedOn(t, "/db", fsys)
	e.flushing.Lock()
	t.Cleanup(e.flushing.Unlock) // before the store is closed
	for i := 0; i < 2; i++ {
		fill(t, e, fmt.Sprint("segment", i))
	}
	putOne(t, e, "last", 5, false)
	if n := len(e.commit.unsynced); n != 3 || !e.commit.mem.Seg.Mapped() {
		t.Fatalf("%d segments, mapped %v", n, e.commit.mem.Seg.Mapped())
	}
	return e
}

// fill commits until the segment changes.
func fill(t *testing.T, e *Engine, key string) {
	t.Helper()
	for seg := e.commit.mem; seg == nil || e.commit.mem == seg; seg = e.commit.mem {
		putOne(t, e, key, 50_000, false)
		if seg == nil {
			seg = e.commit.mem
		}
		if e.commit.mem != seg {
			return
		}
	}
}

func mapped() (*memfs.FS, *faultfs.FS) {
	fsys := memfs.New()
	fsys.AllowMaps()
	return fsys, faultfs.New(fsys)
}

// TestRelaxedCommitsWaitForNoSync: neither of the segment they are in, nor of that behind it.
func TestRelaxedCommitsWaitForNoSync(t *testing.T) {
	_, faults := mapped()
	syncs := faults.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true})
	e := provisionalStore(t, faults)
	if syncs.Seen() != 0 {
		t.Errorf("%d syncs of log segments", syncs.Seen())
	}
	first := e.commit.unsynced[0].Num
	if got := e.ledger.FirstProvisional(); got != first {
		t.Errorf("first provisional is %d, want %d", got, first)
	}
	// What is synced without being confirmed does not count as durable.
	for _, s := range e.commit.unsynced {
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	e.commit.mu.Lock()
	e.noteSynced()
	durable, segments := e.commit.durable, len(e.commit.unsynced)
	e.commit.mu.Unlock()
	if durable != 0 || segments != 3 {
		t.Errorf("durable up to %v, %d segments unsynced", durable, segments)
	}
	putOne(t, e, "durable", 5, true)
	if got := e.ledger.FirstProvisional(); got != 0 && got <= e.commit.mem.Seg.Num {
		t.Errorf("after a durable commit the first provisional is %d", got)
	}
	if e.commit.durable.Segment() != e.commit.mem.Seg.Num || len(e.commit.unsynced) != 1 {
		t.Errorf("durable up to %v, %d segments unsynced", e.commit.durable, len(e.commit.unsynced))
	}
}

// TestProvisionalSegmentLost: the log ends before a segment that was not confirmed. One that was is
// missed, as is one behind which a frame says that it was durable.
func TestProvisionalSegmentLost(t *testing.T) {
	fsys, _ := mapped()
	e := provisionalStore(t, fsys)
	unconfirmed := fsys.Clone()
	putOne(t, e, "durable", 5, true)
	putOne(t, e, "more", 5, false)
	confirmed := fsys.Clone()
	segments := e.commit.unsynced[:1:1]
	for _, l := range e.State().Layers {
		if l.Mem.Seg.Num != segments[0].Num {
			segments = append(segments, l.Mem.Seg)
		}
	}
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
