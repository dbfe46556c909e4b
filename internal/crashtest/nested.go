package crashtest

import (
	"fmt"

	"github.com/cairndb/cairn/vfs/memfs"
)

// RunNested executes the workload once, crashes it at `crashes` points chosen at
// random, and visits up to limit distinct images of what happens then: recovery, a
// few commits, Close. With depth 2 that in turn is crashed, and so on.
func (e *Enumeration) RunNested(crashes, depth, limit int) error {
	seed := e.Seed + uint64(e.Runs)
	e.Runs++
	r := NewRun(e.Workload, seed)
	if err := r.Do(e.Workload); err != nil {
		return fmt.Errorf("workload %s, seed %d: %w", e.Workload.Name, seed, err)
	}
	r.History.order()
	for range crashes {
		if err := e.crashInRecovery(r, seed, "", depth, limit/crashes); err != nil {
			return err
		}
	}
	return nil
}

// crashInRecovery crashes r somewhere, recovers, and crashes that.
func (e *Enumeration) crashInRecovery(r *Run, seed uint64, outer string, depth, limit int) error {
	j := r.Disk.Journal()
	at := r.From + e.rand.IntN(j.Len()-r.From+1)
	drawn := append(j.Draw(e.rand, at, memfs.Plan{Random: 8, Seed: e.rand.Uint64()}, 1), memfs.Everything())
	outer = fmt.Sprintf("%s, crash after %d mutations, choice %s, recovery", outer, at, drawn[0])
	next, err := recoverRun(r, j.State(at, drawn[0]), Moment{At: at})
	if err != nil {
		return fmt.Errorf("workload %s, seed %d%s: %w", e.Workload.Name, seed, outer, err)
	}
	if depth > 1 {
		return e.crashInRecovery(next, seed, outer, depth-1, limit)
	}
	v := &visit{e: e, r: next, j: next.Disk.Journal(), seed: seed, outer: outer}
	return v.all(limit)
}

// recoverRun opens the store on an image of r, which goes on in a run of its own.
func recoverRun(r *Run, image *memfs.FS, m Moment) (*Run, error) {
	twin := image.Clone()
	s, err := Open(twin, r.relaxed)
	if err != nil {
		return nil, fmt.Errorf("O1: %w", err)
	}
	found, err := r.History.Judge(s, m)
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	next := newRunOn(image, r.relaxed)
	next.History = r.History.Recovered(found)
	next.Open()
	next.Commit(step(next, 1000, 100)...)
	next.CommitAs(false, step(next, 1001, 600)...)
	next.Commit(step(next, 1002, 60)...)
	next.Close()
	next.History.order()
	return next, next.err
}
