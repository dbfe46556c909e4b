package engine

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/tree"
)

// install makes an edit durable and then visible: tables become part of the version,
// the layers they came from, if any, go, if these were what had been committed when they were read.
func (e *Engine) install(edit *manifest.Edit, tables []*tree.Handle, from *tree.Check) error {
	if err := from.Err(); err != nil {
		e.poisonNow(err)
		return err
	}
	done, err := e.record(edit, tables, from.Layers)
	if err == nil {
		e.letGo(done, from.Layers)
	}
	return err
}

// installWritten is install of tables that were written for it, which are given up if it fails.
func (e *Engine) installWritten(edit *manifest.Edit, tables []*tree.Handle, from *tree.Check) error {
	err := e.install(edit, tables, from)
	if err != nil {
		e.merger.Withdraw(tables, err)
	}
	return err
}

// recorded is an edit that the manifest has, and where the log starts since.
type recorded struct{ ordinal, logStart uint64 }

// record makes an edit durable and then visible, unless the store is poisoned, or readers are not shown what was flushed.
func (e *Engine) record(edit *manifest.Edit, tables []*tree.Handle, flushed []*tree.Layer) (done recorded, err error) {
	e.ledger.Lock()
	defer e.ledger.Unlock()
	c := &e.commit
	c.mu.Lock()
	if err = c.failed; len(flushed) > 0 {
		edit.LogStart = e.logStartWithout(flushed)
		if err == nil && !e.shown.Settle() { // readers would have tables with what they are not shown, and without what that replaced
			err = errNotShown
		}
	}
	c.mu.Unlock()
	if err != nil {
		return done, err
	}
	ordinal, err := e.ledger.Append(edit)
	if err != nil {
		return done, err
	}
	done = recorded{ordinal, e.ledger.State().LogStart}
	e.show(edit, ordinal, tables, flushed)
	e.ledger.Roll()
	return done, nil
}

// letGo gives back what only the State before an edit needed: log segments, memory, tables
// that were merged. That takes milliseconds, and a sync of a segment that is under way has
// to end, so no lock is held that commits wait for.
func (e *Engine) letGo(done recorded, flushed []*tree.Layer) {
	e.logs.LetGo(tree.SegmentsOf(flushed), done.logStart, done.ordinal)
	e.Epochs.Collect()
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	e.commit.letGo++
	e.commit.cond.Broadcast()
}

// endLog records that no log is needed, if there is nothing in it.
func (e *Engine) endLog() {
	e.ledger.Lock()
	e.commit.mu.Lock()
	edit := &manifest.Edit{LogStart: e.logStartWithout(nil)}
	e.commit.mu.Unlock()
	ordinal, err := e.ledger.Append(edit)
	if err == nil {
		e.show(edit, ordinal, nil, nil)
	}
	e.ledger.Unlock()
	if err == nil {
		e.letGo(recorded{ordinal, edit.LogStart}, nil)
	}
}

// show publishes the state after an edit.
func (e *Engine) show(edit *manifest.Edit, ordinal uint64, tables []*tree.Handle, flushed []*tree.Layer) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	e.handles.Add(tables)
	e.publish(e.newState(e.State().Without(flushed), e.ledger.State().Version))
	e.retireFiles(edit, ordinal, flushed)
	c.edited++
	c.cond.Broadcast()
	e.indexer.Wake()
}

// logStartWithout returns the first log segment that is needed once what the layers
// hold is in the tables: that of the oldest memtable left, none when the store comes
// to rest or is being closed. commit.mu and the ledger's lock are held.
func (e *Engine) logStartWithout(flushed []*tree.Layer) (start uint64) {
	rs, c := e.State(), &e.commit
	if len(rs.Layers) == len(flushed) && (c.closing || c.mem == nil && c.spare == nil && !c.preparing) {
		return manifest.NoLog(e.ledger.Next())
	}
	return rs.LogStartWithout(flushed)
}

// retireFiles notes the tables an installed edit has made useless, and the segments that
// need not be synced any more.
func (e *Engine) retireFiles(edit *manifest.Edit, at uint64, flushed []*tree.Layer) {
	for _, r := range edit.Removed {
		h := e.handles[r.Num]
		if edit.Adds(r.Num) {
			continue // moved to another level
		}
		delete(e.handles, r.Num)
		e.merger.Leftovers.Drop(r.Num)
		e.obsolete.Add(obsolete.File{Path: e.path(base.FileTable, r.Num), Edit: at, Closed: &h.Closed, Size: h.Meta.Size})
	}
	c := &e.commit
	for _, seg := range tree.SegmentsOf(flushed) {
		if c.closing && seg.Synced().Offset() < seg.Written() {
			e.logs.NeverSynced(seg.Num)
		}
		c.log.Drop(seg)
	}
}

// closeTable closes a table nobody reads any more.
func (e *Engine) closeTable(h *tree.Handle) {
	h.Reader.Close()
	h.Closed.Store(true)
	signal(e.wake)
	e.indexer.Wake() // its point index has made room
}
