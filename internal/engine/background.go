package engine

import (
	"context"
	"errors"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/pace"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/turn"
)

const (
	retryDelay    = 50 * time.Millisecond // after a failed flush or compaction, doubling
	maxRetry      = 2 * time.Second
	idleMark      = 200 * time.Millisecond // quiet time after which obsolete files are let go
	unwantedAfter = 3 * time.Second        // free memory that nobody has wanted for so long is given back
	thoroughAfter = time.Second            // quiet time after which what was compressed in haste is compressed well
)

// drowsiness is after how much quiet time nobody looks at the store any more but so often, or woken by a commit: a program
// may have many stores open.
type drowsiness struct{ asleepAfter, asleepLook time.Duration }

// drowsy is that of stores to be opened. Tests change it.
var drowsy = drowsiness{10 * time.Second, 5 * time.Second}

func (e *Engine) startBackground() {
	var indexing context.Context
	indexing, e.stopIndexing = context.WithCancel(e.stopped)
	loops := []func(){func() { e.indexer.Run(indexing) }}
	if e.follower != nil {
		loops = append(loops, func() { e.follower.Poll(e.stopped) })
	} else {
		syncer := func() { e.syncer.Run(e.cfg.SyncInterval, e.asleepAfter, e.stopped.Done()) }
		loops = append(loops, e.flusher, e.compactor, e.keeper, syncer)
	}
	for _, loop := range loops {
		e.background.Go(loop)
	}
}

// flusher turns sealed layers into tables, the oldest first.
func (e *Engine) flusher() {
	delay, given := retryDelay, false
	for e.awaitSealed() {
		_, err := e.flushOldest()
		if err == nil {
			if given {
				e.putAsideAgain()
			}
			delay, given = retryDelay, false
			e.commit.mu.Lock()
			e.commit.flushing = false // a store that waited for this may come to rest
			e.commit.mu.Unlock()
			signal(e.wakeMerge)
			signal(e.wake)
			continue
		}
		if errors.Is(err, merger.ErrGivenUp) || e.stopped.Err() != nil || errors.Is(err, base.ErrPoisoned) {
			return
		}
		e.backgroundError(err)
		if reserve.IsFull(err) && e.releaseToFlush() {
			given = true
			continue
		}
		delay = e.backOff(delay, e.wakeFlush)
	}
}

// awaitSealed waits for a sealed layer that is to be flushed. It returns false when the store stops.
func (e *Engine) awaitSealed() bool {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushing = false
	for e.oldestSealed() == nil || c.closing || !e.flushDue() {
		if e.stopped.Err() != nil || c.closing || c.failed != nil {
			return false
		}
		c.sealed.Wait()
	}
	c.flushing = e.stopped.Err() == nil && c.failed == nil
	return c.flushing
}

// flushDue reports whether sealed layers should be flushed: where a flush has failed, or a commit
// waits, they must. commit.mu is held.
func (e *Engine) flushDue() bool {
	c := &e.commit
	if c.mem == nil || e.flushErr != nil || e.stalled.Load() > 0 {
		return true
	}
	return !c.resting && (c.flushRest || e.pace.FlushDue(e.State(), c.mem))
}

// wakeFlusher wakes the flusher if sealed memtables have waited for long enough, as where a burst is
// over: nobody else would before the next one is sealed. It is called again and again, and waits for
// no commit.
func (e *Engine) wakeFlusher() {
	c := &e.commit
	if len(e.State().Layers) > 1 && c.mu.TryLock() {
		defer c.mu.Unlock()
		if !c.flushing && e.oldestSealed() != nil && e.flushDue() {
			c.sealed.Signal()
		}
	}
}

func (e *Engine) setFlushError(err error) {
	if errors.Is(err, merger.ErrGivenUp) {
		return
	}
	e.commit.mu.Lock()
	e.flushErr = err
	e.flushTries++
	if err != nil { // it may be Compact that has failed: the flusher is to try again
		e.commit.sealed.Signal()
	}
	e.commit.cond.Broadcast()
	e.commit.mu.Unlock()
}

