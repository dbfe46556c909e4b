package tree

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
)

// deletesIn returns a memtable of range deletes, of the keys from one number to the next but without it, and of deletes of keys,
// so many times each.
func deletesIn(ranges [][2]int, keys int, times ...int) *Memory {
	m := NewMemory(nil, make([]byte, 64<<10), make([]byte, IndexBytes(64<<10, 1000)), 1000, func(*Memory) {})
	m.SetBase(1_000_000)
	at := 0
	add := func(kind base.Kind, key, value []byte) {
		copy(m.Buf[at:], frame.AppendEntry(nil, kind, key, value))
		entry, n := frame.DecodeEntry(m.Buf[at:])
		m.Insert(at, &entry, base.Hash(entry.Key))
		at += n
	}
	for _, r := range ranges {
		add(base.KindRangeDelete, hiddenKey(r[0]), hiddenKey(r[1]))
	}
	for i := range keys * append(times, 1)[0] {
		add(base.KindDelete, hiddenKey(i%keys), nil)
	}
	return m
}

func hiddenKey(i int) []byte { return fmt.Appendf(nil, "%07d", i) }

// TestHiddenBytes: what range deletes hide together counts, of however many memtables, and whether they meet or not; a delete counts
// as a row, of the same key in one memtable once. And of a store of many tables it is looked at some.
func TestHiddenBytes(t *testing.T) {
	pairs := func(from, to, step, length int) (ranges [][2]int) {
		for i := from; i < to; i += step {
			ranges = append(ranges, [2]int{i, i + length})
		}
		return ranges
	}
	for _, c := range []struct {
		name   string
		tables int // of 1000 keys and 10,000 bytes each
		in     []*Memory
		parts  [2]float64 // of what tables hold is hidden, at least and at most
	}{
		{"nothing", 10, nil, [2]float64{0, 0}},
		{"one range", 10, []*Memory{deletesIn(pairs(0, 5000, 5000, 5000), 0)}, [2]float64{0.5, 0.5}},
		{"in one table", 10, []*Memory{deletesIn(pairs(1100, 1900, 800, 800), 0)}, [2]float64{0, 0}},
		{"ranges that meet", 10, []*Memory{deletesIn(pairs(0, 5000, 50, 50), 0)}, [2]float64{0.5, 0.5}},
		{"ranges that do not", 10, []*Memory{deletesIn(append(pairs(0, 10_000, 100, 10), pairs(99, 10_000, 100, 1)...), 0)}, [2]float64{1, 1}},
		{"of two memtables", 10, []*Memory{deletesIn(pairs(0, 5000, 100, 50), 0), deletesIn(pairs(50, 5000, 100, 50), 0)}, [2]float64{0.5, 0.5}},
		{"beside deletes", 10, []*Memory{deletesIn(pairs(5000, 10_000, 5000, 5000), 500)}, [2]float64{0.55, 0.55}},
		{"more deletes than rows", 1, []*Memory{deletesIn(pairs(0, 1000, 10, 10), 500)}, [2]float64{1, 1}},
		{"the same key again and again", 1, []*Memory{deletesIn(nil, 100, 5), deletesIn(nil, 200)}, [2]float64{0.3, 0.3}},
		{"many tables", 5*mostLooks + 7, []*Memory{deletesIn(pairs(0, (5*mostLooks+7)*500, 5000, 5000), 0)}, [2]float64{0.49, 0.51}},
	} {
		rs := &State{Version: &manifest.Version{}}
		for i := range c.tables {
			meta := &base.TableMeta{Smallest: hiddenKey(i * 1000), Largest: hiddenKey(i*1000 + 999), Entries: 1000, Size: 10_000}
			rs.Version.Levels[manifest.Bottom] = append(rs.Version.Levels[manifest.Bottom], meta)
		}
		for _, m := range c.in {
			rs.Layers = append(rs.Layers, &Layer{Mem: m})
		}
		rs.Layers = append(rs.Layers, &Layer{Seq: 1}) // tables of a large transaction
		if share := float64(rs.HiddenBytes()) / float64(10_000*c.tables); share < c.parts[0]-1e-6 || share > c.parts[1]+1e-6 {
			t.Errorf("%s: %.3f of what tables hold, want %.2f to %.2f", c.name, share, c.parts[0], c.parts[1])
		}
	}
}
