package engine

import (
	"errors"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/segments"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
)

// makeRoom reports whether w can be appended to the active segment, and moves to the next segment if not. It
// may let go of commit.mu, and then reports false: look again.
func (e *Engine) makeRoom(w *Write) (bool, error) {
	c, n, count := &e.commit, w.Bytes, w.Count
	if c.broken {
		c.cond.Wait()
		return false, nil
	}
	if c.moved {
		if e.crowded(n, count) {
			return false, e.stall()
		}
		c.moved = false
	}
	fits := c.mem != nil && c.mem.Seg.Room(n) && c.mem.Room(count)
	if fits && c.mem.Seg.Capacity() > segments.SmallBytes {
		return e.secured(w)
	}
	need := wal.OverheadBytes + frame.PaddedBytes(n)
	if !w.fewDeletes() && e.lacksRoom(need) { // a small segment may be there for deletes only
		return false, e.awaitMerge(need, &w.waited)
	}
	if fits {
		return e.secured(w)
	}
	if ok, err := e.readySpare(need, count); !ok || err != nil {
		return false, err
	}
	e.rotate(c.lastEnd())
	e.wakeBackground()
	if e.asleep.Load() {
		signal(e.wakeMerge)
	}
	return e.secured(w)
}

// makeSegment is makeRoom for a frame of n bytes that has to begin a segment: it
// reports whether a spare for it is at hand.
func (e *Engine) makeSegment(n int) (bool, error) {
	if e.commit.broken {
		e.commit.cond.Wait()
		return false, nil
	}
	return e.readySpare(wal.OverheadBytes+frame.PaddedBytes(n), 0)
}

// readySpare reports whether there is a spare segment with room, and makes one,
// or waits for the memory for it, if not.
func (e *Engine) readySpare(need, count int) (bool, error) {
	c := &e.commit
	if e.crowded(need, count) || len(e.State().Layers) > 1 && e.diskFull() {
		return false, e.stall()
	}
	if c.spare != nil && c.spare.Seg.Capacity() >= need && c.spare.Room(count) {
		return true, nil
	}
	if c.spare != nil && c.spare.Seg.Provisional() { // too small. An empty segment costs less than to give it up, which takes a sync
		e.rotate(c.lastEnd())
	}
	sealed, letGo := e.oldestSealed(), e.installer.LetGo
	err := e.prepareSpare(need, count, false)
	switch {
	case !errors.Is(err, base.ErrNoSpace) && !errors.Is(err, arena.ErrNoMemory) || e.flushErr != nil:
		return false, err
	case sealed != nil || e.oldestSealed() != nil: // memtables that wait for the store to rest hold space, or did when the spare was tried
		return false, e.awaitFlush()
	case letGo != e.installer.LetGo: // so did what is gone since
		return false, nil
	case e.installer.Edited != e.installer.LetGo: // or does what is about to go
		c.cond.Wait()
		return false, nil
	}
	return false, err
}

// awaitFlush waits until a memtable that is sealed has been flushed, or could not be. commit.mu is
// held; it is let go of.
func (e *Engine) awaitFlush() (err error) {
	for n := len(e.State().Layers); err == nil && e.flushErr == nil && len(e.State().Layers) >= n && e.oldestSealed() != nil; {
		if err = e.refuse(); err == nil {
			err = e.stall()
		}
	}
	return err
}

// crowded reports whether memtables, with a spare for need bytes and count entries, would take more than they
// may, so that one has to be flushed before there is another.
func (e *Engine) crowded(need, count int) bool {
	rs := e.State()
	n := len(rs.Layers)
	return n > 1 && e.memtablesFull(need, count, min(e.cfg.MemtableLimit(n, rs.BulkyLayers()), e.budget.Limit()/2))
}

// memtablesFull reports whether memtables, with a spare for need bytes and count
// entries, would take more than limit.
func (e *Engine) memtablesFull(need, count int, limit int64) bool {
	size, records := e.commit.shape.Next(need, count, e.cfg.SegmentLimit())
	more := int64(size + tree.IndexBytes(size, records))
	if e.commit.spare != nil { // counted already
		more = 0
	}
	return e.budget.UsedBy(arena.ClassMemtable)-e.buffers.Spare()+more > limit
}

// lastEnd returns where the log ends, failed commits left out, and the checksum
// of the frame there: what the next segment links to.
func (c *committer) lastEnd() (wal.Position, uint32) {
	if c.mem != nil {
		return c.mem.Seg.Tail()
	}
	return c.goodEnd, c.goodSum
}

// stall waits until a flush has made room, or returns why one that was tried since
// the call could not.
func (e *Engine) stall() error {
	c := &e.commit
	start := time.Now()
	if e.flushErr != nil { // there may be space by now
		signal(e.wakeFlush)
		for tried := e.flushTries; e.flushErr != nil && e.flushTries == tried && e.refuse() == nil; {
			c.cond.Wait()
		}
		return reserve.SpaceError(e.flushErr)
	}
	e.stalled.Add(1)
	e.awaited.Store(true)
	c.sealed.Signal()
	c.cond.Wait()
	e.stalled.Add(-1)
	waited := time.Since(start)
	e.events.StallNanos.Add(int64(waited))
	if waited > stallEvent {
		e.events.Aside(report.Event{Kind: report.EventStall, Duration: waited})
	}
	return nil
}

