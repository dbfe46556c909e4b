package engine

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/tree"
)

// TestWhatCompactFlushes: everything up to a sequence, whatever stands between or below: an empty memtable may have a
// base that comes from commits that failed.
func TestWhatCompactFlushes(t *testing.T) {
	memory := func(first, records uint64) *tree.Memory {
		m := &tree.Memory{Table: memtable.NewGrowing(first)}
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
	layer := func(m *tree.Memory) *tree.Layer { return &tree.Layer{Mem: m} }
	active, newer, sealed, failed := memory(20, 3), memory(10, 10), memory(7, 3), memory(312, 0)
	for i, c := range []struct {
		layers []*tree.Layer
		last   uint64
		want   bool
	}{
		{nil, 9, false},
		{[]*tree.Layer{layer(active)}, 22, false},
		{[]*tree.Layer{layer(active), layer(newer)}, 9, false},
		{[]*tree.Layer{layer(active), layer(newer)}, 10, true},
		{[]*tree.Layer{layer(active), layer(newer), layer(sealed), layer(failed)}, 9, true},
		{[]*tree.Layer{layer(active), layer(newer), layer(failed)}, 9, false},
		{[]*tree.Layer{layer(active), {Seq: 9}, layer(failed)}, 9, true},
		{[]*tree.Layer{layer(active), {Seq: 10}, layer(failed)}, 9, false},
	} {
		if got := sealedUpTo(c.layers, active, c.last); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
