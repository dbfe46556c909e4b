package engine

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/group"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/tree"
)

// largeCommit commits, as a transaction that has spilled does, one value for n keys.
func largeCommit(t *testing.T, e *Engine, value byte, n int) {
	rows := make([]iterator.Entry, n)
	for i := range rows {
		key := append(bytes.Clone(testBucket), indexTestKey(i)...)
		rows[i] = iterator.Entry{Key: key, Kind: base.KindPut, Value: bytes.Repeat([]byte{value}, 100)}
	}
	tables, err := e.tables.WritePrivate(&compact.Merge{Rows: iterator.NewSliceIter(rows), TargetBytes: 1 << 40}, 0, base.SeqPrivate, &e.tables.Private.Flushed)
	if err != nil {
		t.Error(err)
		return
	}
	run := tree.NewRun(tables)
	if _, err := e.CommitIngest(&Write{Count: 1, Durable: true}, []*tree.Run{&run}); err != nil {
		t.Error(err)
	}
	for _, h := range tables {
		h.Reader.Close()
	}
}

// TestLargeTransactionsPayForDeletes: what was merged in vain for the sake of deletes is paid for by what large transactions flush,
// as they do it themselves, like by any other flush.
func TestLargeTransactionsPayForDeletes(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 4<<20))
	const vain = 128 << 10
	e.merging.Lock()
	e.deletes.Note(&compact.Job{Hiding: true, Inputs: []compact.Input{{Tables: []*base.TableMeta{{Size: vain}}}}}, vain, e.flushed())
	e.merging.Unlock()
	before := e.Stats().FlushedBytes
	for i := byte(0); e.Stats().FlushedBytes < before+vain/4; i++ {
		largeCommit(t, e, i, 4000)
	}
	e.merging.Lock()
	defer e.merging.Unlock()
	if left := e.deletes.InVain(e.flushed()); left > 0 {
		t.Errorf("%d bytes of %d are still in vain after %d flushed", left, vain, e.Stats().FlushedBytes-before)
	}
}

// heldLog writes when it is told to go on.
type heldLog struct {
	group.Log
	goOn chan struct{}
}

func (h *heldLog) Write() error {
	<-h.goOn
	return h.Log.Write()
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
	held := &heldLog{Log: c.queue.Log, goOn: make(chan struct{})} // outcomes have to wait
	c.queue.Log = held
	c.mu.Unlock()
	lead := sync.OnceFunc(func() { close(held.goOn) })
	t.Cleanup(lead) // or Close waits for ever, where the test fails
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
	if layers := e.State().Layers; len(layers) != 2 {
		t.Errorf("%d layers, want the memtables of both segments", len(layers))
	}
	c.mu.Unlock()
	lead()
	<-done
	<-done
	for i := range n {
		if v, err := e.GetTo(testBucket, indexTestKey(i), nil); err != nil || v[0] != '2' {
			t.Fatalf("key %d is %.1q (%v), not the later commit's", i, v, err)
		}
	}
}

// TestEveryFlushTellsTheCommits: the flusher found no space; then Compact flushed what
// it could not, and commits waited for ever for an attempt of the flusher's.
func TestEveryFlushTellsTheCommits(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 4<<20))
	e.setFlushError(base.ErrNoSpace)
	if _, err := e.flushOldest(); err != nil {
		t.Fatal(err)
	}
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	if e.diskFull() {
		t.Error("the disk still counts as full")
	}
}
