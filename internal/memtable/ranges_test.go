package memtable

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
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
		r.add(tombstone.Tombstone{Low: fmt.Appendf(nil, "%06d", 2*i), High: fmt.Appendf(nil, "%06d", 2*i+1), Seq: uint64(i + 1)})
		r.publish()
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

// scattered returns a table with room for n range deletes, which stand in its buffer in no order, and their bytes.
func scattered(n int) (*Table, int) {
	var buf []byte
	for i := range n {
		j := 2 * (i * 7919 % n)
		buf = frame.AppendEntry(buf, base.KindRangeDelete, fmt.Appendf(nil, "%06d", j), fmt.Appendf(nil, "%06d", j+1))
	}
	t := New(buf, make([]byte, Layout(n)), n)
	t.SetBase(1)
	return t, len(buf)
}

// TestRangeDeletesOfOneCommit: they are put in order once, together, however many they are: a list allocates, and there is
// one, which finds each.
func TestRangeDeletesOfOneCommit(t *testing.T) {
	const n = 5000
	table, size := scattered(n)
	allocated := testing.AllocsPerRun(1, func() {
		table.count.Store(0)
		table.ranges.reset()
		if count, end := table.InsertAll(0, size); count != n || end != size {
			t.Fatalf("%d range deletes, which end at %d", count, end)
		}
	})
	if allocated > 100 {
		t.Errorf("%d range deletes allocated %.0f times", n, allocated)
	}
	if now := table.ranges.now.Load(); len(now.lists) != 1 || len(now.tail) != 0 {
		t.Errorf("%d lists, and %d behind them", len(now.lists), len(now.tail))
	}
	for rec := range uint32(n) {
		seq := uint64(rec) + 1
		if got := table.Cover(table.Key(rec), base.Visibility{Snapshot: seq}); got != seq {
			t.Fatalf("what %d deletes is covered by %d", seq, got)
		}
		if got := table.Cover(table.Key(rec), base.Visibility{Snapshot: seq - 1}); got != 0 {
			t.Fatalf("what %d deletes is covered by %d before", seq, got)
		}
	}
}

// TestRangeDeletesOfAFailedCommit: those before what is malformed are there, and hide nothing once they are truncated.
func TestRangeDeletesOfAFailedCommit(t *testing.T) {
	const n, malformed = 100, 80
	table, size := scattered(n)
	table.buf[size/n*malformed] = 0xFF
	if count, _ := table.InsertAll(0, size); count != malformed {
		t.Fatalf("%d range deletes before a malformed one", count)
	}
	inserted, now := table.Len(), base.Visibility{Snapshot: base.MaxSeq}
	if got := table.RangeDeletes(); len(got) != inserted {
		t.Errorf("%d range deletes of %d", len(got), inserted)
	}
	for _, left := range []int{inserted, inserted / 2, 0} {
		table.Truncate(left)
		for rec := range inserted {
			if covered := table.Cover(table.Key(uint32(rec)), now) > 0; covered != (rec < left) {
				t.Errorf("%d of %d left: that %d hides is %v", left, inserted, rec, covered)
			}
		}
	}
}

// BenchmarkRangeDeletesOfOneCommit is the time others wait for a commit of that many range deletes.
func BenchmarkRangeDeletesOfOneCommit(b *testing.B) {
	for _, n := range []int{100, 15_000, 60_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			table, size := scattered(n)
			for b.Loop() {
				table.count.Store(0)
				table.ranges.reset()
				table.InsertAll(0, size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delete")
		})
	}
}
