package engine

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/durability"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/group"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
)

// Write is one commit as the log will hold it.
type Write struct {
	Entries  [][]byte // as frame.AppendEntry encodes them; a put may begin in one slice and end in the next
	Bytes    int      // how long they are together
	Count    int      // how many
	Durable  bool
	Reads    *mvcc.ReadSet // nil or empty: nothing to validate
	Snapshot uint64        // what Reads were read at

	first    uint64        // hash of the first entry's key
	checked  uint64        // reads are known valid against commits up to this sequence
	failures uint64        // as many writes of the log had failed then
	looks    int           // without the lock
	waited   time.Duration // for merges to make room
	outcome  group.Commit
}

// Reset forgets everything but memory for reuse. The commit, if there was one, is over.
func (w *Write) Reset() { *w = Write{outcome: group.Commit{Wait: w.outcome.Wait}} }

// committer is the state of the commit pipeline, guarded by mu unless noted.
//
// A commit is appended to the active segment's arena and queued under mu; then it is
// written and synced with others (package group). Commits become visible in the order of their
// sequences, and a durable one only after the sync (E2).
type committer struct {
	mu     sync.Mutex
	cond   *sync.Cond // spare, layers or failed have changed, or commits have their outcome
	sealed *sync.Cond // the flusher's: there may be a layer to flush, or it shall stop

	nextSeq uint64
	commits uint64       // that were appended since Open
	logged  int64        // bytes of their frames
	mem     *tree.Memory // active; nil until the first commit
	queue   group.Queue
	log     durability.Log

	goodEnd wal.Position // end of the last commit that succeeded
	goodSum uint32

	spare     *tree.Memory // next active segment, recorded in the manifest
	preparing bool         // somebody makes the spare, or gives it up, or has to do with the space put aside for it: who needs a segment waits
	hurry     atomic.Bool  // somebody waits for it
	asked     bool         // a commit to the active segment has had one begun; where that could not be, the keeper does
	flushRest bool         // nobody has written for a while: what is sealed is flushed
	resting   bool         // nor that: when the flush under way has ended everything is merged
	flushing  bool         // the flusher has begun
	shape     tree.Shape   // of the segment to make

	broken   bool   // a write failed; the leader is moving to another segment
	moved    bool   // it has, without a look at how much memory there is for another memtable
	failures uint64 // how often sequences were taken back, to be given out again
	failed   error  // poisoned: why
	closing  bool

	ingesting int  // ingest frames whose tables are not in the state yet
	held      bool // nothing is appended before a commit that was overtaken too often has looked at what came

	triedAt uint64 // 1 + the installer's LetGo when space could not be put aside the last time
}

// wakeAll wakes whoever waits, the flusher included: the store stops or has failed.
func (c *committer) wakeAll() {
	c.cond.Broadcast()
	c.sealed.Broadcast()
}

// hasSegment reports whether there is one that commits may go to, or somebody is making it. mu is held.
func (c *committer) hasSegment() bool { return c.mem != nil || c.spare != nil || c.preparing }

// refuse returns why no commit is possible now.
func (e *Engine) refuse() error {
	switch {
	case e.commit.failed != nil:
		return e.commit.failed
	case e.commit.closing:
		return base.ErrClosed
	case e.cfg.ReadOnly:
		return base.ErrReadOnly
	case e.commit.nextSeq > base.MaxSeq-math.MaxUint32: // as many as one commit may take. No store comes there by itself
		return base.Corruptf(e.cfg.Dir, -1, "commit %d leaves no sequences for others", e.commit.nextSeq-1)
	case !e.shown.Settle():
		return errNotShown
	}
	return nil
}

// errNotShown: readers in other processes see an old state, and are not told (E16).
var errNotShown = fmt.Errorf("%w: the lock file takes nothing, by which readers see what is committed", base.ErrNoSpace)

// refuseEdit returns why no edit of the manifest may be recorded now, or none that flushes: readers whom a commit is not shown
// would have tables with it, and without what it replaced. commit.mu is held.
func (e *Engine) refuseEdit(flush bool) error {
	if e.commit.failed == nil && flush && !e.shown.Settle() {
		return errNotShown
	}
	return e.commit.failed
}

