package engine

import (
	"bytes"
	"testing"
	"time"
)

// largeCommit commits, as a transaction that spills, one value for n keys.
func largeCommit(t *testing.T, e *Engine, value byte, n int) {
	tx, err := e.Begin(true)
	if err != nil {
		t.Error(err)
		return
	}
	defer tx.Rollback()
	for i := range n {
		key := append(bytes.Clone(testBucket), indexTestKey(i)...)
		if err := tx.Put(key, bytes.Repeat([]byte{value}, 100)); err != nil {
			t.Error(err)
			return
		}
	}
	if len(tx.spills) == 0 {
		t.Error("the transaction has not spilled")
	}
	if _, err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// TestSegmentsOfUndecidedIngestsAreNotFlushed: two large transactions commit at
// once. The memtable of the first one's segment is sealed, and empty, before its
// outcome is known. If it were flushed then, nothing would lead a recovery to the
// first one's tables, and they would come to lie above those of the second.
func TestSegmentsOfUndecidedIngestsAreNotFlushed(t *testing.T) {
	const n = 4000
	e := mustOpen(t, indexTestConfig(t.TempDir(), 4<<20))
	c := &e.commit
	c.mu.Lock()
	c.leading = true // no round begins: outcomes have to wait
	c.mu.Unlock()
	appended := func(want int) func() bool {
		return func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.ingesting == want
		}
	}
	done := make(chan struct{}, 2)
	for i := range 2 {
		go func() {
			largeCommit(t, e, byte('1'+i), n)
			done <- struct{}{}
		}()
		eventually(t, "the commit is appended", appended(i+1))
	}
	time.Sleep(50 * time.Millisecond) // the flusher has its chance
	c.mu.Lock()
	if layers := e.state.Load().layers; len(layers) != 2 {
		t.Errorf("%d layers, want the memtables of both segments", len(layers))
	}
	c.leading = false
	c.cond.Broadcast()
	c.mu.Unlock()
	<-done
	<-done
	for i := range n {
		if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || v[0] != '2' {
			t.Fatalf("key %d is %.1q (%v), not the later commit's", i, v, err)
		}
	}
}
