//go:build !race

package frame

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestRecycledEntries: what is reset serves others. Not with the race detector, whose pools
// forget some of what they get.
func TestRecycledEntries(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		var e Entries
		for range 1000 {
			e.Add(base.KindPut, nil, []byte("key"), want100)
		}
		e.Reset()
	}); n > 0 {
		t.Errorf("%v allocations to fill new entries", n)
	}
}
