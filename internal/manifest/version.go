package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/cairndb/cairn/internal/base"
)

const (
	// NumLevels is the number of levels, level 0 included.
	NumLevels = 7
	// Bottom is the deepest level, the one that is filled first.
	Bottom = NumLevels - 1
)

// Run is one run of level 0: tables that do not overlap, sorted by smallest key.
type Run struct {
	ID     uint64
	Tables []*base.TableMeta
}

// MaxSeq returns the greatest sequence in the run.
func (r *Run) MaxSeq() (seq uint64) {
	for _, t := range r.Tables {
		seq = max(seq, t.MaxSeq)
	}
	return seq
}

// Bytes returns the size of the run's tables on disk.
func (r *Run) Bytes() int64 { return totalBytes(r.Tables) }

// Version is the set of a store's tables at one moment. It is immutable: Apply
// makes a new one, sharing what did not change. The zero Version is empty.
type Version struct {
	L0     []Run                        // newest first: by MaxSeq descending (E1)
	Levels [NumLevels][]*base.TableMeta // 1..6, each sorted by smallest key; 0 is unused
}

// Tables walks all tables with their levels, level 0 first, newest run first.
func (v *Version) Tables() iter.Seq2[int, *base.TableMeta] {
	return func(yield func(int, *base.TableMeta) bool) {
		for i := range v.L0 {
			for _, t := range v.L0[i].Tables {
				if !yield(0, t) {
					return
				}
			}
		}
		for level := 1; level < NumLevels; level++ {
			for _, t := range v.Levels[level] {
				if !yield(level, t) {
					return
				}
			}
		}
	}
}

// NumRuns returns how many runs a reader has to look into: those of level 0 and the levels that are not empty.
func (v *Version) NumRuns() int {
	n := len(v.L0)
	for _, tables := range v.Levels {
		if len(tables) > 0 {
			n++
		}
	}
	return n
}

// NumTables returns the number of tables.
func (v *Version) NumTables() int {
	n := 0
	for range v.Tables() {
		n++
	}
	return n
}

// Bytes returns the size on disk of a level's tables.
func (v *Version) Bytes(level int) int64 {
	if level > 0 {
		return totalBytes(v.Levels[level])
	}
	n := int64(0)
	for i := range v.L0 {
		n += v.L0[i].Bytes()
	}
	return n
}

// Overlapping returns the tables of a level that may hold keys in [low, high);
// nil is unbounded. For levels 1..6 the result aliases the version.
func (v *Version) Overlapping(level int, low, high []byte) []*base.TableMeta {
	if level > 0 {
		return overlapping(v.Levels[level], low, high)
	}
	var out []*base.TableMeta
	for i := range v.L0 {
		out = append(out, overlapping(v.L0[i].Tables, low, high)...)
	}
	return out
}

// hasAll reports whether v has all tables of o.
func (v *Version) hasAll(o *Version) bool {
	tables := make(map[uint64]bool)
	for _, t := range v.Tables() {
		tables[t.Num] = true
	}
	for _, t := range o.Tables() {
		if !tables[t.Num] {
			return false
		}
	}
	return true
}

// String lists the tables, one run or level on a line, for debugging.
func (v *Version) String() string {
	var b strings.Builder
	for i := range v.L0 {
		fmt.Fprintf(&b, "L0 run %d:%s\n", v.L0[i].ID, describe(v.L0[i].Tables))
	}
	for level, tables := range v.Levels {
		if len(tables) > 0 {
			fmt.Fprintf(&b, "L%d:%s\n", level, describe(tables))
		}
	}
	return b.String()
}

func describe(tables []*base.TableMeta) string {
	var b strings.Builder
	for _, t := range tables {
		end := "]"
		if t.LargestExclusive {
			end = ")"
		}
		fmt.Fprintf(&b, " %06d[%q,%q%s#%d-%d", t.Num, t.Smallest, t.Largest, end, t.MinSeq, t.MaxSeq)
	}
	return b.String()
}

func totalBytes(tables []*base.TableMeta) (n int64) {
	for _, t := range tables {
		n += t.Size
	}
	return n
}

// overlapping relies on tables being sorted and free of overlap.
func overlapping(tables []*base.TableMeta, low, high []byte) []*base.TableMeta {
	from, to := 0, len(tables)
	if low != nil {
		from = sort.Search(to, func(i int) bool { return !tables[i].EndsBefore(low) })
	}
	if high != nil {
		to = sort.Search(to, func(i int) bool { return bytes.Compare(tables[i].Smallest, high) >= 0 })
	}
	if from >= to {
		return nil
	}
	return tables[from:to:to]
}

