package engine

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// mergeAll writes what a store that is not too large holds, in memtables and tables, to the
// last level in one pass, where flushing the one and then merging both would write it
// twice. It reports whether it did. All memtables are sealed, and the outcome of their
// commits is known: either they and the tables are those of the state given, to which the
// caller has a reference, and nothing is done if by now the store has other tables, though
// it may have more memtables; or it is closing, the state is nil, and nobody writes or
// reads any more.
func (e *Engine) mergeAll(sealed *tree.State, effort tablefiles.Effort) (bool, error) {
	closing := sealed == nil
	e.flushing.Lock()
	defer e.flushing.Unlock()
	if closing {
		e.merging.Lock()
		e.closeWaits.Store(false)
	} else if !e.merging.TryLock() {
		return false, nil // somebody has asked for a compaction, for which no flush should wait
	}
	defer e.merging.Unlock()
	r := e.Reader()
	defer e.Done(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	if closing {
		sealed = rs
	}
	limit := sealed.MergeAtRest()
	if closing {
		limit = sealed.CloseMerge()
	}
	if !rs.Continues(sealed) || !sealed.WorthMergingAll(limit) {
		return false, nil
	}
	start := time.Now()
	tables, edit, err := e.mergeParts(sealed, sealed.Split(runtime.GOMAXPROCS(0)), closing, effort)
	if err == nil {
		if err = e.install(edit, tables, sealed.Layers...); err != nil {
			e.withdraw(tables, err)
		}
	}
	switch {
	case reserve.IsFull(err):
		return false, nil // piece by piece it may do
	case err == nil:
		e.setFlushError(nil) // what a flush could not do is done: who waits for it goes on
		e.counters.FlushedBytes.Add(tree.SizeOf(tables))
		e.emit(report.Event{Kind: report.EventFlush, Level: manifest.Bottom, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	}
	return err == nil, err
}

// mergeParts writes what a state holds to tables of the last level: from each of some keys to the
// next, the first being nil, side by side.
func (e *Engine) mergeParts(rs *tree.State, lows [][]byte, closing bool, effort tablefiles.Effort) (all []*tree.Handle, edit *manifest.Edit, err error) {
	if len(lows) > 1 {
		effort = effort.Alone() // the other processors have parts of their own
	}
	oldest := e.pickInputs(false).OldestSnapshot
	parts := make([]part, len(lows))
	var failed atomic.Bool
	var working sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		if p.Low = lows[i]; i+1 < len(lows) {
			p.High = lows[i+1]
		}
		p.Check = func() error { return e.mergeMayGoOn(closing, &failed) }
		work := func() {
			e.mergePart(p, rs, len(parts), closing, effort)
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
	job := &compact.Job{Bottommost: true, OutLevel: manifest.Bottom, Quick: e.tables.Hasty(effort)}
	for i := range parts {
		p := &parts[i]
		if p.err != nil && (err == nil || errors.Is(err, errGivenUp)) { // who gave up may have done so for another's sake
			err = p.err
		}
		if p.err == nil {
			e.leftovers.Note(job, tree.Numbers(p.tables), p.Leftovers(), oldest)
			all = append(all, p.tables...)
		}
	}
	if err != nil {
		e.withdraw(all, err)
		return nil, nil, err
	}
	edit = parts[0].edit
	for _, h := range all {
		edit.Added = append(edit.Added, manifest.Added{Level: manifest.Bottom, Table: h.Meta})
	}
	return all, edit, nil
}

// part is what one processor does of a merge of everything.
type part struct {
	compact.Merge
	edit   *manifest.Edit
	tables []*tree.Handle
	err    error
}

// mergePart writes the tables of a part, which is one of n. What a store that stays open writes
// begins in memory, as after any other merge.
func (e *Engine) mergePart(p *part, rs *tree.State, n int, closing bool, effort tablefiles.Effort) {
	r := e.Reader()
	defer e.Done(r)
	whole := rs.Whole(r.Slot)
	defer whole.Rows.Close()
	p.edit = &whole.Edit
	p.Rows, p.Tombstones, p.Snapshots, p.Bottom, p.TargetBytes = whole.Rows, whole.Tombstones, e.snapshots(), true, TargetTable
	if closing {
		p.tables, p.err = e.tables.Write(&p.Merge, manifest.Bottom, 0, effort)
	} else {
		p.tables, p.err = e.tables.WriteResident(&p.Merge, manifest.Bottom, whole.Count/uint64(n), effort)
	}
}

// mergeMayGoOn returns why a merge of everything has to end, or a part of it, of which another one
// has failed. Close interrupts one that is not its own.
func (e *Engine) mergeMayGoOn(closing bool, failed *atomic.Bool) error {
	switch {
	case failed.Load():
		return errGivenUp
	case closing:
		return e.stopped.Err()
	case e.stalled.Load() > 0:
		return errGivenUp // piece by piece there is room for commits sooner
	}
	return e.mustStop()
}
