package histories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn"
)

// Config says what Run does. The zero value of a field is its default.
type Config struct {
	Transactions int           // how many must commit
	Workers      int           // goroutines; default 4
	Cells        int           // keys; the fewer, the more conflicts; default 64
	Pad          int           // values are up to so many bytes longer; default none
	Seed         uint64        // of all random choices
	LargeEvery   int           // one in so many transactions is large; default none
	LargeBytes   int           // what a large one writes, about
	PauseEvery   int           // one in so many waits between its reads and its writes; default none
	Pause        time.Duration // how long
	DurableEvery int           // one in so many commits durably; default as the store does
	Round        int           // transactions between two checks; default 5,000

	// Excused says that a transaction may fail with an error, after which nothing of it is there. Default: none may.
	Excused func(error) bool
}

// Result counts what happened.
type Result struct {
	Committed  int // transactions that took effect, those that only read included
	ReadOnly   int // of these, transactions that only read
	Conflicted int // transactions that met at least one conflict
	Attempts   int // runs of a transaction's function
	GivenUp    int // transactions that were tried once, and met a conflict
	Failed     int // transactions that failed with an error that was excused
	Duration   time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("%d transactions committed (%d only read), %d (%.1f %%) met a conflict, %d attempts, %d failed, %v",
		r.Committed, r.ReadOnly, r.Conflicted, 100*float64(r.Conflicted)/float64(max(r.Committed, 1)), r.Attempts, r.Failed, r.Duration)
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Workers, 4}, {&c.Cells, 64}, {&c.Round, 5000}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c
}

// driver is one Run.
type driver struct {
	Config
	db     *cairn.DB
	writes atomic.Uint32 // writes numbered so far
	left   atomic.Int64  // transactions of this round to begin
	failed atomic.Pointer[error]

	attempts, conflicted, givenUp, excused atomic.Int64
}

// Run commits transactions until there are enough. The error is the first anomaly
// found, or what the store failed with; Result.Committed then says how many
// transactions had passed the check before.
func Run(db *cairn.DB, c Config) (res Result, err error) {
	d := &driver{Config: c.withDefaults(), db: db}
	start := time.Now()
	m := make(model, d.Cells)
	for round := 0; res.Committed < c.Transactions && err == nil; round++ {
		var done []*transaction
		done, err = d.round(round, min(d.Round, c.Transactions-res.Committed))
		if err == nil {
			err = m.replay(done)
		}
		if err == nil {
			res.Committed += len(done)
			for _, t := range done {
				if !t.wrote {
					res.ReadOnly++
				}
			}
		}
	}
	res.Duration = time.Since(start).Round(time.Millisecond)
	res.Attempts, res.Conflicted = int(d.attempts.Load()), int(d.conflicted.Load())
	res.GivenUp, res.Failed = int(d.givenUp.Load()), int(d.excused.Load())
	return res, err
}

// round runs n transactions and returns those that took effect.
func (d *driver) round(round, n int) ([]*transaction, error) {
	d.left.Store(int64(n))
	parts := make([][]*transaction, d.Workers)
	var wg sync.WaitGroup
	for w := range d.Workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(d.Seed, uint64(round*d.Workers+w)))
			for d.left.Add(-1) >= 0 && d.failed.Load() == nil {
				t, err := d.one(r)
				if err != nil {
					d.failed.CompareAndSwap(nil, &err)
					return
				}
				if t != nil {
					parts[w] = append(parts[w], t)
				}
			}
		})
	}
	wg.Wait()
	if err := d.failed.Load(); err != nil {
		return nil, *err
	}
	var done []*transaction
	for _, p := range parts {
		done = append(done, p...)
	}
	return done, nil
}

// one runs one transaction, by Update, View or Begin. The result is nil if it met
// a conflict and was not tried again, or failed and is excused.
func (d *driver) one(r *rand.Rand) (*transaction, error) {
	shape := d.shape(r)
	seed := r.Uint64()
	var t *transaction
	tries := 0
	body := func(tx *cairn.Tx) error {
		tries++
		t = &transaction{tx: tx, db: d, seq: tx.Seq()}
		if d.DurableEvery > 0 && seed%uint64(d.DurableEvery) == 0 {
			tx.SetDurability(cairn.Durable)
		}
		return shape(t, rand.New(rand.NewPCG(seed, uint64(tries))))
	}
	var err error
	switch p := r.IntN(10); {
	case p < 7:
		err = d.db.Update(body)
	case p < 9:
		err = d.byHand(body)
	default:
		shape = (*transaction).onlyRead
		err = d.db.View(body)
	}
	d.attempts.Add(int64(tries))
	if tries > 1 || errors.Is(err, cairn.ErrConflict) {
		d.conflicted.Add(1)
	}
	if errors.Is(err, cairn.ErrConflict) {
		d.givenUp.Add(1)
		return nil, nil
	}
	if err != nil && d.Excused != nil && d.Excused(err) {
		d.excused.Add(1)
		return nil, nil
	}
	if err == nil && t.wrote {
		t.seq = t.tx.CommitSeq()
	}
	return t, err
}

func (d *driver) byHand(body func(tx *cairn.Tx) error) error {
	tx, err := d.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := body(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// shape chooses what a transaction does.
func (d *driver) shape(r *rand.Rand) func(*transaction, *rand.Rand) error {
	if d.LargeEvery > 0 && r.IntN(d.LargeEvery) == 0 {
		return (*transaction).large
	}
	return shapes[r.IntN(len(shapes))]
}

// pause gives others the time to come between reads and writes.
func (t *transaction) pause(r *rand.Rand) {
	if d := t.db; d.PauseEvery > 0 && r.IntN(d.PauseEvery) == 0 {
		time.Sleep(d.Pause)
	} else if r.IntN(2) == 0 {
		runtime.Gosched()
	}
}