// stallEvent is the wait that is worth an event.
const stallEvent = 10 * time.Millisecond

// rotate makes the spare segment the active one. Its first frame links it to the
// segment that ends at end.
func (e *Engine) rotate(end wal.Position, sum uint32) {
	c := &e.commit
	next := c.spare
	c.spare, c.asked, c.flushRest, c.resting = nil, false, false, false
	c.shape.Note(c.mem, e.cfg.SegmentLimit())
	next.Seg.Link(end, c.log.End(), sum)
	next.SetBase(c.nextSeq)
	c.log.Add(next.Seg)
	c.mem = next
	rs := e.State()
	if len(rs.Layers) == 0 {
		e.pace.Burst.Begin()
	}
	e.installer.Publish(append([]*tree.Layer{{Mem: next}}, rs.Layers...), rs.Version)
	next.Unref() // the state holds it now
}

// prepareSpare makes the next segment, large enough for a first commit of need
// bytes and count entries, with commit.mu let go of meanwhile. At most one is
// made at a time; whoever comes second waits. There is time to fill it if nobody needs it
// at once.
func (e *Engine) prepareSpare(need, count int, fill bool) error {
	c := &e.commit
	if c.preparing {
		c.hurry.Store(true)
		c.cond.Wait()
		return nil
	}
	prepare := e.beginSpare(need, count, fill)
	c.mu.Unlock()
	err := prepare()
	c.mu.Lock()
	return err
}

// beginSpare decides what prepareSpare will make, and returns what makes it. From now on
// nobody else does. commit.mu is held, but not when the result is called.
func (e *Engine) beginSpare(need, count int, fill bool) func() error {
	c := &e.commit
	c.preparing = true
	_ = e.share() // tried again when the segment is there
	c.hurry.Store(!fill)
	old := c.spare
	c.spare = nil
	plan := segments.Plan{Relaxed: c.shape.MostRelaxed(), Long: c.shape.MostLong(need)}
	plan.Size, plan.Records = c.shape.Next(need, count, e.cfg.SegmentLimit())
	fit := segments.Fit{Need: need, Count: count, Small: c.mem != nil && c.mem.Seg.Capacity() > segments.SmallBytes, Free: e.removeFiles}
	if !fit.Small && e.oldestSealed() == nil { // else the flush needs what space there is
		if fit.Halves = tree.MinSegment; e.holdsLittle(int64(need)) { // of more, small tables on a full disk could not be merged
			fit.Halves = tree.LeastSegment
		}
	}
	if lent := e.reserve.Lent(); lent > 0 {
		plan.Size = max(min(plan.Size, int(lent)), (need+4095)&^4095)
	}
	largest := e.State().LargestMemory()
	fit.Make = func(p segments.Plan) (*tree.Memory, error) { return e.newMemory(p, need, largest) }
	return func() error {
		if old != nil {
			e.dropSpare(old)
		}
		m, err := e.segments.MakeFitting(plan, fit)
		if err == nil {
			m, err = e.shared(m)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.preparing, c.spare = false, m
		e.spaceShort.Store(reserve.IsFull(err))
		c.cond.Broadcast()
		return reserve.SpaceError(err)
	}
}

// shared returns m if commits may go to it, see share. No lock is held.
func (e *Engine) shared(m *tree.Memory) (*tree.Memory, error) {
	e.commit.mu.Lock()
	err := e.share()
	e.commit.mu.Unlock()
	if err != nil {
		e.dropSpare(m)
		return nil, err
	}
	return m, nil
}

// newMemory makes a segment as planned, with space put aside for its flush, or that of the largest there
// is, and its memtable. Its first commit takes need bytes. No lock is held.
func (e *Engine) newMemory(p segments.Plan, need int, largest int64) (m *tree.Memory, err error) {
	little := int64(0)
	if e.holdsLittle(int64(need)) && p.Size <= tree.RelaxedSegment { // space for the flush of more is not for the asking later
		little = tree.LittleBytes
	}
	err = e.reserve.ForSegment(int64(p.Size), largest, little, func() error {
		m, err = e.segments.Make(p)
		return err
	})
	return m, err
}

// mayUseAgain reports whether the next segment could be made of the file of an old one of that size.
func (e *Engine) mayUseAgain(size int) bool {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	next, _ := c.shape.Next(0, 0, e.cfg.SegmentLimit())
	return c.mem != nil && !c.closing && c.failed == nil && !e.diskFull() && size == next
}

// dropSpare gives back a spare that is too small, or not needed any more. Its file stays until the
// log start moves past it; it holds no commit.
func (e *Engine) dropSpare(m *tree.Memory) {
	e.commit.log.SyncUnused(m.Seg)
	m.Seg.Close()
	m.Unref()
}
