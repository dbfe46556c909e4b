package engine

import (
	"errors"
	"sync"

	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// A store to which nobody writes comes to rest: what has gathered in the active memtable
// becomes a table, the log is let go of, and so is most of the space put aside for
// flushes. It is then read from tables, merged by idle compaction, takes little more
// space than these, and has nothing to replay after a kill. The next commit makes a new
// segment, as the first one after Open does.

// largeSegment is how large a segment is at least that no store keeps, in which little is written, once it sleeps: it was made
// for another burst like the last one, and as much space is put aside.
const largeSegment = 8 << 20

// restless reports whether memtables hold enough to be merged with the tables, which is little where
// there is no space for another segment, or where that takes much that nobody needs.
func (e *Engine) restless(rs *tree.State) bool {
	if e.spaceShort.Load() || e.asleep.Load() && rs.LargestMemory() >= largeSegment {
		return rs.LogBytes() > 0 // what the active memtable deletes frees space once it is a table
	}
	return e.pace.Restless(rs)
}

// awaitsRest reports whether log waits for the store to come to rest. commit.mu is held.
func (e *Engine) awaitsRest(rs *tree.State) bool {
	c := &e.commit
	return c.mem != nil && c.mem.Len() > 0 && !c.closing && c.failed == nil && e.restless(rs)
}

// restLimit returns how many bytes are merged at once when the store comes to rest: few where there
// is no space for them, or was none.
func (e *Engine) restLimit(rs *tree.State) int64 {
	if e.spaceShort.Load() || e.restShort.Load() {
		return tree.RestMerge
	}
	limit := rs.MergeAtRest()
	if free, known := e.freeSpace(); known {
		limit = min(limit, max(free, tree.RestMerge))
	}
	return limit
}

// mayMergeIdle reports whether a store that has been quiet for a while may be merged where nobody
// waits for it: at rest at once.
func (e *Engine) mayMergeIdle(q *pace.Quiet) bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	return e.commit.mem == nil || q.Idle(idleMark) && !e.commit.resting
}

// endResting lets the flusher go on: there are commits again.
func (e *Engine) endResting() {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting {
		c.resting = false
		c.sealed.Signal()
	}
}

// rest seals the active memtable, gives up the spare, and makes tables of what there is,
// if there has been no commit since visible was seq. A store just made keeps its spare.
func (e *Engine) rest(seq uint64) {
	c := &e.commit
	c.mu.Lock()
	hollow := e.hollow()
	empty := c.mem == nil && !c.preparing && (c.spare == nil || c.commits > 0) && len(e.State().Layers) == 0
	if c.nextSeq != seq+1 || !empty && !hollow && !e.maySeal() {
		if rs := e.State(); c.nextSeq == seq+1 { // what waited for this has waited long enough
			c.resting = c.flushing && e.awaitsRest(rs) && rs.WorthMergingAll(e.restLimit(rs))
			c.flushRest = !c.resting
			c.sealed.Signal()
		}
		c.mu.Unlock()
		return
	}
	var sealed *tree.State
	if !empty {
		sealed = e.sealActive()
	}
	spare := c.spare
	if spare == nil {
		c.mu.Unlock()
	} else {
		c.spare, c.preparing = nil, true // no segment behind it, until it is synced
		c.mu.Unlock()
		e.dropSpare(spare)
		e.prepared()
		if empty { // everything was merged for scans, and the spare kept
			e.installer.EndLog()
		}
	}
	switch {
	case hollow:
		sealed.Unref()
		if did, err := e.flushOldest(); !did && err == nil {
			e.installer.EndLog() // the flusher was there before the spare was gone
		}
		e.tidy(true)
	case empty:
		e.tidy(!e.asleep.Load()) // the keeper may sleep, too
	case e.makeTables(sealed, tablefiles.Idle):
		e.tidy(true)
	}
	e.pages.Trim() // what prepareRest has fetched in vain
}

// prepareRest does beforehand, while nobody uses the store and it is about to come to rest, what
// everything will be merged with sooner then: it sorts the memtables and fetches memory for pages,
// until there is a commit. Not for what a burst has left: it is too much to fetch memory for.
func (e *Engine) prepareRest(seq uint64) {
	r := e.Reader()
	defer e.Done(r)
	var rs *tree.State
	r.Slot.Glance(func() { rs = e.Acquire(r.Slot) })
	defer rs.Unref()
	if !rs.WorthMergingAll(tree.RestMerge) {
		return
	}
	var sorting sync.WaitGroup
	sorting.Go(rs.Sort)
	e.pages.Ready(rs.LiveBytes(), func() bool { return e.Visible() == seq && e.stopped.Err() == nil })
	sorting.Wait()
}

