package engine

import (
	"bytes"
	"sync"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tree"
)

// TestReadsOfManyMemtables: while more and more memtables wait, every read finds the newest version of its key,
// as of each snapshot, and nothing where it was deleted or never put.
func TestReadsOfManyMemtables(t *testing.T) {
	const keys, size, most = 3000, 4 << 10, 6 // memtables: seven are more than wait here
	cfg, _ := onFaults()
	cfg.Relaxed = true
	e := mustOpen(t, cfg)
	holdFlushes(t, e)
	holdMerges(t, e)
	var history [keys][]uint64 // sequences of its puts; of deletes with the first bit
	const deleted = 1 << 63
	look := func(i int, snapshot uint64) {
		key := indexTestKey(i)
		want := uint64(deleted)
		for _, seq := range history[i] {
			if seq&^deleted <= snapshot {
				want = seq
			}
		}
		var f tree.Found
		name := append(bytes.Clone(testBucket), key...)
		if err := e.State().Lookup(&f, name, base.Hash(name), base.Visibility{Snapshot: snapshot}); err != nil {
			t.Fatal(err)
		}
		if f.Live() != (want&deleted == 0) || f.Live() && f.Seq != want {
			t.Fatalf("key %d at %d: live %v, sequence %d, want %d", i, snapshot, f.Live(), f.Seq, want&^deleted)
		}
	}
	value := make([]byte, size)
	for n := 0; len(e.State().Layers) < most; n++ {
		i := n * 7919 % keys
		kind, v := base.KindPut, value
		if n%5 == 0 {
			kind, v = base.KindDelete, nil
		}
		payload := frame.AppendEntry(nil, kind, append(bytes.Clone(testBucket), indexTestKey(i)...), v)
		seq, err := e.Commit(&Write{Entries: [][]byte{payload}, Bytes: len(payload), Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		if kind == base.KindDelete {
			seq |= deleted
		}
		history[i] = append(history[i], seq)
		look(n%keys, e.Visible())
		look(i, seq&^deleted-1)
	}
	var looking sync.WaitGroup
	for part := range 2 {
		looking.Go(func() {
			for i := part; i < keys+50; i += 2 {
				for snapshot := e.Visible(); i < keys && snapshot > 0; snapshot -= min(snapshot, 97) {
					look(i, snapshot)
				}
			}
		})
	}
	looking.Wait()
}
