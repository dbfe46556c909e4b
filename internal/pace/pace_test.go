package pace

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/tree"
)

// TestTogether: as many memtables as have to be are flushed together, if there is room for those that
// come meanwhile, and where nobody writes half of what waits; never with the tables of a large transaction.
func TestTogether(t *testing.T) {
	const mb, ingest = 1 << 20, -1
	var twelve []int64
	for range 12 {
		twelve = append(twelve, 64)
	}
	for _, c := range []struct {
		memory int64
		sealed []int64 // MB, the newest first
		all    bool
		want   int
	}{
		{8 << 30, nil, true, 1},
		{8 << 30, []int64{40}, false, 1},
		{8 << 30, []int64{20, 8, 4, 1, 1}, false, 2}, // 32 may wait
		{8 << 30, []int64{64, 16, 4, 1, 1}, false, 5},
		{8 << 30, []int64{60, 1, 1}, false, 3},
		{8 << 30, twelve[:2], false, 2},
		{8 << 30, twelve[:4], false, 4}, // until it is done four more may come
		{8 << 30, twelve[:6], false, 2},
		{8 << 30, twelve[:7], false, 1},
		{8 << 30, twelve, false, 1},
		{8 << 30, twelve[:4], true, 2},
		{8 << 30, twelve, true, 4},
		{8 << 30, []int64{20, 4, 1}, true, 3},
		{64 << 20, []int64{4, 4}, true, 1},
		{64 << 20, []int64{4, 2, 1, 1}, true, 3},
		{8 << 30, []int64{1, 1, ingest}, true, 1},
		{8 << 30, []int64{1, ingest, 1, 1}, true, 2},
	} {
		var sealed []*tree.Layer
		for _, n := range c.sealed {
			l := &tree.Layer{}
			if n != ingest {
				l.Mem = &tree.Memory{Replayed: n * mb}
			}
			sealed = append(sealed, l)
		}
		p := &Pace{Config: &config.Config{Memory: c.memory}}
		p.begun.Add(-int64(time.Hour))
		rs := &tree.State{Layers: append([]*tree.Layer{{}}, sealed...)}
		if got := p.Together(rs, sealed, c.all); got != c.want {
			t.Errorf("%d MiB, %d, all %v: %d together, want %d", c.memory>>20, c.sealed, c.all, got, c.want)
		}
	}
}
