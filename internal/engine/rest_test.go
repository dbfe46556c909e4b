package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// restingCommit commits one value for n keys of 100 B.
func restingCommit(t *testing.T, e *Engine, value byte, n int) {
	t.Helper()
	var entries frame.Entries
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
		return e.commit.mem == nil && len(e.state.Load().Layers) == 0
	})
	check("at rest")
	restingCommit(t, e, '3', n/4)
	check("afterwards")
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
		for _, left := range e.leftovers.All() {
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
