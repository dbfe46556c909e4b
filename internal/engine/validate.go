package engine

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/mvcc"
	"github.com/cairndb/cairn/internal/tree"
)

// lockedRecords is how many records are validated under the commit lock. More are
// looked at without it first.
const lockedRecords = 1024

// validate checks w's reads against every commit sequenced since its snapshot,
// pending ones included. commit.mu is held; it may be let go of, and then the
// result is false: look again at everything.
func (e *Engine) validate(w *Write) (bool, error) {
	c := &e.commit
	last := c.nextSeq - 1
	if w.Reads == nil || w.Reads.Empty() || w.checked >= last || skipValidation {
		return true, nil
	}
	if c.ingesting > 0 {
		c.cond.Wait() // its tables are not in the state yet
		return false, nil
	}
	rs := e.state.Load()
	if last-w.checked <= lockedRecords && rs.MemoryHolds(w.checked+1) {
		return true, conflictError(rs.CheckMemory(w.Reads, w.checked))
	}
	rs.Ref()
	c.mu.Unlock()
	err := e.validateAll(rs, w)
	rs.Unref()
	c.mu.Lock()
	w.checked = last
	return false, err
}

// skipValidation turns validation off, so that a test can show that the checkers
// it relies on would notice.
var skipValidation bool

// validateAll checks w's reads against everything in rs above w.checked.
func (e *Engine) validateAll(rs *tree.State, w *Write) error {
	if c := rs.CheckMemory(w.Reads, w.checked); c != nil {
		return conflictError(c)
	}
	if rs.MemoryHolds(w.checked + 1) {
		return nil
	}
	r := e.readers.Get().(*Reader)
	defer e.readers.Put(r)
	conflict, err := rs.CheckTables(r.Slot, w.Reads, w.checked)
	if err != nil {
		return err
	}
	return conflictError(conflict)
}

// conflictError turns a conflict into an error; nil stays nil.
func conflictError(c *mvcc.Conflict) error {
	if c == nil {
		return nil
	}
	_, low, _ := base.CutBucketPrefix(c.Low)
	_, high, _ := base.CutBucketPrefix(c.High)
	if high == nil && c.High != nil {
		high = []byte{} // the end of the bucket: no upper bound
	}
	return &base.ConflictError{Low: low, High: high, Seq: c.Seq}
}