// Commit makes w's entries one commit and returns its last sequence once the
// outcome is known. The error is a *base.ConflictError if w's reads no longer hold.
func (e *Engine) Commit(w *Write) (uint64, error) {
	w.first = base.Hash(frame.Key(w.Entries[0]))
	w.begin()
	e.throttle(int64(w.Bytes))
	e.commit.queue.Inside.Add(1)
	defer e.commit.queue.Inside.Add(-1)
	e.commit.mu.Lock()
	if err := e.prepare(w); err != nil {
		e.commit.mu.Unlock()
		return 0, err
	}
	p, err := e.append(w)
	if err != nil {
		e.commit.mu.Unlock()
		return 0, err
	}
	return p.Last, e.commit.queue.Await(p)
}

// throttle slows a commit of n bytes as pace has it. The hard bound, on memory, is in makeRoom.
func (e *Engine) throttle(n int64) {
	rs := e.State()
	if rs == nil {
		return
	}
	if d := e.pace.Slow(rs, n); d > 0 {
		signal(e.wakeMerge)
		start := time.Now()
		time.Sleep(d)
		slept := time.Since(start)
		e.pace.Brake.Overslept(slept - d)
		e.events.StallNanos.Add(int64(slept))
	}
}

// prepare returns when w can be appended, or why it cannot. commit.mu is held; it may be
// let go of in between.
func (e *Engine) prepare(w *Write) error {
	for ready, lent := false, 0; !ready; {
		if err := e.refuse(); err != nil {
			return err
		}
		if err := e.admit(w); err != nil {
			return err
		}
		var err error
		if ready, err = e.makeRoom(w); ready && err == nil {
			ready, err = e.validate(w)
		}
		if err == nil {
			continue
		}
		if lent == mostLent || !e.mayFreeSpace(w, err) {
			return err
		}
		lent++
	}
	return nil
}

// mostLent is how often one commit gets of the space that was put aside: others may take it first. Where space can be put
// aside again, and no segment made of it all the same, it would go on for ever.
const mostLent = 3

// append encodes w as a frame, indexes its entries and queues it. They may have changed while it waited: a Batch is the caller's.
// If that shows only when they are in the log, it is not gone on with.
func (e *Engine) append(w *Write) (*group.Commit, error) {
	c := &e.commit
	if frame.Length(w.Entries) != w.Bytes {
		return nil, base.ErrBatchChanged
	}
	p := &w.outcome
	p.Renew(w.Durable)
	h := frame.Header{Kind: frame.KindCommit, Seq: c.nextSeq, Count: uint32(w.Count), Durable: uint64(c.log.End())}
	c.mem.PrefetchSlot(w.first) // while the frame is written
	offset, frameEnd := c.mem.Seg.Stage(h, w.Entries...)
	at := int(offset)
	if n, end := c.mem.InsertAll(at, at+w.Bytes); n != w.Count || end != at+w.Bytes {
		c.mem.Seg.Unsay(offset)
		e.poison(fmt.Errorf("%w: %d entries in %d bytes, and %d in %d are said", base.ErrBatchChanged, n, end-at, w.Count, w.Bytes))
		return nil, c.failed
	}
	c.mem.Seg.Publish(frameEnd)
	if c.mem.HasRangeDeletes() {
		e.buffers.CountRangeDeletes(c.mem)
	}
	if fresh := c.mem.Untouched(); fresh != nil {
		m := c.mem
		m.Ref()
		e.background.Go(func() {
			arena.Touch(fresh)
			m.Unref()
		})
	}
	e.events.CommittedBytes.Add(int64(w.Bytes))
	bytes := frame.PaddedBytes(w.Bytes)
	c.logged += int64(bytes)
	c.shape.Saw(bytes, w.Count, w.Durable)
	if !c.asked && c.wantsSpare() {
		c.asked = true
		e.keepSpare()
		signal(e.wakeMerge) // from now on it looks more often whether there is quiet
	}
	return e.enqueue(p, uint64(w.Count)), nil
}

func (e *Engine) enqueue(p *group.Commit, sequences uint64) *group.Commit {
	c := &e.commit
	c.nextSeq += sequences
	c.commits++
	p.Last = c.nextSeq - 1
	p.End, p.Sum = c.mem.Seg.Tail()
	c.queue.Add(p)
	e.syncer.Committed()
	return p
}

// round is what the rounds of the commit queue do to the log. It implements group.Log.
type round struct {
	*Engine
	segments []*wal.Segment // those to write and sync, for who leads
}

func (r *round) Begin() { r.segments = r.commit.log.Segments(r.segments) }

