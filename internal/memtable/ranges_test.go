package memtable

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/tombstone"
)

// TestRangeDeletesAreInFewLists: who looks for a key looks at few lists and a few more range tombstones, however many
// there are, and each was put into a list a few times only.
func TestRangeDeletesAreInFewLists(t *testing.T) {
	const n = 20_000
	var r rangeDeletes
	built, most := 0, 0
	for i := range n {
		before := r.now.Load()
		r.add(tombstone.Tombstone{Low: fmt.Appendf(nil, "%06d", 2*i), High: fmt.Appendf(nil, "%06d", 2*i+1), Seq: uint64(i + 1)}, 0)
		now := r.now.Load()
		held := len(now.tail)
		for _, l := range now.lists {
			held += l.n
		}
		if held != i+1 || len(now.tail) > maxUnbuilt {
			t.Fatalf("%d in lists and tail, %d of them in the tail, of %d", held, len(now.tail), i+1)
		}
		if k := len(now.lists); k > 0 && (before == nil || len(now.tail) == 0) {
			built += now.lists[k-1].n
		}
		most = max(most, len(now.lists))
	}
	t.Logf("%d lists at most, %d tombstones put into some", most, built)
	if most > 8 || built > 25*n {
		t.Error("too many")
	}
}