// maySeal reports whether memtables hold enough for a table, none of them waits for the flusher
// (after which one merge does for all), and every commit's outcome is known. commit.mu is held.
func (e *Engine) maySeal() bool {
	c := &e.commit
	return (e.oldestSealed() == nil || !c.flushing && !e.flushDue()) && e.awaitsRest(e.State()) && e.allDecided() && !e.diskFull()
}

// hollow reports whether the log has one segment, in which there is nothing, as Compact and large transactions leave
// it: then it may be sealed, too. commit.mu is held.
func (e *Engine) hollow() bool {
	c := &e.commit
	return c.mem != nil && c.mem.Len() == 0 && len(e.State().Layers) == 1 && e.allDecided() && !c.closing && c.failed == nil
}

// allDecided reports whether every commit's outcome is known, and nobody is about to begin another
// segment: the active memtable can be sealed without one. commit.mu is held.
func (e *Engine) allDecided() bool {
	c := &e.commit
	return !c.queue.Leading() && !c.preparing && c.nextSeq == e.Visible()+1
}

// sealActive ends the active memtable and returns the state with it, referenced: commit.mu
// is held, so it is the newest, and nobody has begun another memtable.
func (e *Engine) sealActive() *tree.State {
	c := &e.commit
	c.shape.Rest(c.mem, e.cfg.SegmentLimit())
	c.mem, c.asked, c.resting = nil, false, false
	sealed := e.State()
	sealed.Ref()
	return sealed
}

// makeTables makes tables of a sealed state, which it lets go of, and reports whether it
// could at once; if not, the flusher will.
func (e *Engine) makeTables(sealed *tree.State, effort tablefiles.Effort) bool {
	defer sealed.Unref()
	did, err := e.mergeAll(sealed, effort)
	if err != nil && !errors.Is(err, merger.ErrGivenUp) && e.stopped.Err() == nil {
		e.backgroundError(err)
	}
	if !did { // piece by piece
		e.commit.mu.Lock()
		e.commit.sealed.Signal()
		e.commit.mu.Unlock()
	}
	return did
}

// NoteWalked counts n rows that a scan has put together from several sources.
func (e *Engine) NoteWalked(n int) {
	if e.walked.Note(n) {
		signal(e.wakeMerge)
	}
	if e.View.NoteWalked(n) {
		e.background.Go(func() { e.SortRows(e.mustStop) })
	}
}

// mergeForScans makes one table of the active memtable and all tables, while the store is
// written to, where scans have walked enough. It reports whether it did.
func (e *Engine) mergeForScans() bool {
	if !e.walked.Any() || !e.State().WorthMergingAll(tree.RestMerge) {
		return false
	}
	c := &e.commit
	c.mu.Lock()
	for {
		rs := e.State()
		held := rs.HeldBytes()
		if e.stalled.Load() > 0 || !rs.WorthMergingAll(tree.RestMerge) || !e.maySeal() || !e.walked.PayFor(held, held) {
			break // where a memtable waits, or a commit, the flusher comes first
		}
		if c.spare != nil {
			e.walked.Spend(held)
			sealed := e.sealActive()
			c.mu.Unlock()
			return e.makeTables(sealed, tablefiles.Quick)
		}
		if e.memtablesFull(0, 0, e.cfg.MemtableLimit(0, 0)) || e.prepareSpare(0, 0, false) != nil {
			break // the next commit would have to wait
		}
	}
	c.mu.Unlock()
	return false
}

// tidy lets go of what only writing needs, if the store is at rest, and has the keeper remove files that waited for that
// at once, or when it looks. For a small segment of deletes, on a disk filled meanwhile, space stays put aside.
func (e *Engine) tidy(atOnce bool) {
	c := &e.commit
	c.mu.Lock()
	busy := c.hasSegment()
	c.mu.Unlock()
	if busy {
		return
	}
	e.ledger.MarkIfWaiting()
	e.logs.Clear(e.cfg.FS.Remove)
	if atOnce {
		signal(e.wake)
	}
	e.Epochs.Collect()
	e.buffers.Shed(e.cfg.SegmentLimit() + 1) // of a commit longer than ordinary segments
	e.shrinkReserve()
	e.keepAside()
}

// prepared lets commits go on that need a segment.
func (e *Engine) prepared() {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	c.preparing = false
	c.cond.Broadcast()
}
