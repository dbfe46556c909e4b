package tree

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// stateOf returns a state of memtables, each of which stands for mem bytes of log, and of
// one table of raw bytes, of which size are on disk; with deletes it hides something.
func stateOf(memtables int, mem, raw, size int64, deletes uint64) *State {
	meta := &base.TableMeta{Num: 1, RawBytes: raw, Size: size, Entries: 10, Deletes: deletes}
	rs := &State{Version: &manifest.Version{}}
	if raw > 0 {
		rs.Version.Levels[manifest.Bottom] = []*base.TableMeta{meta}
		rs.Runs = []Run{{Tables: []*Handle{{Meta: meta}}}}
	}
	for range memtables {
		m := NewMemory(nil, make([]byte, 4096), make([]byte, IndexBytes(4096, 10)), 10, func(*Memory) {})
		m.Replayed = mem
		rs.Layers = append(rs.Layers, &Layer{Mem: m})
	}
	return rs
}

// TestCloseMerge: Close works off a moderate debt, none where nothing is hidden, and
// everything where memtables hold as much as tables.
func TestCloseMerge(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		rs   *State
		want int64
	}{
		{stateOf(0, 0, 100*mb, 50*mb, 0), 0},                        // one run of puts
		{stateOf(0, 0, 100*mb, 50*mb, 1), closeMerge},               // deletes
		{stateOf(1, 10*mb, 900*mb, 500*mb, 1), closeMerge},          // little in memory
		{stateOf(9, 100*mb, 900*mb, 500*mb, 1), (9*100 + 500) * mb}, // as much as in tables
		{stateOf(9, 100*mb, 901*mb, 500*mb, 1), closeMerge},
		{stateOf(1, 10*mb, mb, mb, 1), closeMerge}, // never less
	} {
		if got := c.rs.CloseMerge(); got != c.want {
			t.Errorf("%d layers, %d bytes in all: %d, want %d", len(c.rs.Layers), c.rs.HeldBytes(), got, c.want)
		}
	}
}

func TestLags(t *testing.T) {
	for _, c := range []struct {
		layers, runs int
		want         bool
	}{{0, 0, false}, {2, 6, false}, {3, 0, true}, {0, 7, true}} {
		rs := &State{Version: &manifest.Version{L0: make([]manifest.Run, c.runs)}, Layers: make([]*Layer, c.layers)}
		if got := rs.Lags(); got != c.want {
			t.Errorf("%d layers, %d runs: lags %v", c.layers, c.runs, got)
		}
	}
}
