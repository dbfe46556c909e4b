package engine

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
)

// TestAsleep: after long quiet nobody in the background looks at the store any more but once in a while, and whoever
// commits then has everything done as before: what is relaxed is synced, and the store comes to rest.
func TestAsleep(t *testing.T) {
	defer func(after, look time.Duration) { asleepAfter, asleepLook = after, look }(asleepAfter, asleepLook)
	asleepAfter, asleepLook = 300*time.Millisecond, time.Hour
	cfg := indexTestConfig(t.TempDir(), 64<<20)
	cfg.SyncInterval = 50 * time.Millisecond
	e := mustOpen(t, cfg)
	awaited := func() bool {
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		return e.commit.awaited
	}
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
		eventually(t, "asleep", func() bool { return awaited() && e.asleep.Load() })
		for i := range 400 * round { // of the last round there is enough for a table
			if err := commitOne(e, base.KindPut, indexTestKey(i), make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if round > 0 && awaited() {
			t.Error("the syncer still waits")
		}
		eventually(t, "synced", synced)
		eventually(t, "at rest", func() bool { return round == 0 || e.State().Version.NumTables() > 0 && len(e.State().Layers) == 0 })
	}
}
