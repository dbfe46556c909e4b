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
// of some keys to the next. mayGoOn returns why it has to end. The edit says what becomes of the tables
// there were.
//
// What a store that stays open writes begins in memory, as after any other merge.
func (m *Merger) All(rs *tree.State, closing bool, effort tablefiles.Effort, mayGoOn func() error) (all []*tree.Handle, edit *manifest.Edit, err error) {
	n := runtime.GOMAXPROCS(0)
	if effort == tablefiles.Quick {
		n = 1
	}
	lows := rs.Split(n)
	if len(lows) > 1 {
		effort = effort.Alone() // the other processors have parts of their own
	}
	oldest := m.Inputs(false).OldestSnapshot
	parts := make([]part, len(lows))
	var failed atomic.Bool
	var working sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		if p.Low = lows[i]; i+1 < len(lows) {
			p.High = lows[i+1]
		}
		p.Check = func() error {
			if failed.Load() {
				return ErrGivenUp
			}
			return mayGoOn()
		}
		work := func() {
			m.part(p, rs, len(parts), closing, effort)
			if p.err != nil {
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
	job := &compact.Job{Bottommost: true, OutLevel: manifest.Bottom, Quick: m.Tables.Hasty(effort)}
	for i := range parts {
		p := &parts[i]
		if p.err != nil && (err == nil || errors.Is(err, ErrGivenUp)) { // who gave up may have done so for another's sake
			err = p.err
		}
		if p.err == nil {
			m.Leftovers.Note(job, tree.Numbers(p.tables), p.Leftovers(), oldest)
			all = append(all, p.tables...)
		}
	}
	if err != nil {
		m.Withdraw(all, err)
		return nil, nil, err
	}
	edit = parts[0].edit
	edit.Added = Added(manifest.Bottom, 0, all)
	return all, edit, nil
}

// part is what one processor does of a merge of everything.
type part struct {
	compact.Merge
	edit   *manifest.Edit
	tables []*tree.Handle
	err    error
}

// part writes the tables of a part, which is one of n.
func (m *Merger) part(p *part, rs *tree.State, n int, closing bool, effort tablefiles.Effort) {
	r := m.View.Reader()
	defer m.View.Done(r)
	whole := rs.Whole(r.Slot)
	defer whole.Rows.Close()
	p.edit = &whole.Edit
	p.Rows, p.Tombstones, p.Snapshots, p.Bottom, p.TargetBytes = whole.Rows, whole.Tombstones, m.snapshots(), true, TargetTable
	if closing {
		p.tables, p.err = m.Tables.Write(&p.Merge, manifest.Bottom, 0, effort)
	} else {
		p.tables, p.err = m.Tables.WriteResident(&p.Merge, manifest.Bottom, whole.Count/uint64(n), effort)
	}
}
