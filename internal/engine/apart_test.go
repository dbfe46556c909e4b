package engine

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/tree"
)

// TestFlushApart: where a store has outgrown memory, what lies apart from all tables is flushed as it will be in the last
// level, so that a merge takes it as it is; what does not, or is not seen by every snapshot, keeps its sequences.
func TestFlushApart(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 1<<20))
	defer holdMerges(t, e)()
	next := 0
	flush := func(keys ...string) (sequenced bool, c block.Codec) {
		t.Helper()
		for range 50 {
			putOne(t, e, fmt.Sprintf("key %06d", next), 1000, false)
			next++
		}
		for _, key := range keys {
			putOne(t, e, key, 1000, false)
		}
		if _, err := e.flushAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		var h *tree.Handle // the one just written; in level 0 it may stand below the others
		for _, r := range e.State().Runs {
			for _, other := range r.Tables {
				if h == nil || other.Meta.Num > h.Meta.Num {
					h = other
				}
			}
		}
		c, err := h.Reader.Codec()
		if err != nil {
			t.Fatal(err)
		}
		return h.Meta.MaxSeq > 0, c
	}
	if sequenced, c := flush(); sequenced || c != block.S2 {
		t.Errorf("there was nothing before: sequences %v, %v", sequenced, c)
	}
	if sequenced, c := flush(); !sequenced || c != block.S2 {
		t.Errorf("all is in memory: sequences %v, %v", sequenced, c)
	}
	for !e.pages.Scarce() {
		flush()
	}
	if sequenced, c := flush(); sequenced || c != block.Zstd {
		t.Errorf("behind all tables: sequences %v, %v", sequenced, c)
	}
	if sequenced, _ := flush("key 000007"); !sequenced {
		t.Error("without sequences above an older version of a key")
	}
	if sequenced, _ := flush("key 0000070"); !sequenced {
		t.Error("without sequences between the keys of a table")
	}
	if sequenced, _ := flush(); sequenced {
		t.Error("behind all tables again: sequences")
	}
	r, _, _, err := e.BeginSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if sequenced, _ := flush(); !sequenced {
		t.Error("without sequences that a snapshot needs")
	}
	e.EndSnapshot(r)
	e.Done(r)
	if sequenced, _ := flush(); sequenced {
		t.Error("the snapshot is gone: sequences")
	}
}
