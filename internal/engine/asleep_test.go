package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
)

// TestAsleep: after long quiet nobody in the background looks at the store any more but once in a while, and whoever
// commits then has everything done as before: what is relaxed is synced, and the store comes to rest.
func TestAsleep(t *testing.T) {
	defer func(d drowsiness) { drowsy = d }(drowsy)
	drowsy = drowsiness{300 * time.Millisecond, time.Hour}
	cfg := indexTestConfig(t.TempDir(), 64<<20)
	cfg.SyncInterval = 50 * time.Millisecond
	e := mustOpen(t, cfg)
	synced := func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		if e.commit.mem == nil {
			return true
		}
		end, _ := e.commit.mem.Seg.Tail()
		return e.commit.mem.Seg.Synced() == end
	}
	for round := range 3 {
		eventually(t, "asleep", func() bool { return e.syncer.Awaits() && e.asleep.Load() })
		if round > 0 { // at once: a long pause between two commits would have it sleep again
			if err := commitOne(e, base.KindPut, indexTestKey(round), make([]byte, round*400_000)); err != nil {
				t.Fatal(err)
			}
		}
		if round > 0 && e.syncer.Awaits() {
			t.Error("the syncer still waits")
		}
		eventually(t, "synced", synced)
		eventually(t, "at rest", func() bool { return round == 0 || e.State().Version.NumTables() > 0 && len(e.State().Layers) == 0 })
	}
}

// TestCompactWhileAsleep: the files that a compaction leaves go at once though nobody has committed for long.
func TestCompactWhileAsleep(t *testing.T) {
	defer func(d drowsiness) { drowsy = d }(drowsy)
	drowsy = drowsiness{300 * time.Millisecond, time.Hour}
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	for i := range 400 {
		if err := commitOne(e, base.KindPut, indexTestKey(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	tables := func() (n int) {
		names, err := e.cfg.FS.List(e.cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if typ, _ := base.ParseFileName(name); typ == base.FileTable {
				n++
			}
		}
		return n
	}
	eventually(t, "at rest", func() bool { return e.asleep.Load() && tables() > 0 && len(e.State().Layers) == 0 })
	if err := commitOne(e, base.KindDelete, indexTestKey(7), nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * e.asleepAfter) // too little to come to rest with
	if err := e.Compact(context.Background(), testBucket, base.PrefixEnd(testBucket)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no table but those of the store", func() bool { return tables() == e.State().Version.NumTables() })
}

// TestSleepsWithoutALargeSegment: a few commits behind a burst do not keep a segment as large as the burst, and the space
// put aside for it, once nobody writes any more.
func TestSleepsWithoutALargeSegment(t *testing.T) {
	defer func(d drowsiness) { drowsy = d }(drowsy)
	drowsy = drowsiness{300 * time.Millisecond, time.Hour}
	cfg := indexTestConfig(t.TempDir(), 256<<20)
	e := mustOpen(t, cfg)
	value := make([]byte, 10_000)
	for i := range 2500 {
		if err := commitOne(e, base.KindPut, indexTestKey(i), value); err != nil {
			t.Fatal(err)
		}
	}
	atRest := func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.commit.mem == nil && e.commit.spare == nil
	}
	eventually(t, "at rest", atRest)
	if err := commitOne(e, base.KindPut, indexTestKey(1), value); err != nil {
		t.Fatal(err)
	}
	e.commit.mu.Lock()
	size := e.commit.mem.Seg.Capacity()
	e.commit.mu.Unlock()
	if size < largeSegment {
		t.Fatalf("a segment of %d bytes", size)
	}
	eventually(t, "at rest again", atRest)
	eventually(t, "no log", func() bool { return diskUsed(t, e) < 2<<20 })
}

// diskUsed returns what the files of the store's directory take.
func diskUsed(t *testing.T, e *Engine) (n int64) {
	t.Helper()
	names, err := e.cfg.FS.List(e.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := e.cfg.FS.Stat(filepath.Join(e.cfg.Dir, name)); err == nil {
			n += info.Allocated
		}
	}
	return n
}

// TestKeeperSleeps: a store that is at rest, and looked at now and then, does not wake the keeper each time.
func TestKeeperSleeps(t *testing.T) {
	cfg := indexTestConfig(t.TempDir(), 64<<20)
	e := mustOpen(t, cfg)
	if err := errors.Join(commitOne(e, base.KindPut, indexTestKey(1), nil), e.Close()); err != nil {
		t.Fatal(err)
	}
	e = mustOpen(t, cfg)
	e.stop()
	e.commit.mu.Lock()
	e.wakeBackground()
	e.commit.mu.Unlock()
	e.background.Wait()
	for _, asleep := range []bool{false, true} {
		for len(e.wake) > 0 {
			<-e.wake
		}
		e.asleep.Store(asleep)
		if e.rest(e.Visible()); asleep == (len(e.wake) > 0) {
			t.Errorf("asleep %v: the keeper is woken %v", asleep, asleep)
		}
	}
}
