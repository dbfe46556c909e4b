package tree

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
)

// State is everything a read needs, newest first: layers, then the runs of
// the version. Along that order the sequences of any one key only fall (E1), so
// the first hit is the newest. It is immutable.
type State struct {
	refs    atomic.Int32
	largest int64 // see LargestMemory
	Layers  []*Layer
	Version *manifest.Version
	Runs    []Run
	Handles []*Handle // of the version and of ingested layers, each once
}

// Memtables returns those of all layers.
func (rs *State) Memtables() (mems []*Memory) {
	for _, l := range rs.Layers {
		if l.Mem != nil {
			mems = append(mems, l.Mem)
		}
	}
	return mems
}

// LogBytes returns how much log memtables stand for.
func (rs *State) LogBytes() (n int64) {
	for _, l := range rs.Layers {
		if l.Mem != nil {
			n += l.Mem.LogBytes()
		}
	}
	return n
}

// LargestMemory returns what the log of the largest memtable may take: that to which commits are added,
// which is the first if there is one, all that there is room for.
func (rs *State) LargestMemory() int64 { return rs.largest }

func largestMemory(layers []*Layer) (n int64) {
	for i, l := range layers {
		switch {
		case l.Mem == nil:
		case i == 0:
			n = l.Mem.mayTake()
		default:
			n = max(n, l.Mem.usedBytes())
		}
	}
	return n
}

const (
	largeRecord = 8 << 10 // bytes of log are a record that is read as fast from a memtable as from a table
	bulkyRecord = 512     // of which most of what a flush costs is the value
)

// LargeRecords reports whether memtables hold large records, on average: to write them to a table
// takes long, and a scan gains little by it.
func (rs *State) LargeRecords() bool {
	n := int64(0)
	for _, l := range rs.Layers {
		if l.Mem != nil {
			n += int64(l.Mem.Len())
		}
	}
	return rs.LogBytes() > n*largeRecord
}

// BulkyLayers returns how many memtables below the newest are mapped logs of records that are bulky,
// on average: they cost a get little, and the system little memory that it could not have back.
func (rs *State) BulkyLayers() (n int) {
	for i, l := range rs.Layers {
		if i > 0 && l.Mem != nil && l.Mem.mapped() && l.Mem.LogBytes() > int64(l.Mem.Len())*bulkyRecord {
			n++
		}
	}
	return n
}

// MayWait reports whether what lies below the active memtable need not be flushed yet: it is
// memtables of no more than limit bytes together.
func (rs *State) MayWait(active *Memory, limit int64) bool {
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return false
		}
		if l.Mem != active {
			limit -= l.Mem.usedBytes()
		}
	}
	return limit >= 0
}

// MayWaitInBurst is MayWait while commits are to have the machine for themselves: of mapped logs of
// records that are bulky, on average, and of which a table would keep at least half.
func (rs *State) MayWaitInBurst(active *Memory, limit int64) bool {
	records, keys, bytes := 0, 0, int64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil || l.Mem == active {
			continue
		}
		if !l.Mem.mapped() {
			return false
		}
		records, keys, bytes = records+l.Mem.Len(), keys+l.Mem.Distinct(), bytes+l.Mem.usedBytes()
	}
	return 2*keys >= records && bytes > int64(records)*bulkyRecord && rs.MayWait(active, limit)
}

// Waiting returns how many layers wait to be flushed, the active memtable as far as it is used.
func (rs *State) Waiting() float64 {
	if len(rs.Layers) == 0 {
		return 0
	}
	n := float64(len(rs.Layers) - 1)
	if m := rs.Layers[0].Mem; m != nil && m.Seg != nil {
		n += float64(m.LogBytes()) / float64(m.Seg.Capacity())
	}
	return n
}

// Lags reports whether flushes or compactions do not keep up with commits. Small memtables,
// of up to limit bytes together, may wait.
func (rs *State) Lags(limit int64) bool {
	n := len(rs.Layers)
	for ; n > 0 && rs.Layers[n-1].Mem != nil; n-- {
		if limit -= rs.Layers[n-1].Mem.LogBytes(); limit < 0 {
			break
		}
	}
	return n > 2 || len(rs.Version.L0) > 6
}

// Lowest reports whether there is nothing below a layer.
func (rs *State) Lowest(l *Layer) bool {
	n := len(rs.Layers)
	return n > 0 && rs.Layers[n-1] == l && rs.Version.NumTables() == 0
}

// Apart reports whether l is the lowest layer and no table may hold a key from low to high.
func (rs *State) Apart(l *Layer, low, high []byte) bool {
	if n := len(rs.Layers); n == 0 || rs.Layers[n-1] != l {
		return false
	}
	behind := append(bytes.Clone(high), 0)
	for level := range manifest.NumLevels {
		if len(rs.Version.Overlapping(level, low, behind)) > 0 {
			return false
		}
	}
	return true
}

