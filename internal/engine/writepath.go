package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/turn"
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
	waited   time.Duration // for merges to make room
	outcome  pending
}

// Reset forgets everything but memory for reuse. The commit, if there was one, is over.
func (w *Write) Reset() { *w = Write{outcome: pending{Wait: w.outcome.Wait}} }

// pending is a commit that has its sequence and waits for its outcome.
type pending struct {
	last    uint64 // its last sequence
	end     wal.Position
	sum     uint32 // of its frame
	durable bool
	install func()      // ingest: makes its tables readable; under commit.mu
	abandon func(error) // ingest: it failed

	done bool
	err  error

	turn.Wait // of its goroutine; done and err can be read without commit.mu when it is told that it is done
}

// renew makes p ready for another commit.
func (p *pending) renew(durable bool) {
	p.Renew()
	*p = pending{durable: durable, Wait: p.Wait}
}

// committer is the state of the commit pipeline, guarded by mu unless noted.
//
// A commit is appended to the active segment's arena and queued under mu; then
// some waiting committer leads a round on its own goroutine: one write for
// everything appended, one sync if anything in the round is durable. Commits
// become visible in the order of their sequences, and a durable one only after
// the sync (E2). Nobody waits in order to make a group larger; but of those who
// waited, whose commits are done are woken first and who leads next last, so that
// the commits that follow at once are in its round.
type committer struct {
	mu     sync.Mutex
	cond   *sync.Cond // queue, leading, spare, layers or failed have changed
	sealed *sync.Cond // the flusher's: there may be a layer to flush, or it shall stop

	nextSeq  uint64
	commits  uint64       // that were appended since Open
	mem      *tree.Memory // active; nil until the first commit
	queue    []*pending
	leading  bool
	leader   *pending       // whose goroutine leads; nil: that of no commit
	unsynced []*wal.Segment // oldest first, the active one last

	spareQueue []*pending     // recycled by the leader
	round      []*wal.Segment // the leader's copy of unsynced

	goodEnd wal.Position // end of the last commit that succeeded
	goodSum uint32
	durable wal.Position // everything before it is known durable

	spare     *tree.Memory // next active segment, recorded in the manifest
	preparing bool         // somebody makes the spare
	hurry     atomic.Bool  // somebody waits for it
	asked     bool         // the keeper was asked for one, for the active segment
	flushRest bool         // nobody has written for a while: what is sealed is flushed
	resting   bool         // nor that: when the flush under way has ended everything is merged
	flushing  bool         // the flusher has begun
	shape     tree.Shape   // of the segment to make

	inside atomic.Int32 // calls of Commit under way; without mu

	broken   bool   // a write failed; the leader is moving to another segment
	failures uint64 // how often sequences were taken back, to be given out again
	failed   error  // poisoned: why
	closing  bool

	ingesting int // ingest frames whose tables are not in the state yet
}

// wakeAll wakes whoever waits, the flusher included: the store stops or has failed.
func (c *committer) wakeAll() {
	c.cond.Broadcast()
	c.sealed.Broadcast()
}

// refuse returns why no commit is possible now.
func (e *Engine) refuse() error {
	switch {
	case e.commit.failed != nil:
		return e.commit.failed
	case e.commit.closing:
		return base.ErrClosed
	case e.cfg.ReadOnly:
		return base.ErrReadOnly
	}
	return nil
}

// Commit makes w's entries one commit and returns its last sequence once the
// outcome is known. The error is a *base.ConflictError if w's reads no longer hold.
func (e *Engine) Commit(w *Write) (uint64, error) {
	w.first, w.checked, w.waited = base.Hash(frame.Key(w.Entries[0])), w.Snapshot, 0
	e.throttle(int64(w.Bytes))
	e.commit.inside.Add(1)
	defer e.commit.inside.Add(-1)
	e.commit.mu.Lock()
	if err := e.prepare(w); err != nil {
		e.commit.mu.Unlock()
		return 0, err
	}
	p := e.append(w)
	return p.last, e.await(p)
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
		e.counters.StallNanos.Add(int64(slept))
	}
}

