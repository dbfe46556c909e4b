package tree

import (
	"bytes"
	"math"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Run is a group of tables whose key ranges do not overlap, in key order.
type Run struct {
	Tables     []*Handle
	MinSeq     uint64 // no table has a lesser one
	MaxSeq     uint64
	Tombstones bool // some table has range tombstones
}

// NewRun makes a run of tables in the order of their keys.
func NewRun(tables []*Handle) Run {
	r := Run{Tables: tables, MinSeq: math.MaxUint64}
	for _, h := range tables {
		r.MinSeq = min(r.MinSeq, h.Meta.MinSeq)
		r.MaxSeq = max(r.MaxSeq, h.Meta.MaxSeq)
		r.Tombstones = r.Tombstones || h.Meta.RangeDeletes > 0
	}
	return r
}

// RawBytes returns the bytes of keys and values.
func (r Run) RawBytes() (n int64) {
	for _, h := range r.Tables {
		n += h.Meta.RawBytes
	}
	return n
}

// Part returns a key with which about the i-th of n parts alike begins.
func (r Run) Part(i, n int) []byte {
	before := r.RawBytes() / int64(n) * int64(i)
	for _, h := range r.Tables {
		raw := h.Meta.RawBytes
		if before > 0 && before < raw {
			if key, err := h.Part(float64(before) / float64(raw)); err == nil {
				return key
			}
		}
		if before < raw {
			return h.Meta.Smallest // what is damaged is found by who reads it
		}
		before -= raw
	}
	return nil
}

// IngestRuns groups ingested tables by their sequence, newest first.
func IngestRuns(tables []*Handle) []Run {
	var runs []Run
	for len(tables) > 0 {
		n := 1
		for n < len(tables) && tables[n].Meta.GlobalSeq == tables[0].Meta.GlobalSeq {
			n++
		}
		runs = append(runs, NewRun(tables[:n:n]))
		tables = tables[n:]
	}
	slices.Reverse(runs)
	return runs
}

// IngestBytes bounds how large the manifest edit is that adds the tables of private runs.
func IngestBytes(private []*Run) int {
	n := 1024
	for _, r := range private {
		for _, h := range r.Tables {
			n += 256 + len(h.Meta.Smallest) + len(h.Meta.Largest)
		}
	}
	return n
}

// Keep makes the files of private runs outlive them.
func Keep(private []*Run) {
	for _, r := range private {
		for _, h := range r.Tables {
			h.Kept = true
		}
	}
}

// HandOver gives what the tables of private runs have in memory to tables, the same ones
// opened once more.
func HandOver(private []*Run, tables []*Handle) {
	for _, r := range private {
		for _, h := range r.Tables {
			tables[0].Inherit(h.Reader)
			tables = tables[1:]
		}
	}
}

// find returns the table whose bounds may contain key, or nil.
func (r *Run) find(key []byte) *Handle {
	lo, hi := 0, len(r.Tables)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r.Tables[mid].Meta.EndsBefore(key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(r.Tables) || bytes.Compare(key, r.Tables[lo].Meta.Smallest) < 0 {
		return nil
	}
	return r.Tables[lo]
}

// Covers answers which range tombstones of a run cover keys that mostly stand close to each other. It is for one goroutine.
type Covers struct {
	run  *Run
	h    *Handle           // where the last key was
	over *tombstone.Cursor // its tombstones; nil: it has none
}

// Covers returns one for the run.
func (r *Run) Covers() *Covers { return &Covers{run: r} }

// Cover returns the greatest sequence vis sees of a range tombstone that covers a key.
func (c *Covers) Cover(key []byte, vis base.Visibility) uint64 {
	if c.h == nil || !c.h.Meta.Contains(key) {
		next := c.run.find(key)
		if next == nil {
			return 0
		}
		if c.h, c.over = next, nil; c.h.Meta.RangeDeletes > 0 {
			c.over = tombstone.NewCursor(c.h.Tombstones())
		}
	}
	if c.over == nil {
		return 0
	}
	return c.over.Cover(key, vis)
}

// Alike returns the bounds of keys around the one that Cover has last found covered, for which it returns the same.
func (c *Covers) Alike() (low, high []byte) { return c.over.Alike() }

// RunIter walks all tables of a run, and then those of another, in the same memory.
type RunIter struct {
	*iterator.Concat
	tables []*Handle
	slot   *epoch.Slot
	opts   table.IterOptions
	one    table.Iter // over the table it stands in
}

// NewRunIter returns an iterator over nothing; see Init.
func NewRunIter() *RunIter {
	it := &RunIter{}
	it.Concat = iterator.NewConcat(0,
		func(i int) ([]byte, []byte) { return it.tables[i].Meta.Smallest, it.tables[i].Meta.Largest },
		func(i int) (base.Iterator, error) {
			it.tables[i].InitIter(&it.one, it.slot, it.opts)
			return &it.one, nil
		})
	return it
}

// Init makes a new or closed iterator one over r.
func (it *RunIter) Init(r *Run, slot *epoch.Slot, opts table.IterOptions) {
	it.tables, it.slot, it.opts = r.Tables, slot, opts
	it.Reset(len(r.Tables))
}

// Clear lets go of what a closed iterator was over.
func (it *RunIter) Clear() { it.tables, it.slot, it.one = nil, nil, table.Iter{} }

// AppendTombstones appends the range tombstones of each table of some runs.
func AppendTombstones(to []*tombstone.List, runs []Run) []*tombstone.List {
	for _, r := range runs {
		for _, h := range r.Tables {
			to = append(to, h.Tombstones())
		}
	}
	return to
}

// RangeDeletes returns the range tombstones of tables that have some, by number.
func (rs *State) RangeDeletes() (all map[uint64]*tombstone.List) {
	for _, h := range rs.Handles {
		if h.Meta.RangeDeletes > 0 {
			if all == nil {
				all = map[uint64]*tombstone.List{}
			}
			all[h.Meta.Num] = h.Tombstones()
		}
	}
	return all
}

// AppendRows appends what a merge reads of some runs, and returns how many rows these are: one iterator for each run, since
// with one for each table those of tables to come would hold a block, too. Tables of which tombs hides all from everybody are
// left out.
func AppendRows(to []base.Iterator, runs []Run, tombs *tombstone.List, snapshots tombstone.Stripes, slot *epoch.Slot) (all []base.Iterator, rows uint64) {
	opts := table.IterOptions{NoCache: true}
	for _, r := range runs {
		var read Run
		for _, h := range r.Tables {
			if !tombs.Hides(h.Meta, snapshots) {
				read.Tables = append(read.Tables, h)
				rows += h.Meta.Entries
			}
		}
		switch len(read.Tables) {
		case 0:
		case 1: // it does what the other would have to ask it for
			to = append(to, read.Tables[0].NewIter(slot, opts))
		default:
			it := NewRunIter()
			it.Init(&read, slot, opts)
			to = append(to, it)
		}
	}
	return to, rows
}
