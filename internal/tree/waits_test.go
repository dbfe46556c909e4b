package tree

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// TestWaitsUpTo: everything up to a sequence, whatever stands between or below: an empty memtable may have a
// base that comes from commits that failed.
func TestWaitsUpTo(t *testing.T) {
	memory := func(first, records uint64) *Memory {
		m := &Memory{Table: memtable.NewGrowing(first)}
		var buf []byte
		for range records {
			at := len(buf)
			buf = frame.AppendEntry(buf, base.KindPut, []byte("key"), nil)
			m.SetBuffer(buf)
			entry, _ := frame.DecodeEntry(buf[at:])
			m.Insert(at, &entry, base.Hash([]byte("key")))
		}
		return m
	}
	layer := func(m *Memory) *Layer { return &Layer{Mem: m} }
	active, newer, sealed, failed := memory(20, 3), memory(10, 10), memory(7, 3), memory(312, 0)
	for i, c := range []struct {
		layers []*Layer
		last   uint64
		want   bool
	}{
		{nil, 9, false},
		{[]*Layer{layer(active)}, 22, false},
		{[]*Layer{layer(active), layer(newer)}, 9, false},
		{[]*Layer{layer(active), layer(newer)}, 10, true},
		{[]*Layer{layer(active), layer(newer), layer(sealed), layer(failed)}, 9, true},
		{[]*Layer{layer(active), layer(newer), layer(failed)}, 9, false},
		{[]*Layer{layer(active), {Seq: 9}, layer(failed)}, 9, true},
		{[]*Layer{layer(active), {Seq: 10}, layer(failed)}, 9, false},
	} {
		if got := (&State{Layers: c.layers}).WaitsUpTo(c.last, active); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
