package engine

import (
	"bytes"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// TestSpareFitsLargeCommits: the spare that was made ahead was too small for the commits of
// a store of large values. It was thrown away, and they waited until another was made.
func TestSpareFitsLargeCommits(t *testing.T) {
	const size = 1 << 20
	e := mustOpen(t, indexTestConfig(t.TempDir(), 256<<20))
	put := func(size int) {
		t.Helper()
		var entries frame.Entries
		entries.Add(base.KindPut, testBucket, indexTestKey(0), bytes.Repeat([]byte{'v'}, size))
		if _, err := e.Commit(&Write{Entries: entries.Parts(), Bytes: entries.Bytes(), Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	put(size)
	put(size)
	eventually(t, "there is a spare", func() bool {
		put(100) // or the store comes to rest and needs none
		e.commit.mu.Lock()
		defer e.commit.mu.Unlock()
		if e.commit.spare == nil {
			return false
		}
		if n := e.commit.spare.Seg.Capacity(); n < 4*size {
			t.Fatalf("the spare has %d bytes", n)
		}
		return true
	})
}
