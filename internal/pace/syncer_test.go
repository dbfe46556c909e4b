package pace

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSyncerSleeps: after a while without commits it syncs no more, and the next commit has it sync again.
func TestSyncerSleeps(t *testing.T) {
	var commits sync.Mutex
	var newest, syncs, syncedAt atomic.Uint64
	s := Syncer{Commits: &commits, Newest: newest.Load, Visible: newest.Load, Sync: func() error {
		syncs.Add(1)
		syncedAt.Store(newest.Load())
		return nil
	}}
	s.Init()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(0, 20*time.Millisecond, stop)
	}()
	until := func(what string, holds func() bool) {
		t.Helper()
		for start := time.Now(); !holds(); time.Sleep(time.Millisecond) {
			if time.Since(start) > 30*time.Second {
				t.Fatal("not within half a minute: " + what)
			}
		}
	}
	for commit := range uint64(3) {
		until("asleep", s.Awaits)
		before := syncs.Load()
		if time.Sleep(20 * time.Millisecond); syncs.Load() != before {
			t.Error("it syncs while it waits for a commit")
		}
		commits.Lock()
		newest.Store(commit + 1)
		s.Committed()
		commits.Unlock()
		until("synced", func() bool { return syncedAt.Load() == commit+1 })
	}
	until("asleep", s.Awaits)
	close(stop)
	<-ended
}