// prepare returns when w can be appended, or why it cannot. commit.mu is held; it may be
// let go of in between.
func (e *Engine) prepare(w *Write) error {
	for ready := false; !ready; {
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
		if err != nil && !e.mayFreeSpace(w, err) {
			return err
		}
	}
	return nil
}

// append encodes w as a frame, indexes its entries and queues it.
func (e *Engine) append(w *Write) *pending {
	c := &e.commit
	p := &w.outcome
	p.renew(w.Durable)
	h := frame.Header{Kind: frame.KindCommit, Seq: c.nextSeq, Count: uint32(w.Count), Durable: uint64(c.durable)}
	c.mem.PrefetchSlot(w.first) // while the frame is written
	at := int(c.mem.Seg.Append(h, w.Entries...))
	if n, end := c.mem.InsertAll(at, at+w.Bytes); n != w.Count || end != at+w.Bytes {
		panic(fmt.Sprintf("engine: commit of %d entries in %d bytes has %d in %d", w.Count, w.Bytes, n, end-at))
	}
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
	e.counters.CommittedBytes.Add(int64(w.Bytes))
	c.shape.Saw(frame.PaddedBytes(w.Bytes), w.Count, w.Durable)
	if !c.asked && c.wantsSpare() {
		c.asked = true
		e.keepSpare()
		signal(e.wakeMerge) // from now on it looks more often whether there is quiet
	}
	return e.enqueue(p, uint64(w.Count))
}

func (e *Engine) enqueue(p *pending, sequences uint64) *pending {
	c := &e.commit
	c.nextSeq += sequences
	c.commits++
	p.last = c.nextSeq - 1
	p.end, p.sum = c.mem.Seg.Tail()
	c.queue = append(c.queue, p)
	return p
}