func (e *Engine) backgroundError(err error) {
	kind := report.EventBackgroundError
	if reserve.IsFull(err) {
		kind = report.EventNoSpace
		e.removeFiles()
	}
	e.events.Emit(report.Event{Kind: kind, Err: err})
}

// sleepUntil waits for d, or until woken, or until the store stops, and reports whether
// it was for d.
func (e *Engine) sleepUntil(d time.Duration, wake <-chan struct{}) bool {
	return turn.Sleep(d, wake, e.stopped.Done())
}

// backOff waits for delay after what has failed, or until woken, but not less than retryDelay. It returns how long to wait
// the next time.
func (e *Engine) backOff(delay time.Duration, wake <-chan struct{}) time.Duration {
	e.sleepUntil(retryDelay, nil)
	e.sleepUntil(delay-retryDelay, wake)
	return min(2*delay, maxRetry)
}

// compactor merges tables while there is debt.
func (e *Engine) compactor() {
	delay := retryDelay
	q := pace.Quiet{Long: pace.RestAfter}
	var prepared uint64 // the newest sequence when rest was prepared last
	for e.stopped.Err() == nil {
		e.wakeFlusher()
		if e.mergeForScans() {
			continue
		}
		seq := e.Visible()
		q.Look(seq, e.Epochs.Used() || e.Held() > 0)
		rests := e.pace.Rests(e.State(), &q)
		if !rests {
			e.endResting()
		}
		var did bool
		var err error
		awaited := e.tight.Load() > 0
		if awaited {
			did, err = e.mergeAwaited(q.Idle(thoroughAfter))
		} else {
			did, err = e.compactOnce(rests && e.mayMergeIdle(&q), q.Idle(thoroughAfter))
		}
		switch {
		case errors.Is(err, merger.ErrGivenUp) || e.stopped.Err() != nil || errors.Is(err, base.ErrPoisoned):
			return
		case err != nil:
			e.backgroundError(err)
			if rests && reserve.IsFull(err) {
				e.rest(seq) // with what memtables delete there may be less to write
			}
			delay = e.backOff(delay, e.wakeMerge)
			continue
		case did:
			delay = retryDelay
			continue
		}
		sleep := idleMark
		switch {
		case rests:
			if q.Idle(e.asleepAfter) && e.fallAsleep(seq) {
				sleep = e.asleepLook
			}
			if e.rest(seq); q.Idle(idleMark) {
				e.logs.Clear(e.cfg.FS.Remove)
			}
		case awaited || !e.restless(e.State()):
			sleep = pace.RestAfter / 5 // commits have just been made, or wait
		default:
			sleep = pace.UnusedAfter / 3
			if q.Unused(sleep) && prepared != seq {
				prepared = seq
				e.prepareRest(seq)
			}
		}
		e.sleepUntil(sleep, e.wakeMerge)
		e.asleep.Store(false)
	}
}

// fallAsleep has whoever begins a segment wake the compactor, unless there has been a commit after seq, or there is one under
// way, which may have begun a segment and let go of the lock since.
func (e *Engine) fallAsleep(seq uint64) bool {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	asleep := e.commit.nextSeq == seq+1 && e.commit.queue.Inside.Load() == 0
	e.asleep.Store(asleep)
	return asleep
}

// compactOnce runs the most urgent compaction, one that nobody waits for if the store is
// idle or scans have walked enough, and reports whether there was one.
func (e *Engine) compactOnce(idle, thorough bool) (bool, error) {
	e.merging.Lock()
	defer e.merging.Unlock()
	if e.waitsForSpace() {
		return false, nil // a flush comes first
	}
	rs := e.State()
	if rs.Version.NumTables() == 0 {
		return false, nil
	}
	if thorough && !e.merger.Survey(rs, nil, nil) {
		return true, nil
	}
	in := e.merger.Inputs(idle)
	in.Thorough, in.InVain = thorough, e.deletes.InVain(e.flushed())
	job, ok := e.fitting.Pick(rs.Version, in, e.tight.Load() > 0)
	if !ok && !idle && e.walked.Any() {
		job, ok = compact.Pick(rs.Version, e.merger.Inputs(true))
		if ok = ok && job.HelpsScans(rs.Version) && e.walked.PayFor(job.RawBytes(), rs.HeldBytes()); ok {
			e.walked.Spend(job.RawBytes())
			job.Hiding = false // scans have paid for it
		}
	}
	if !ok {
		return false, nil
	}
	job.Quick = !idle && e.tables.HasQuick() && (rs.TableBytes() <= tree.RestMerge || rs.Lags(e.cfg.WaitingBytes()))
	return true, e.runJob(&job, e.mustStop)
}

