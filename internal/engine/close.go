package engine

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// Close waits for open transactions, flushes, seals the manifest so that the next
// Open has nothing to do, and releases everything. Closing twice is fine; whoever
// comes second, or meanwhile, waits until the store is closed and gets nil.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() { err = e.close() })
	return err
}

func (e *Engine) close() error {
	e.Shut()
	var err error
	if !e.cfg.ReadOnly {
		err = e.shutDown()
	}
	return errors.Join(err, e.giveBack())
}

// shutDown brings a writable store to rest.
func (e *Engine) shutDown() error {
	c := &e.commit
	if e.recovery.Duration > 0 && e.merger.DueAtClose() {
		_ = e.ensureManifest() // for what recovery has written, too; where that cannot be had it can wait
	}
	c.mu.Lock()
	for c.queue.Leading() || c.preparing {
		c.hurry.Store(true)
		c.cond.Wait()
	}
	c.closing = true
	c.wakeAll()
	failed := c.failed
	c.mu.Unlock()
	e.stopIndexing()

	if !e.closesWell() {
		e.tables.Hurry()
	}
	var err, unmerged error
	if failed == nil {
		e.closeWaits.Store(true)
		err, unmerged = e.settle()
	}
	e.stop()
	e.wakeBackground()
	e.background.Wait()
	switch {
	case failed != nil:
		err = failed
	case err == nil:
		err = e.seal()
	default:
		err = errors.Join(err, e.syncWritten()) // the log stays, and relaxed commits with it
	}
	e.closeSegments()
	return reserve.SpaceError(errors.Join(err, unmerged))
}

// closes reports whether Close has begun to flush, or is about to.
func (e *Engine) closes() bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.commit.closing
}

// closesWell reports whether there is so little to do that Close need not be hasty.
func (e *Engine) closesWell() bool {
	r := e.Reader()
	defer e.Done(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	return rs.ClosesWell()
}

// mustStop returns why a flush or merge has to end.
func (e *Engine) mustStop() error {
	if e.closeWaits.Load() {
		return merger.ErrGivenUp
	}
	return e.stopped.Err()
}

// settle flushes everything and works off a moderate debt. unmerged is why it could not do
// that, a damaged table for one: what was written since it was opened is in tables all the
// same.
func (e *Engine) settle() (err, unmerged error) {
	c := &e.commit
	c.mu.Lock()
	c.mem = nil // seals the active memtable
	c.mu.Unlock()
	did, unmerged := e.mergeAll(nil, tablefiles.Awaited)
	if did {
		return nil, nil
	}
	if err := e.flushRest(); err != nil {
		return err, unmerged
	}
	if !e.ledger.Live() {
		return nil, unmerged // nothing was written since Open
	}
	for unmerged == nil && e.merger.DueAtClose() {
		did, err := e.compactOnce(true, false)
		if reserve.IsFull(err) {
			return nil, nil // it can wait
		}
		if err != nil || !did {
			return nil, err
		}
	}
	return nil, unmerged
}

// flushRest flushes everything. On a full disk the space that was put aside, and
// what a compaction has taken, are for this.
func (e *Engine) flushRest() error {
	for given := false; ; {
		did, err := e.flushOldest()
		switch {
		case reserve.IsFull(err) && !given:
			given = true
			e.merging.Lock()
			defer e.merging.Unlock()
			e.removeFiles()
			e.reserve.Release()
		case err != nil || !did:
			return err
		case given:
			e.removeFiles() // for the next one
		}
	}
}

// seal ends the manifest, and removes what only an unclean end would have needed.
func (e *Engine) seal() error {
	if !e.ledger.Live() {
		e.reserve.Release() // there may be some: for a first segment that did not fit
		return nil
	}
	logStart, err := e.ledger.Seal(e.commit.nextSeq - 1)
	if reserve.IsFull(err) { // nothing has changed, and nothing is left to flush
		e.removeFiles()
		e.reserve.Release()
		logStart, err = e.ledger.Seal(e.commit.nextSeq - 1)
	}
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	e.Drop()
	if e.cfg.Relaxed && e.commit.spare != nil {
		e.logs.NeverSynced(e.commit.spare.Seg.Num)
	}
	remove := e.logs.Seal(logStart)
	e.obsolete.Hurry()
	e.removing.Go(func() { // what is left in memory goes meanwhile
		e.reserve.Release()
		e.logs.Remove(remove, e.ledger.TakeObsolete())
		e.logs.Clear(remove)
	})
	return nil
}

// closeSegments closes the log segments that are still open: those of memtables too that could
// not be flushed.
func (e *Engine) closeSegments() {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if rs := e.State(); rs != nil {
		for _, seg := range tree.SegmentsOf(rs.Layers) {
			seg.Close()
		}
	}
	if c.spare != nil {
		c.spare.Seg.Close()
		c.spare.Unref()
		c.spare = nil
	}
	c.log.Close()
}