// await returns once p's outcome is known, leading rounds where nobody else does. It is
// called with commit.mu held, which it lets go of. Where there are other commits, whoever
// is about to lead a round with a sync first lets those run that can: Go's scheduler takes
// a processor away from a goroutine that does nothing but short system calls only after
// 10 ms, and until then those who wait for it, woken by the last round, would not get to
// their next commit, and every round would be of one.
func (e *Engine) await(p *pending) error {
	c := &e.commit
	yielded := false
	for !p.done {
		if !c.leading {
			if p.durable && !yielded && c.inside.Load() > 1 {
				yielded = true
				c.mu.Unlock()
				runtime.Gosched()
				c.mu.Lock()
				continue
			}
			e.lead(p)
			continue
		}
		p.Prepare()
		c.mu.Unlock()
		if p.Block() {
			return p.err
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	return p.err
}

// lead runs one round of the group commit, on the goroutine of p, or nil. It is called
// with commit.mu held and returns with it held, but lets go of it in between.
func (e *Engine) lead(p *pending) {
	c := &e.commit
	c.leading, c.leader = true, p
	batch := c.queue
	c.queue, c.spareQueue = c.spareQueue, nil
	c.round = append(c.round[:0], c.unsynced...)
	segments := c.round
	c.mu.Unlock()

	whole := batch
	relaxed := 0
	for relaxed < len(batch) && !batch[relaxed].durable {
		relaxed++
	}
	err := wal.WriteOut(segments)
	mustSync := err == nil && relaxed < len(batch)
	if mustSync && relaxed > 0 {
		c.mu.Lock()
		e.succeed(batch[:relaxed])
		c.mu.Unlock()
		batch = batch[relaxed:]
	}
	var syncErr error
	if mustSync {
		syncErr = e.mustSyncAll(segments)
	}

	c.mu.Lock()
	switch {
	case err != nil:
		e.writeFailed(batch, err)
	case syncErr != nil:
		e.poison(syncErr)
		e.conclude(batch, fmt.Errorf("%w: %w", base.ErrCommitUnknown, syncErr))
	default:
		if mustSync {
			e.noteSynced()
		}
		e.succeed(batch)
	}
	clear(whole)
	c.spareQueue = whole[:0]
	e.resign()
}

// resign ends a round: whoever has waited longest leads the next one.
func (e *Engine) resign() {
	c := &e.commit
	c.leading, c.leader = false, nil
	if len(c.queue) > 0 {
		c.queue[0].Tell(false)
	}
	c.cond.Broadcast()
}

// succeed makes a round's commits visible, in order, and wakes their owners.
func (e *Engine) succeed(batch []*pending) {
	if len(batch) == 0 {
		return
	}
	c := &e.commit
	for _, p := range batch {
		if p.install != nil {
			p.install()
		}
		e.Show(p.last)
	}
	last := batch[len(batch)-1]
	c.goodEnd, c.goodSum = last.end, last.sum
	e.shown.Show(last.last, uint64(last.end))
	e.conclude(batch, nil)
}

func (e *Engine) conclude(batch []*pending, err error) {
	for _, p := range batch {
		p.done, p.err = true, err
		if err != nil && p.abandon != nil {
			p.abandon(err)
		}
		if p != e.commit.leader {
			p.Tell(true) // the last thing: p is its goroutine's again
		}
	}
	e.commit.cond.Broadcast()
}

// noteSynced advances the durable mark and forgets segments that need no more
// syncing. Segments are synced oldest first, so the mark has no gap behind it.
func (e *Engine) noteSynced() {
	c := &e.commit
	for len(c.unsynced) > 0 {
		s := c.unsynced[0]
		if p := e.ledger.FirstProvisional(); p != 0 && s.Num >= p {
			return // synced, perhaps, but a power cut may take it away
		}
		// A mark into a segment says that its link is durable: the header alone is
		// no place behind the segment before, and recovery could not find it.
		if s.Synced().Offset() > base.FileHeaderBytes {
			c.durable = max(c.durable, s.Synced())
		}
		tail, _ := s.Tail()
		if len(c.unsynced) == 1 || s.Synced() < tail {
			return
		}
		c.unsynced = c.unsynced[1:]
	}
}

// poison makes the store read-only for good: what the disk holds is unknown.
func (e *Engine) poison(why error) {
	c := &e.commit
	if c.failed == nil {
		if c.failed = why; !errors.Is(why, base.ErrPoisoned) {
			c.failed = fmt.Errorf("%w: %w", base.ErrPoisoned, why)
		}
		go e.emit(report.Event{Kind: report.EventBackgroundError, Err: c.failed})
	}
	c.wakeAll()
	queue := c.queue
	c.queue = nil
	e.conclude(queue, fmt.Errorf("%w: %w", base.ErrCommitUnknown, why))
}

// poisonNow is poison for those who do not hold commit.mu.
func (e *Engine) poisonNow(why error) {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	e.poison(why)
}

// writeFailed ends the commits of a round whose write failed, and those behind
// it: none is ever shown (E3). Before anybody is told, writing moves to a fresh
// segment whose synced link fixes where the old one ends, so that no later
// recovery can find them either; if that fails too the store is poisoned.
func (e *Engine) writeFailed(batch []*pending, why error) {
	c := &e.commit
	c.broken = true
	batch = append(batch, c.queue...)
	c.queue = nil
	e.forget(e.Visible())
	err := e.resume()
	c.broken = false
	if err != nil {
		err = fmt.Errorf("%w; then resuming on a new segment: %w", why, err)
		e.poison(err)
		e.conclude(batch, fmt.Errorf("%w: %w", base.ErrCommitUnknown, err))
		return
	}
	e.conclude(batch, reserve.SpaceError(why))
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
	for _, s := range c.unsynced {
		s.Abandon()
	}
	c.nextSeq = good + 1
	c.failures++
}

// resume moves writing to a new segment, linked to the end of the last good
// commit, and makes that durable. commit.mu is let go of meanwhile; the caller
// leads and c.broken is set, so nothing is written or appended.
func (e *Engine) resume() error {
	c := &e.commit
	for c.spare == nil {
		if err := e.prepareSpare(0, 0, false); err != nil {
			return err
		}
	}
	e.rotate(c.goodEnd, c.goodSum)
	segments := slices.Clone(c.unsynced)
	c.mu.Unlock()
	err := wal.WriteOut(segments)
	if err == nil {
		err = e.mustSyncAll(segments)
	}
	c.mu.Lock()
	if err == nil {
		e.noteSynced()
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
