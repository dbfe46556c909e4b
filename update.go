package cairn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	maxAttempts  = 100                   // how often Update runs its function before it gives up
	freeAttempts = 8                     // how often before it wants to go first
	patience     = 50 * time.Millisecond // for whoever goes first: its function may be waiting for who waits for it
)

// precedence lets an Update go first that has lost often. Whoever has just committed begins its next transaction before
// those that lost are awake, and would win again and again: of two goroutines that count in one key one lost 100 times
// in a row, once in 150 times. All methods may be called at once.
type precedence struct {
	first atomic.Pointer[turn] // who goes first now
	slot  chan struct{}        // of one: who does, and, in order, who wants to
}

// turn is the going first of one Update.
type turn struct{ over chan struct{} }

func newPrecedence() precedence { return precedence{slot: make(chan struct{}, 1)} }

// enter lets an Update begin an attempt: whoever goes first has ended by then, or takes too long. If it is to go first
// itself, and can, it has its turn from now on, until leave.
func (p *precedence) enter(first bool) *turn {
	if first {
		has := make(chan struct{})
		defer close(has)
		select {
		case p.slot <- struct{}{}:
			t := &turn{make(chan struct{})}
			p.first.Store(t)
			return t
		case <-p.late(has):
			return nil
		}
	}
	if t := p.first.Load(); t != nil {
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-t.over:
		case <-late.C:
		}
	}
	return nil
}

// late returns a channel that is closed when one of those who go first has taken patience, before done is closed: who waits in the
// queue keeps its place as long as it moves on.
func (p *precedence) late(done <-chan struct{}) <-chan struct{} {
	late := make(chan struct{})
	go func() {
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for before := p.first.Load(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := p.first.Load()
			if now != nil && now == before {
				close(late)
				return
			}
			before = now
		}
	}()
	return late
}

// leave ends a turn, nil if there is none.
func (p *precedence) leave(t *turn) {
	if t != nil {
		p.first.Store(nil)
		close(t.over)
		<-p.slot
	}
}

// Update runs fn in a read-write transaction and commits it if fn returns nil. If
// another commit changed what fn had read, fn runs again with a new transaction,
// at most 100 times in all (then the error matches ErrConflict); so fn must be
// repeatable, and must write to this store through tx only. One that has lost some times goes first: no other
// Update begins an attempt meanwhile, for 50 ms at most. An error of fn is
// returned as it is and nothing is committed. A panic of fn rolls back and goes on.
// After ErrCommitUnknown only reopening the store tells whether the commit is there, if it is poisoned.
func (db *DB) Update(fn func(tx *Tx) error) error {
	var first *turn
	defer func() { db.updates.leave(first) }()
	for attempt := 1; ; attempt++ {
		if first == nil {
			first = db.updates.enter(attempt > freeAttempts)
		}
		err := db.tryUpdate(fn, first != nil)
		var conflict *ownConflict
		if !errors.As(err, &conflict) {
			return err
		}
		if attempt == maxAttempts {
			return fmt.Errorf("update gave up after %d attempts: %w", attempt, conflict.error)
		}
		var c *ConflictError
		if errors.As(conflict.error, &c) {
			db.e.AwaitOutcome(c.Seq)
		}
	}
}

// ownConflict tells a conflict of Update's own commit from one that fn returned.
type ownConflict struct{ error }

func (db *DB) tryUpdate(fn func(tx *Tx) error, first bool) error {
	tx, err := db.begin(true, true)
	if err != nil {
		return err
	}
	defer tx.end()
	if first {
		tx.tx.GoFirst()
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.commit(); err != nil {
		if errors.Is(err, ErrConflict) {
			return &ownConflict{err}
		}
		return err
	}
	return nil
}
