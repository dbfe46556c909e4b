package tree

import (
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestUntouched: each huge page of an arena is to be touched once, before commits come to
// it, and the last as far as there is one.
func TestUntouched(t *testing.T) {
	const huge = arena.HugeBytes
	buf := make([]byte, 3*huge+4096)
	seg, err := wal.Create(memfs.New(), "/1.log", 1, base.NewID(), buf, false)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	m := NewMemory(seg, buf, make([]byte, IndexBytes(len(buf), 10)), 10, func(*Memory) {})
	const step = 64 << 10
	payload := make([]byte, step-frame.HeaderBytes)
	next := huge
	for seg.Room(len(payload)) {
		seg.Append(frame.Header{Kind: frame.KindCommit, Count: 1}, payload)
		b := m.Untouched()
		if b == nil {
			continue
		}
		if m.Untouched() != nil {
			t.Fatal("the same once more")
		}
		tail, _ := seg.Tail()
		if ahead := next - int(tail.Offset()); ahead <= huge/2 || ahead > huge*7/8 {
			t.Errorf("what stands at %d is touched when commits have come to %d", next, tail.Offset())
		}
		if &b[0] != &buf[next] || len(b) != min(huge, len(buf)-next) {
			t.Errorf("%d bytes, not those at %d", len(b), next)
		}
		next += huge
	}
	if next != 4*huge {
		t.Errorf("touched up to %d of %d", next, len(buf))
	}
}

// TestStateOutlivesMappings: who has looked up the state of a store counts what waits in it, though memtables of it
// are freed meanwhile.
func TestStateOutlivesMappings(t *testing.T) {
	const size = 64 << 10
	fsys := memfs.New()
	fsys.AllowMaps()
	b := NewBuffers(arena.NewBudget(1 << 20))
	m, err := b.Memory(size, 100, false, func(buffer func() ([]byte, error)) (*wal.Segment, error) {
		return wal.CreateMapped(fsys, "/1.log", 1, base.NewID(), size, true, buffer)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !m.mapped() {
		t.Skip("SKIPPED: no log is mapped where mappings cannot be detached")
	}
	defer m.Seg.Close()
	rs := &State{Layers: []*Layer{{Mem: m}}}
	type counts struct {
		waiting float64
		largest int64
		mayWait bool
	}
	counted := func() counts { return counts{rs.Waiting(), largestMemory(rs.Layers), rs.MayWait(nil, size/2)} }
	before := counted()
	if m.Unref(); counted() != before {
		t.Errorf("%+v, of what is freed; %+v before", counted(), before)
	}
	b.AwaitUnmapped()
	if counted() != before {
		t.Errorf("%+v, of what has been freed; %+v before", counted(), before)
	}
	if before.largest != size || before.waiting <= 0 || before.waiting > 1 {
		t.Errorf("%+v", before)
	}
}
