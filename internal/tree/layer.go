package tree

import (
	"errors"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/wal"
)

// Layer is what lies above the version: a memtable, or tables ingested by a large
// transaction that no manifest edit has recorded yet.
type Layer struct {
	Mem    *Memory
	Ingest []Run  // newest first
	Seq    uint64 // ingest: greatest sequence of its runs
}

// Bytes returns how much of the log, or of tables, a layer stands for, at least one.
func (l *Layer) Bytes() (n int64) {
	if l.Mem != nil {
		n = l.Mem.LogBytes()
	}
	for i := range l.Ingest {
		n += SizeOf(l.Ingest[i].Tables)
	}
	return max(n, 1)
}

// Check looks whether the log that layers were read from is what was committed (wal.Segment.Intact). It says
// so of what was read before it began, beside whatever else is done.
type Check struct {
	Layers []*Layer

	begin   sync.Once
	looking sync.WaitGroup
	errs    []error
}

// Begin begins to look, unless that was done: all that is read of the layers has been.
func (c *Check) Begin() {
	c.begin.Do(func() {
		c.errs = make([]error, len(c.Layers))
		for i, l := range c.Layers {
			if l.Mem != nil && l.Mem.Seg != nil {
				c.looking.Go(func() { c.errs[i] = l.Mem.Seg.Intact() })
			}
		}
	})
}

// Wait waits until nobody looks any more: whoever lets go of the layers does.
func (c *Check) Wait() { c.looking.Wait() }

// Err begins to look, unless that was done, and returns what was found.
func (c *Check) Err() error {
	c.Begin()
	c.Wait()
	return errors.Join(c.errs...)
}

// Tables returns the ingested tables.
func (l *Layer) Tables() (all []*Handle) {
	for _, r := range l.Ingest {
		all = append(all, r.Tables...)
	}
	return all
}

// Sealed returns the layers that nothing is appended to any more: all but the active memtable, nil if there is none.
func (rs *State) Sealed(active *Memory) []*Layer {
	if active != nil && len(rs.Layers) > 0 && rs.Layers[0].Mem == active {
		return rs.Layers[1:]
	}
	return rs.Layers
}

// OldestSealed returns the oldest layer that nothing is appended to any more, nil if there is none.
func (rs *State) OldestSealed(active *Memory) *Layer {
	if sealed := rs.Sealed(active); len(sealed) > 0 {
		return sealed[len(sealed)-1]
	}
	return nil
}

// WaitsUpTo reports whether something of a sequence up to last waits to be flushed, in another layer than the active one.
func (rs *State) WaitsUpTo(last uint64, active *Memory) bool {
	return slices.ContainsFunc(rs.Layers, func(l *Layer) bool {
		switch {
		case l.Mem == nil:
			return l.Seq <= last
		case l.Mem == active || l.Mem.Len() == 0: // the base of an empty one may come from commits that failed
			return false
		}
		return l.Mem.FirstSeq() <= last
	})
}

// Without returns the layers but for those that are gone.
func (rs *State) Without(gone []*Layer) []*Layer {
	return slices.DeleteFunc(slices.Clone(rs.Layers), func(l *Layer) bool { return slices.Contains(gone, l) })
}

// WithBelow returns the layers with l right below that of a memtable.
func (rs *State) WithBelow(above *Memory, l *Layer) []*Layer {
	i := slices.IndexFunc(rs.Layers, func(o *Layer) bool { return o.Mem == above })
	return slices.Insert(slices.Clone(rs.Layers), i+1, l)
}

// LogStartWithout returns the first log segment that is needed once what some layers hold is in tables: that of the
// oldest memtable that is left, else the one behind them, 0 if they have none.
func (rs *State) LogStartWithout(gone []*Layer) (start uint64) {
	for _, l := range slices.Backward(rs.Layers) {
		switch {
		case l.Mem == nil || l.Mem.Seg == nil:
		case !slices.Contains(gone, l):
			return l.Mem.Seg.Num
		default:
			start = l.Mem.Seg.Num + 1
		}
	}
	return start
}

// SegmentsOf returns the log segments of the memtables among layers.
func SegmentsOf(layers []*Layer) (segments []*wal.Segment) {
	for _, l := range layers {
		if l.Mem != nil && l.Mem.Seg != nil {
			segments = append(segments, l.Mem.Seg)
		}
	}
	return segments
}
