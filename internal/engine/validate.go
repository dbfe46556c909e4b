package engine

import "github.com/cairndb/cairn/internal/tree"

// lockedRecords is how many records are validated under the commit lock. More are
// looked at without it first.
const lockedRecords = 1024

// freeLooks is how often a commit looks at what has come without the lock while others go on. If there is too much
// every time, they wait for the next look.
const freeLooks = 3

// begin is called before w is committed, by whoever holds no lock.
func (w *Write) begin() {
	w.checked, w.waited, w.looks = w.Snapshot, 0, 0
	if w.Reads != nil && !w.Reads.InOrder() {
		w.Reads.Ranges() // puts them in order: a tenth of a second for half a million
	}
}

// validate checks w's reads against every commit sequenced since its snapshot,
// pending ones included. commit.mu is held; it may be let go of, and then the
// result is false: look again at everything.
func (e *Engine) validate(w *Write) (bool, error) {
	c := &e.commit
	if c.held {
		c.cond.Wait()
		return false, nil
	}
	if w.failures != c.failures { // checked may count commits that are gone
		w.checked, w.failures = w.Snapshot, c.failures
	}
	last := c.nextSeq - 1
	if w.Reads == nil || w.Reads.Empty() || w.checked >= last || skipValidation {
		return true, nil
	}
	if c.ingesting > 0 {
		c.cond.Wait() // its tables are not in the state yet
		return false, nil
	}
	rs := e.State()
	ordered := w.Reads.Ordered() || !rs.MemoryDeletesRanges(w.checked+1)
	if ordered && last-w.checked <= lockedRecords && rs.MemoryHolds(w.checked+1) {
		return true, w.Reads.Err(rs.CheckMemory(w.Reads, w.checked))
	}
	rs.Ref()
	held := w.looks >= freeLooks // only for the look, which waits for nobody
	w.looks++
	c.held = held
	c.mu.Unlock()
	if !ordered {
		w.Reads.Order() // which takes a second for a million keys
	}
	err := e.validateAll(rs, w)
	rs.Unref()
	haveLooked()
	c.mu.Lock()
	if held {
		c.held = false
		c.cond.Broadcast()
	}
	if w.failures == c.failures {
		w.checked = last
	}
	return false, err
}

// skipValidation turns validation off, so that a test can show that the checkers
// it relies on would notice.
var skipValidation bool

// haveLooked is of a test that commits what a look without the lock does not see any more.
var haveLooked = func() {}

// validateAll checks w's reads against everything in rs above w.checked.
func (e *Engine) validateAll(rs *tree.State, w *Write) error {
	if c := rs.CheckMemory(w.Reads, w.checked); c != nil {
		return w.Reads.Err(c)
	}
	if rs.MemoryHolds(w.checked + 1) {
		return nil
	}
	r := e.Reader()
	defer e.Done(r)
	conflict, err := rs.CheckTables(r.Slot, w.Reads, w.checked)
	if err != nil {
		return err
	}
	return w.Reads.Err(conflict)
}
