package pace

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/manifest"
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

// TestSmallRuns: level 0 slows commits by what it owes: many runs count less if they are small, or little beside the
// rest of a store that does not fit into memory; not where memory is too little for many.
func TestSmallRuns(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		memory     int64
		runs       int
		each, rest int64
		row        int64 // bytes
		want       float64
	}{
		{1024 * mib, freeRuns, mib, 0, 1000, freeRuns},
		{1024 * mib, 20, 64 * mib, 0, 1e5, 20}, {1024 * mib, 20, 16 * mib, 0, 1e5, 20},
		{1024 * mib, 20, 8 * mib, 0, 1000, 10}, {1024 * mib, 20, mib, 0, 1000, 5}, // small
		{64 * mib, 48, 4 * mib, 0, 1024, 12},
		{1024 * mib, 20, 16 * mib, 512 * mib, 1e5, 10},                          // a whole one is a sixteenth of the rest
		{1024 * mib, 20, 16 * mib, 4096 * mib, 1e5, 5},                          // but each counts for a quarter
		{2048 * mib, 20, 16 * mib, 512 * mib, 1e5, 20},                          // it fits into memory
		{leastMemory - 1, 20, mib, 0, 1000, 20}, {64 * mib, 20, mib, 0, 64, 20}, // indexes do not
	} {
		v := &manifest.Version{L0: make([]manifest.Run, c.runs)}
		for i := range v.L0 {
			half := &base.TableMeta{RawBytes: c.each / 2, Entries: uint64(c.each / 2 / c.row)}
			v.L0[i].Tables = []*base.TableMeta{half, half}
		}
		v.Levels[manifest.Bottom] = []*base.TableMeta{{RawBytes: c.rest}}
		p := Pace{Config: &config.Config{Memory: c.memory}}
		if got := p.runs(v); got != c.want || p.runs(v) != got {
			t.Errorf("Memory %d, %d runs of %d bytes beside %d: they count as %v, want %v", c.memory, c.runs, c.each, c.rest, got, c.want)
		}
		rs := &tree.State{Version: v}
		if d := p.Slow(rs, 100*mib); (d > 0) != (c.want > freeRuns) {
			t.Errorf("Memory %d, %d runs of %d bytes beside %d: a commit is slowed by %v", c.memory, c.runs, c.each, c.rest, d)
		}
		v = &manifest.Version{L0: v.L0[:freeRuns]}
		if got := p.runs(v); got != freeRuns {
			t.Errorf("the runs of another version count as %v", got)
		}
	}
}
