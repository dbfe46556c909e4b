package merger

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// ErrGivenUp ends a flush or merge that was under way when the store was closed: Close
// does the same work, and more, on all processors. It ends a merge of everything too for
// which commits would have to wait.
var ErrGivenUp = errors.New("engine: given up for Close")

// All writes what a state holds to tables of the last level: several parts of it side by side, from each
// of some keys to the next. mayGoOn returns why it has to end; read is called when all of the state has been
// read. The edit says what becomes of the tables there were.
//
// What a store that stays open writes begins in memory, as after any other merge.
func (m *Merger) All(rs *tree.State, closing bool, effort tablefiles.Effort, mayGoOn func() error, read func()) (all []*tree.Handle, edit *manifest.Edit, err error) {
	n := runtime.GOMAXPROCS(0)
	if effort == tablefiles.Quick {
		n = 1
	}
	mayGoOn = m.fetched(rs.Memtables(), mayGoOn)
	parts := split(rs, n)
	if len(parts) > 1 {
		effort = effort.Alone() // the other processors have parts of their own
	}
	_, readers := m.readers() // before the parts look, so that what is noted is not ahead of what they did
	all, err = m.sideBySide(parts, mayGoOn, read, func(p *part) {
		m.part(p, rs, len(parts), closing, effort)
	})
	if err != nil {
		return nil, nil, err
	}
	job := &compact.Job{Bottommost: true, OutLevel: manifest.Bottom, Quick: m.Tables.Hasty(effort)}
	for i := range parts {
		m.Leftovers.Note(job, tree.Numbers(parts[i].tables), parts[i].Leftovers(), readers[0])
	}
	edit = parts[0].edit
	edit.Added = Added(manifest.Bottom, 0, all)
	return all, edit, nil
}

// part is what one processor does of a merge.
type part struct {
	compact.Merge
	edit   *manifest.Edit
	tables []*tree.Handle
	err    error
}

// split makes parts of the merge of a state, for n processors at most.
func split(rs *tree.State, n int) []part {
	lows := rs.Split(n)
	parts := make([]part, len(lows))
	for i := range parts {
		if parts[i].Low = lows[i]; i+1 < len(lows) {
			parts[i].High = lows[i+1]
		}
	}
	return parts
}

// sideBySide has write write the tables of all parts, and returns these. The last part that has read what it is
// made of calls read, which is nil where parts are merges of their own (FlushReplayed).
func (m *Merger) sideBySide(parts []part, mayGoOn func() error, read func(), write func(*part)) (all []*tree.Handle, err error) {
	var failed atomic.Bool
	var reading atomic.Int32
	reading.Store(int32(len(parts)))
	var working sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		p.Check = func() error {
			if failed.Load() {
				return ErrGivenUp
			}
			return mayGoOn()
		}
		p.Read = func() {
			if reading.Add(-1) == 0 {
				read()
			}
		}
		work := func() {
			if write(p); p.err != nil {
				failed.Store(true)
			}
		}
		if i+1 < len(parts) {
			working.Go(work)
		} else {
			work()
		}
	}
	working.Wait()
	for i := range parts {
		p := &parts[i]
		if p.err != nil && (err == nil || errors.Is(err, ErrGivenUp)) { // who gave up may have done so for another's sake
			err = p.err
		}
		if p.err == nil {
			all = append(all, p.tables...)
		}
	}
	if err != nil {
		m.Withdraw(all, err)
		return nil, err
	}
	return all, nil
}

// part writes the tables of a part, which is one of n.
func (m *Merger) part(p *part, rs *tree.State, n int, closing bool, effort tablefiles.Effort) {
	r := m.View.Reader()
	defer m.View.Done(r)
	p.Snapshots, _ = m.readers()
	whole := rs.Whole(r.Slot, p.Snapshots)
	defer whole.Rows.Close()
	p.edit = &whole.Edit
	p.Rows, p.Tombstones, p.Bottom, p.TargetBytes = whole.Rows, whole.Tombstones, true, TargetTable
	if closing {
		p.tables, p.err = m.Tables.Write(&p.Merge, manifest.Bottom, 0, effort)
	} else {
		p.tables, p.err = m.Tables.WriteResident(&p.Merge, manifest.Bottom, whole.Count/uint64(n), effort)
	}
}

// FlushReplayed is Flush of what was replayed, while Open waits: on all processors, and none of its
// pages begins in memory.
func (m *Merger) FlushReplayed(mems []*tree.Memory, lowest bool) ([]*tree.Handle, error) {
	rs := &tree.State{Version: &manifest.Version{}}
	for _, mem := range mems {
		rs.Layers = append(rs.Layers, &tree.Layer{Mem: mem})
	}
	parts := split(rs, runtime.GOMAXPROCS(0))
	effort := tablefiles.Awaited
	if len(parts) > 1 {
		effort = effort.Alone()
	}
	return m.sideBySide(parts, m.MustStop, nil, func(p *part) {
		merge, rows := m.ofMemory(mems, lowest)
		merge.Low, merge.High, merge.Check = p.Low, p.High, p.Check
		p.tables, p.err = m.Tables.Write(merge, 0, rows, effort)
	})
}