// Apply returns the version after an edit. An edit that breaks an invariant is a
// *base.CorruptionError without a file; the receiver is unchanged in any case.
func (v *Version) Apply(e *Edit) (*Version, error) {
	if len(e.Added) == 0 && len(e.Removed) == 0 {
		return v, nil // nobody changes a version
	}
	removed, err := removals(e)
	if err != nil {
		return nil, err
	}
	added, err := additions(e)
	if err != nil {
		return nil, err
	}
	found := 0
	for level, t := range v.Tables() {
		if at, ok := removed[t.Num]; ok && at == level {
			found++
		} else if added[t.Num] {
			return nil, badEdit("table %d is added a second time", t.Num)
		}
	}
	if found != len(removed) {
		return nil, badEdit("an edit removes %d tables of which %d are there", len(removed), found)
	}
	next := &Version{L0: v.L0, Levels: v.Levels}
	for level := range NumLevels {
		if err := next.rebuild(level, e, removed); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func badEdit(format string, args ...any) error { return base.Corruptf("", -1, format, args...) }

func removals(e *Edit) (map[uint64]int, error) {
	set := make(map[uint64]int, len(e.Removed))
	for _, r := range e.Removed {
		if _, twice := set[r.Num]; twice {
			return nil, badEdit("table %d is removed twice", r.Num)
		}
		set[r.Num] = r.Level
	}
	return set, nil
}

func additions(e *Edit) (map[uint64]bool, error) {
	set := make(map[uint64]bool, len(e.Added))
	for _, a := range e.Added {
		if err := a.check(); err != nil {
			return nil, err
		}
		if set[a.Table.Num] {
			return nil, badEdit("table %d is added twice", a.Table.Num)
		}
		set[a.Table.Num] = true
	}
	return set, nil
}

// rebuild replaces one level of a version under construction if the edit touches it.
func (v *Version) rebuild(level int, e *Edit, removed map[uint64]int) error {
	touched := slices.ContainsFunc(e.Added, func(a Added) bool { return a.Level == level }) ||
		slices.ContainsFunc(e.Removed, func(r Removed) bool { return r.Level == level })
	switch {
	case !touched:
		return nil
	case level == 0:
		return v.rebuildRuns(e, removed)
	}
	keep := survivors(v.Levels[level], level, removed)
	for _, a := range e.Added {
		if a.Level == level {
			keep = append(keep, a.Table)
		}
	}
	v.Levels[level] = keep
	return sortTables(keep)
}

func survivors(tables []*base.TableMeta, level int, removed map[uint64]int) []*base.TableMeta {
	var keep []*base.TableMeta
	for _, t := range tables {
		if at, ok := removed[t.Num]; !ok || at != level {
			keep = append(keep, t)
		}
	}
	return keep
}

func (v *Version) rebuildRuns(e *Edit, removed map[uint64]int) error {
	runs := make(map[uint64][]*base.TableMeta)
	for _, r := range v.L0 {
		runs[r.ID] = survivors(r.Tables, 0, removed)
	}
	for _, a := range e.Added {
		if a.Level == 0 {
			runs[a.Run] = append(runs[a.Run], a.Table)
		}
	}
	return v.setRuns(runs)
}

// setRuns replaces level 0 of a version under construction.
func (v *Version) setRuns(runs map[uint64][]*base.TableMeta) error {
	v.L0 = nil
	for id, tables := range runs {
		if len(tables) == 0 {
			continue
		}
		if err := sortTables(tables); err != nil {
			return err
		}
		v.L0 = append(v.L0, Run{ID: id, Tables: tables})
	}
	sortRuns(v.L0)
	return nil
}

// newVersion makes a version of tables that were checked one by one.
func newVersion(all map[uint64]Added) (*Version, error) {
	v, runs := new(Version), make(map[uint64][]*base.TableMeta)
	for _, a := range all {
		if a.Level == 0 {
			runs[a.Run] = append(runs[a.Run], a.Table)
		} else {
			v.Levels[a.Level] = append(v.Levels[a.Level], a.Table)
		}
	}
	for _, tables := range v.Levels {
		if err := sortTables(tables); err != nil {
			return nil, err
		}
	}
	return v, v.setRuns(runs)
}

func sortRuns(runs []Run) {
	seqs := make(map[uint64]uint64, len(runs))
	for i := range runs {
		seqs[runs[i].ID] = runs[i].MaxSeq()
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(seqs[b.ID], seqs[a.ID]), cmp.Compare(b.ID, a.ID))
	})
}

// sortTables sorts the tables of one run and checks that they do not overlap.
func sortTables(tables []*base.TableMeta) error {
	slices.SortFunc(tables, func(a, b *base.TableMeta) int { return bytes.Compare(a.Smallest, b.Smallest) })
	for i := 1; i < len(tables); i++ {
		if !tables[i-1].EndsBefore(tables[i].Smallest) {
			return badEdit("tables %d and %d overlap", tables[i-1].Num, tables[i].Num)
		}
	}
	return nil
}
