package engine

import (
	"bytes"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/directory"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// openBriefly opens a store as Open does, but that nothing is done in the background: its life is over before.
func openBriefly(t *testing.T, fsys vfs.FS) *Engine {
	t.Helper()
	cfg := indexTestConfig("/db", 4<<20)
	cfg.FS = fsys
	e := newEngine(cfg)
	made, err := directory.Make(fsys, cfg.Dir, false)
	if err == nil {
		e.lock, err = directory.Lock(fsys, cfg.Dir, false, 0)
	}
	if err == nil {
		e.unmake, e.stopIndexing = func() {}, func() {}
		err = e.openToWrite(made)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// die ends the life of a store without Close, and returns the disk that is left.
func die(e *Engine, disk *memfs.FS) *memfs.FS {
	left := disk.Crash(memfs.Everything())
	e.stop()
	e.giveBack()
	return left
}

// live opens a store, which has to hold what lives before this one have put, looks at it, and puts
// two pairs, one of a key that all lives put.
func live(t *testing.T, life int, fsys vfs.FS, look func(e *Engine)) *Engine {
	t.Helper()
	e := openBriefly(t, fsys)
	look(e)
	holdsLives(t, e, life)
	for _, key := range []int{life, 1000} {
		if err := commitAs(e, base.KindPut, indexTestKey(key), indexTestKey(life), true); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func holdsLives(t *testing.T, e *Engine, lives int) {
	t.Helper()
	for i := range lives {
		if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || !bytes.Equal(v, indexTestKey(i)) {
			t.Fatalf("after %d lives: get %d: %q, %v", lives, i, v, err)
		}
	}
}

// TestBriefLivesLeaveFewRuns: each life of a store that is killed before the compactor does anything leaves a run, which Open
// makes of its log; there are few of them all the same, and as few tables and descriptors.
func TestBriefLivesLeaveFewRuns(t *testing.T) {
	disk := memfs.New()
	for life := range 50 {
		disk = die(live(t, life, disk, func(e *Engine) {
			if runs := len(e.State().Version.L0); runs > 2*compact.DefaultL0Trigger {
				t.Fatalf("after %d lives level 0 has %d runs", life, runs)
			}
		}), disk)
	}
}

// TestDamagedTablesAmongBriefLives: runs are joined beside tables that cannot be read, too, which each life finds out anew.
func TestDamagedTablesAmongBriefLives(t *testing.T) {
	disk := memfs.New()
	for life := range 4 {
		disk = die(live(t, life, disk, func(*Engine) {}), disk)
	}
	e := openBriefly(t, disk)
	tables := e.State().Version.Overlapping(0, nil, nil)
	disk = die(e, disk)
	for _, table := range tables[:2] {
		if err := disk.Corrupt(base.FilePath("/db", base.FileTable, table.Num), base.FileHeaderBytes, 1); err != nil {
			t.Fatal(err)
		}
	}
	for life := range 30 {
		e := openBriefly(t, disk)
		if runs := len(e.State().Version.L0); runs > 2*compact.DefaultL0Trigger {
			t.Errorf("after %d lives level 0 has %d runs", life, runs)
		}
		if err := commitAs(e, base.KindPut, indexTestKey(life), indexTestKey(life), true); err != nil {
			t.Fatal(err)
		}
		disk = die(e, disk)
	}
}

// TestOpenThatCannotJoinRuns: what keeps Open from joining runs, a disk that takes no table more or no log segment, keeps it
// not from opening the store.
func TestOpenThatCannotJoinRuns(t *testing.T) {
	disk := memfs.New()
	const lives = 2*compact.DefaultL0Trigger + 1
	for life := range lives {
		disk = die(live(t, life, disk, func(*Engine) {}), disk)
	}
	for _, rule := range []faultfs.Rule{
		{Kinds: faultfs.Create, Name: "*.sst", At: 2}, // the first is that of recovery
		{Kinds: faultfs.Write, Name: "*.sst", At: 2},
		{Kinds: faultfs.Create, Name: "*.log"},
	} {
		rule.Sticky, rule.Do = true, faultfs.Fail(syscall.EIO)
		left := disk.Crash(memfs.Everything())
		faults := faultfs.New(left)
		counter := faults.Add(rule)
		e := openBriefly(t, faults)
		if runs := len(e.State().Version.L0); runs != lives || counter.Seen() == 0 {
			t.Errorf("%s: level 0 has %d runs, %d operations met the rule", rule.Name, runs, counter.Seen())
		}
		holdsLives(t, e, lives)
		left = die(e, left)
		e = openBriefly(t, left)
		holdsLives(t, e, lives)
		die(e, left)
	}
}

// TestCloseMergesWhatOpenHasWritten: Close does what is owed also where only recovery has written something, and where
// the clock is so coarse that it took no time.
func TestCloseMergesWhatOpenHasWritten(t *testing.T) {
	synctest.Test(t, closeMergesWhatOpenHasWritten) // no time goes by as long as nobody waits
}

func closeMergesWhatOpenHasWritten(t *testing.T) {
	const lives = 6
	disk := memfs.New()
	for life := range lives {
		disk = die(live(t, life, disk, func(*Engine) {}), disk)
	}
	cfg := indexTestConfig("/db", 4<<20)
	cfg.FS, cfg.ReadOnly = disk, true
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.recovery.Duration == 0 {
		t.Error("to a reader it looks as if there was no log")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	e := openBriefly(t, disk)
	if runs := len(e.State().Version.L0); runs != lives {
		t.Fatalf("%d runs", runs)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	state, err := manifest.Recover(disk, "/db", false)
	if err != nil {
		t.Fatal(err)
	}
	if n := state.Version.NumTables(); n != 1 || !state.NoLog() {
		t.Errorf("Close left %d tables of %d lives", n, lives)
	}
	e = openBriefly(t, disk)
	holdsLives(t, e, lives)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
