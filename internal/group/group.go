package group

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/turn"
	"github.com/cairndb/cairn/internal/wal"
)

// Commit is one that has its sequence and waits for its outcome. The zero value is ready.
type Commit struct {
	Last    uint64 // its last sequence
	End     wal.Position
	Sum     uint32 // of its frame
	Durable bool
	Shown   func()      // if not nil, called when it has succeeded, before it is seen; the lock is held
	Failed  func(error) // if not nil, called when it has failed; the lock is held

	done bool
	err  error

	turn.Wait // of its goroutine; done and err can be read without the lock when it is told that it is done
}

// Renew makes c ready for another commit: the one before, if there was one, is over.
func (c *Commit) Renew(durable bool) {
	c.Wait.Renew()
	*c = Commit{Durable: durable, Wait: c.Wait}
}

// Log is what commits are appended to.
type Log interface {
	Begin()       // a round begins: what has been appended is its business. The lock is held.
	Write() error // writes that. The lock is not held.
	Sync() error  // syncs that. The lock is not held.
	Synced()      // what Sync has synced is durable. The lock is held.

	// Show makes commits that have succeeded visible, in order. An error is what their owners are told all the same; Failed
	// is not called then. The lock is held.
	Show(round []*Commit) error

	// WriteFailed ends the commits of a round that Write could not write, and those behind them, and SyncFailed
	// those of one that Sync could not sync: they Conclude them. The lock is held; it may be let go of.
	WriteFailed(round []*Commit, why error)
	SyncFailed(round []*Commit, why error)
}

// Queue is what waits to be written. Its exported fields are set before it is used.
type Queue struct {
	Lock    *sync.Mutex
	Changed *sync.Cond // of Lock: is told when a round has ended, or commits have their outcome
	Log     Log

	Inside atomic.Int32 // goroutines that commit at the moment; without the lock

	waiting []*Commit // oldest first
	leading bool
	leader  *Commit   // whose goroutine leads; nil: that of no commit
	spare   []*Commit // recycled by the leader
}

// Add appends a commit. Await comes next, of its goroutine.
func (q *Queue) Add(c *Commit) { q.waiting = append(q.waiting, c) }

// Take takes out all that waits: whoever does concludes it.
func (q *Queue) Take() []*Commit {
	all := q.waiting
	q.waiting = nil
	return all
}

// Waiting returns how many commits wait for the next round.
func (q *Queue) Waiting() int { return len(q.waiting) }

// Leading reports whether a round is under way.
func (q *Queue) Leading() bool { return q.leading }

// Await returns once c's outcome is known, leading rounds where nobody else does. It lets go of
// the lock. Where there are other commits, whoever is about to lead a round with a sync first lets those
// run that can: Go's scheduler takes a processor away from a goroutine that does nothing but short
// system calls only after 10 ms, and until then those who wait for it, woken by the last round, would
// not get to their next commit, and every round would be of one.
func (q *Queue) Await(c *Commit) error {
	yielded := false
	for !c.done {
		if !q.leading {
			if c.Durable && !yielded && q.Inside.Load() > 1 {
				yielded = true
				q.Lock.Unlock()
				runtime.Gosched()
				q.Lock.Lock()
				continue
			}
			q.lead(c)
			continue
		}
		c.Prepare()
		q.Lock.Unlock()
		if c.Block() {
			return c.err
		}
		q.Lock.Lock()
	}
	q.Lock.Unlock()
	return c.err
}

// Lead runs a round, on the goroutine of no commit. It lets go of the lock in between. Nobody leads yet.
func (q *Queue) Lead() { q.lead(nil) }

// lead is Lead on the goroutine of c.
func (q *Queue) lead(c *Commit) {
	q.leading, q.leader = true, c
	round := q.waiting
	q.waiting, q.spare = q.spare, nil
	q.Log.Begin()
	q.Lock.Unlock()

	whole := round
	relaxed := 0
	for relaxed < len(round) && !round[relaxed].Durable {
		relaxed++
	}
	err := q.Log.Write()
	mustSync := err == nil && relaxed < len(round)
	if mustSync && relaxed > 0 {
		q.Lock.Lock()
		q.succeed(round[:relaxed])
		q.Lock.Unlock()
		round = round[relaxed:]
	}
	var syncErr error
	if mustSync {
		syncErr = q.Log.Sync()
	}

	q.Lock.Lock()
	switch {
	case err != nil:
		q.Log.WriteFailed(slices.Clip(round), err) // to which those behind it may be appended, but not here: only whole is cleared
	case syncErr != nil:
		q.Log.SyncFailed(round, syncErr)
	default:
		if mustSync {
			q.Log.Synced()
		}
		q.succeed(round)
	}
	clear(whole)
	q.spare = whole[:0]
	q.resign()
}

// resign ends a round: whoever has waited longest leads the next one.
func (q *Queue) resign() {
	q.leading, q.leader = false, nil
	if len(q.waiting) > 0 {
		q.waiting[0].Tell(false)
	}
	q.Changed.Broadcast()
}

// succeed makes commits visible, in order, and wakes their owners.
func (q *Queue) succeed(round []*Commit) {
	if len(round) == 0 {
		return
	}
	err := q.Log.Show(round)
	if err != nil {
		for _, c := range round {
			c.Failed = nil // it has not
		}
	}
	q.Conclude(round, err)
}

// Conclude tells commits their outcome.
func (q *Queue) Conclude(commits []*Commit, err error) {
	for _, c := range commits {
		c.done, c.err = true, err
		if err != nil && c.Failed != nil {
			c.Failed(err)
		}
		if c != q.leader {
			c.Tell(true) // the last thing: c is its goroutine's again
		}
	}
	q.Changed.Broadcast()
}
