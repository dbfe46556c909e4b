// Package merger writes the tables of a store: of memtables, of what a compaction merges, and of
// everything at once. When that is done, and what becomes of the tables, is the engine's business.
//
// # Concurrency
//
// Merger's methods may be called by any goroutines at once.
package merger

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// TargetTable is the size in bytes of the tables of levels that are merged piece by piece.
const TargetTable = 16 << 20

// wholeTable is a size no table reaches: what is written at once becomes one.
const wholeTable = 1 << 40

// Merger writes tables. View, Tables and MustStop are set before its first use.
type Merger struct {
	View     *view.View
	Tables   *tablefiles.Files
	MustStop func() error // returns why a flush or merge has to end

	Leftovers compact.Leftovers // garbage that snapshots held
}

// readers returns the sequences of open snapshots, in order, and those that are read at: with them the one that may be
// seen. What a merge does and what is said of it come from one look, since a snapshot may end between two. The two share
// memory, which nobody changes.
func (m *Merger) readers() (snapshots, all tombstone.Stripes) {
	visible := m.View.Visible() // before: a snapshot that begins later is not of a lesser one
	all = m.View.Epochs.Snapshots(make([]uint64, 0, m.View.Epochs.Participants()+1))
	slices.Sort(all)
	all = slices.Compact(all)
	n := len(all)
	i, open := slices.BinarySearch(all, visible)
	switch {
	case open:
		return all, all
	case i == n: // as it is but for snapshots that began since
		all = append(all, visible)
		return all[:n:n], all
	}
	return all, slices.Insert(slices.Clip(all), i, visible)
}

// Inputs returns what decides, besides the version, which compaction is due.
func (m *Merger) Inputs(idle bool) compact.Inputs {
	_, readers := m.readers()
	return compact.Inputs{
		Idle: idle, Readers: readers, Leftovers: m.Leftovers.All(), Tombstones: m.View.State().RangeDeletes(), Unreadable: m.Leftovers.Unreadable(),
		TargetFileBytes: TargetTable, Codecs: m.Tables.CompressesWell(),
	}
}

// Debt returns how many bytes compactions have to merge until the store is at rest.
func (m *Merger) Debt() int64 {
	return compact.Debt(m.View.State().Version, m.Inputs(true))
}

// DueAtClose reports whether compactions owe something, and not more than Close does.
func (m *Merger) DueAtClose() bool {
	debt := m.Debt()
	return debt > 0 && debt <= m.View.State().CloseMerge()
}

// Flush writes sealed memtables, the newest first, to a run of level 0: no table if they are empty.
// oldest is the layer of the last, in rs. read is called when all of them has been read.
func (m *Merger) Flush(mems []*tree.Memory, rs *tree.State, oldest *tree.Layer, read func()) ([]*tree.Handle, error) {
	check := m.fetched(mems, m.MustStop)
	merge, rows := m.ofMemory(mems, rs.Lowest(oldest))
	if rows == 0 {
		return nil, nil
	}
	level := 0
	if !merge.Bottom && m.apart(merge, rs, oldest) {
		merge.Bottom, level = true, manifest.Bottom
	}
	merge.Read, merge.Check = read, check
	return m.Tables.WriteResident(merge, level, rows, tablefiles.Flush)
}

// apart reports whether no table has keys in between those of memtables, of a store that has outgrown memory. They are
// written as for the last level then, so that a merge need not write them again but takes their blocks as they are
// (compact.Merge): of what is put in the order of keys that is everything.
func (m *Merger) apart(merge *compact.Merge, rs *tree.State, oldest *tree.Layer) bool {
	if !m.Tables.Pages.Scarce() || !merge.Tombstones.Empty() || !merge.Rows.First() {
		return false
	}
	low := bytes.Clone(merge.Rows.Key())
	return merge.Rows.Last() && rs.Apart(oldest, low, merge.Rows.Key())
}

// ofMemory is what makes a table of sealed memtables, and how many rows it has at most.
func (m *Merger) ofMemory(mems []*tree.Memory, lowest bool) (merge *compact.Merge, rows uint64) {
	var sources []base.Iterator
	var tombs []*tombstone.List
	for _, mem := range mems {
		if mem.Len() == 0 {
			continue
		}
		sources, tombs = mem.AppendRows(sources, tombs)
		rows += uint64(mem.Len())
	}
	snapshots, _ := m.readers()
	return &compact.Merge{
		Rows:        iterator.NewMerging(sources...),
		Tombstones:  tombstone.Merge(tombs...),
		Snapshots:   snapshots,
		Bottom:      lowest,
		TargetBytes: wholeTable,
		Check:       m.MustStop,
	}, rows
}

// Job merges the tables of a job. stop returns why that has to end: then nothing is left of it.
func (m *Merger) Job(job *compact.Job, stop func() error) ([]*tree.Handle, error) {
	r := m.View.Reader()
	defer m.View.Done(r)
	r.Slot.Enter() // only as long as this: the state keeps memtables that are flushed meanwhile
	inputs := m.View.State().Hold(job.Inputs)
	r.Slot.Exit()
	defer tree.Unhold(inputs)
	tombstones := tombstone.Merge(tree.AppendTombstones(nil, inputs)...)
	snapshots, readers := m.readers()
	rows, _ := tree.AppendRows(nil, inputs, tombstones, snapshots, r.Slot)
	merging := iterator.NewMerging(rows...)
	defer merging.Close()
	merge := &compact.Merge{
		Rows: merging, Tombstones: tombstones, Snapshots: snapshots, Bottom: job.Bottommost,
		TargetBytes: job.TargetFileBytes, Grandparents: job.Grandparents, GrandparentBytes: job.GrandparentBytes,
		Check: stop,
	}
	effort := tablefiles.Beside
	if job.Quick {
		effort = tablefiles.Quick
	}
	tables, err := m.Tables.WriteResident(merge, job.OutLevel, job.MaxRows(), effort)
	if err == nil {
		m.Leftovers.Note(job, tree.Numbers(tables), merge.Leftovers(), readers[0])
	}
	return tables, err
}

// NoteFailed takes up the error of a merge, if it says that a table of the store could not be read.
func (m *Merger) NoteFailed(err error) {
	var corrupt *base.CorruptionError
	var of *fs.PathError
	name := ""
	if errors.As(err, &corrupt) {
		name = corrupt.File
	} else if errors.As(err, &of) {
		name = of.Path
	}
	if t, num := base.ParseFileName(filepath.Base(name)); t == base.FileTable {
		if rs := m.View.State(); rs != nil && rs.Handle(num) != nil {
			m.Leftovers.Failed(num)
		}
	}
}

// Withdraw gives up tables whose edit failed with err. If the store is poisoned
// nobody knows whether the manifest names them, so the files have to stay.
func (m *Merger) Withdraw(tables []*tree.Handle, err error) {
	for _, h := range tables {
		m.Leftovers.Drop(h.Meta.Num)
	}
	if !errors.Is(err, base.ErrPoisoned) {
		m.Tables.Discard(tables)
		return
	}
	for _, h := range tables {
		h.Reader.Close()
	}
}

// Added is what an edit says of tables that become part of a level, or of a run of level 0.
func Added(level int, run uint64, tables []*tree.Handle) (a []manifest.Added) {
	for _, h := range tables {
		a = append(a, manifest.Added{Level: level, Run: run, Table: h.Meta})
	}
	return a
}