// ensureManifest makes sure that edits can be written: a store opened clean has
// no live manifest before its first log segment, and a poisoned one writes none. None is begun for a merge when the store is
// closing.
func (e *Engine) ensureManifest() error {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.failed != nil || !e.ledger.Live() {
		if c.closing && c.failed == nil {
			return merger.ErrGivenUp
		}
		if err := e.refuse(); err != nil {
			return err
		}
		if err := e.prepareSpare(0, 0, !e.cfg.Relaxed); err != nil { // whose few commits fill what they need
			return err
		}
	}
	return nil
}

// runJob merges a job's tables, or moves them where nothing has to be rewritten, and begins a manifest if there is none. stop
// returns why it has to end.
func (e *Engine) runJob(job *compact.Job, stop func() error) error {
	if err := e.ensureManifest(); err != nil {
		return err
	}
	start := time.Now()
	tables, err := e.installer.Job(job, stop)
	if err != nil {
		return err
	}
	e.deletes.Note(job, tree.SizeOf(tables), e.flushed())
	e.events.CompactedBytes.Add(tree.SizeOf(tables))
	e.events.Emit(report.Event{Kind: report.EventCompaction, Level: job.OutLevel, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	signal(e.wake)
	return nil
}

// keeper prepares spare segments, removes obsolete files, and gives memory back that nobody wants.
func (e *Engine) keeper() {
	q, woken := pace.Quiet{Long: pace.RestAfter}, time.Now()
	for aged := time.Now(); ; {
		look := idleMark
		if q.Look(e.Visible(), false); q.Idle(e.asleepAfter) && time.Since(woken) >= e.asleepAfter {
			look = e.asleepLook
		}
		quiet := e.sleepUntil(look, e.wake)
		if !quiet {
			woken = time.Now()
		}
		if e.stopped.Err() != nil {
			return
		}
		if quiet {
			e.ledger.MarkIfWaiting()
		}
		e.Epochs.Collect()
		if time.Since(aged) >= unwantedAfter {
			e.pages.Age()
			e.writes.Age()
			aged = time.Now()
		}
		e.commit.mu.Lock()
		e.keepSpare()
		e.commit.mu.Unlock()
		e.logs.Remove(e.cfg.FS.Remove, e.ledger.TakeObsolete())
	}
}

// wantsSpare reports whether the next segment should be made: not after the first commit,
// however large, which may be all that this store is opened for. mu is held.
func (c *committer) wantsSpare() bool {
	if c.mem == nil || c.spare != nil || c.preparing || c.commits < 2 {
		return false
	}
	return c.shape.NextDue(c.mem.Used(), c.mem.Seg.Capacity())
}

// keepSpare has a spare segment made if one is wanted. A failure is the business of the
// commit that needs it. commit.mu is held: somebody who had to get hold of it first would
// wait for a millisecond where commits follow each other.
func (e *Engine) keepSpare() {
	if e.commit.wantsSpare() && e.refuse() == nil && !e.memtablesFull(0, 0, e.cfg.MemtableLimit(0, 0)) && !e.diskFull() {
		prepare := e.beginSpare(0, 0, true)
		e.background.Go(func() { prepare() })
	}
}

// syncWritten syncs what has been written, beside the rounds of commits.
func (e *Engine) syncWritten() error {
	c := &e.commit
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	if failed != nil {
		return failed
	}
	err := c.log.SyncWritten()
	if !errors.Is(err, base.ErrPoisoned) {
		return err // where it was not even tried, the next time, perhaps
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.poison(err)
	return c.failed
}

// Sync makes every commit that was acknowledged before the call durable.
func (e *Engine) Sync() error {
	if err := e.Hold(); err != nil {
		return err
	}
	defer e.Release()
	if e.cfg.ReadOnly {
		return base.ErrReadOnly
	}
	return e.syncWritten()
}