func (r *round) Write() error { return wal.WriteOut(r.segments) }

func (r *round) Sync() error { return r.commit.log.MustSync(r.segments) }

func (r *round) Synced() { r.commit.log.Advance() }

func (r *round) Show(commits []*group.Commit) error {
	for _, p := range commits {
		if p.Shown != nil {
			p.Shown()
		}
		r.View.Show(p.Last)
	}
	last := commits[len(commits)-1]
	r.commit.goodEnd, r.commit.goodSum = last.End, last.Sum
	if !r.shown.Show(last.Last, uint64(last.End)) {
		return reserve.SpaceError(fmt.Errorf("%w: it is there, but %w", base.ErrCommitUnknown, errNotShown))
	}
	return nil
}

func (r *round) SyncFailed(commits []*group.Commit, why error) {
	r.commit.queue.Conclude(commits, r.poison(why))
}

// poison makes the store read-only for good: what the disk holds is unknown. It returns the error of commits whose outcome is unknown, too.
func (e *Engine) poison(why error) (unknown error) {
	c := &e.commit
	if c.failed == nil {
		if c.failed = why; !errors.Is(why, base.ErrPoisoned) {
			c.failed = fmt.Errorf("%w: %w", base.ErrPoisoned, why)
		}
		c.failed = reserve.SpaceError(c.failed)
		e.events.Aside(report.Event{Kind: report.EventBackgroundError, Err: c.failed})
	}
	c.wakeAll()
	unknown = reserve.SpaceError(fmt.Errorf("%w: %w", base.ErrCommitUnknown, why))
	c.queue.Conclude(c.queue.Take(), unknown)
	return unknown
}

// poisonNow is poison for those who do not hold commit.mu.
func (e *Engine) poisonNow(why error) {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	e.poison(why)
}

// WriteFailed ends the commits of a round whose write failed, and those behind
// it: none is ever shown (E3). Before anybody is told, writing moves to a fresh
// segment whose synced link fixes where the old one ends, so that no later
// recovery can find them either; if that fails too the store is poisoned.
func (r *round) WriteFailed(commits []*group.Commit, why error) {
	c := &r.commit
	c.broken = true
	commits = append(commits, c.queue.Take()...)
	r.forget(r.Visible())
	err := r.resume(reserve.IsFull(why))
	c.broken = false
	if err != nil {
		err = fmt.Errorf("%w; then resuming on a new segment: %w", why, err)
		c.queue.Conclude(commits, r.poison(err))
		return
	}
	c.queue.Conclude(commits, reserve.SpaceError(why))
}

// forget removes from the memtables what was sequenced after good, and takes the
// sequences back.
func (e *Engine) forget(good uint64) {
	c := &e.commit
	for _, l := range e.State().Layers {
		if l.Mem != nil && l.Mem.Len() > 0 && l.Mem.LastSeq() > good {
			l.Mem.Truncate(int(max(good+1, l.Mem.FirstSeq()) - l.Mem.FirstSeq()))
		}
	}
	c.log.Abandon()
	c.nextSeq = good + 1
	c.failures++
}

// resume moves writing to a new segment, linked to the end of the last good
// commit, and makes that durable. commit.mu is let go of meanwhile; the caller
// leads and c.broken is set, so nothing is written or appended. Where what was reserved did not help on a full
// disk, that of the spare may not either: the segment is a new one, of what was put aside if need be, as one for deletes.
func (e *Engine) resume(full bool) error {
	c := &e.commit
	for lent := 0; c.spare == nil || full; {
		full = full && c.preparing // it waits for what somebody makes then, which is no newer
		err := e.prepareSpare(0, 0, false)
		if err == nil {
			continue
		}
		if lent++; lent > mostLent || !reserve.IsFull(err) || !e.lend() {
			return err
		}
	}
	e.rotate(c.goodEnd, c.goodSum)
	c.moved = true
	segments := c.log.Segments(nil)
	c.mu.Unlock()
	err := wal.WriteOut(segments)
	if err == nil {
		err = c.log.MustSync(segments)
	}
	c.mu.Lock()
	if err == nil {
		c.log.Advance()
	}
	return err
}

// AwaitOutcome waits until the commit that seq belongs to is visible or gone.
func (e *Engine) AwaitOutcome(seq uint64) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for e.Visible() < seq && seq < c.nextSeq && c.failed == nil {
		c.cond.Wait()
	}
}