// Entries returns how many puts and deletes there are, of memtables and the version.
func (rs *State) Entries() (n int64) {
	for _, l := range rs.Layers {
		if l.Mem != nil {
			n += int64(l.Mem.Len())
		}
	}
	for _, r := range rs.Runs {
		for _, h := range r.Tables {
			n += int64(h.Meta.Entries)
		}
	}
	return n
}

// mostLooks is at about how many tables HiddenBytes looks, one as far from the next as others: commits may wait for it.
const mostLooks = 256

// HiddenBytes estimates how many bytes of tables memtables hide: those of tables whose first and last key range deletes hide, one
// or several, and a row as large as others for each delete.
func (rs *State) HiddenBytes() int64 {
	deletes, ranges := 0, []*Memory(nil)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			continue
		}
		if deletes += l.Mem.Deletes(); l.Mem.HasRangeDeletes() {
			ranges = append(ranges, l.Mem)
		}
	}
	if deletes == 0 && len(ranges) == 0 {
		return 0
	}
	hides := func(key []byte) bool {
		return slices.ContainsFunc(ranges, func(m *Memory) bool { return m.Cover(key, base.Visibility{Snapshot: base.MaxSeq}) > 0 })
	}
	n, every := 0, 1+rs.Version.NumTables()/mostLooks
	rows, size, looked, hidden := uint64(0), int64(0), int64(0), int64(0)
	for _, t := range rs.Version.Tables() {
		rows, size = rows+t.Entries, size+t.Size
		if n++; n%every != 0 {
			continue
		}
		if looked += t.Size; hides(t.Smallest) && hides(t.Largest) {
			hidden += t.Size
		}
	}
	share := float64(hidden)/float64(max(looked, 1)) + float64(deletes)/float64(max(rows, 1))
	return int64(float64(size) * min(share, 1))
}

// OldestMemtable returns the memtable below all others, nil if there is none, or no state.
func (rs *State) OldestMemtable() *memtable.Table {
	if rs != nil {
		for _, l := range slices.Backward(rs.Layers) {
			if l.Mem != nil {
				return l.Mem.Table
			}
		}
	}
	return nil
}

// Ref takes a reference. The caller holds one, or is inside the epoch.
func (rs *State) Ref() { rs.refs.Add(1) }

// Unref drops a reference.
func (rs *State) Unref() {
	if rs.refs.Add(-1) != 0 {
		return
	}
	for _, l := range rs.Layers {
		if l.Mem != nil {
			l.Mem.Unref()
		}
	}
	for _, h := range rs.Handles {
		h.Unref()
	}
}

// Forget is Unref for iterators that nobody closes, though somebody may still read what they have handed out: the memtables,
// into which that may point, stay for good. Pages of tables stay as long as they are pinned.
func (rs *State) Forget() {
	for _, m := range rs.Memtables() {
		m.Ref()
	}
	rs.Unref()
}

// NewState makes a state of the given layers and version. open returns the
// handle of each table. The state starts with one reference: the engine's.
func NewState(layers []*Layer, v *manifest.Version, open func(*base.TableMeta) *Handle) *State {
	rs := &State{Layers: layers, Version: v, largest: largestMemory(layers)}
	rs.refs.Store(1)
	for _, l := range layers {
		if l.Mem != nil {
			l.Mem.Ref()
		}
		for _, h := range l.Tables() {
			h.Ref()
			rs.Handles = append(rs.Handles, h)
		}
	}
	add := func(metas []*base.TableMeta) {
		if len(metas) == 0 {
			return
		}
		tables := make([]*Handle, len(metas))
		for i, m := range metas {
			tables[i] = open(m)
			tables[i].Ref()
		}
		rs.Handles = append(rs.Handles, tables...)
		rs.Runs = append(rs.Runs, NewRun(tables))
	}
	for _, r := range v.L0 {
		add(r.Tables)
	}
	for level := 1; level < len(v.Levels); level++ {
		add(v.Levels[level])
	}
	return rs
}

// Handle returns the handle of a table of the state.
func (rs *State) Handle(num uint64) *Handle {
	for _, h := range rs.Handles {
		if h.Meta.Num == num {
			return h
		}
	}
	return nil
}

// CheckOrder checks that the tables of a run do not overlap.
func (rs *State) CheckOrder() (problems []error) {
	for _, r := range rs.allRuns() {
		for i := 1; i < len(r.Tables); i++ {
			a, b := r.Tables[i-1].Meta, r.Tables[i]
			if bytes.Compare(a.Largest, b.Meta.Smallest) > 0 || bytes.Equal(a.Largest, b.Meta.Smallest) && !a.LargestExclusive {
				problems = append(problems, base.Corruptf(b.Name(), -1, "overlaps table %d of the same run", a.Num))
			}
		}
	}
	return problems
}
