package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
)

// Report is what Verify found.
type Report struct {
	Tables   int    // tables read in full
	Bytes    int64  // bytes of tables read
	Entries  uint64 // rows, superseded ones and deletes included
	Problems []error
}

// Verify reads every byte of every table and checks every checksum, the order of
// keys, and that tables are what the manifest says. progress, if not nil, is told
// the bytes done and the total. Damage is in the report, and joined in the error.
func (e *Engine) Verify(ctx context.Context, progress func(done, total int64)) (Report, error) {
	if err := e.hold(); err != nil {
		return Report{}, err
	}
	defer e.release()
	r := e.readers.Get().(*reader)
	defer e.readers.Put(r)
	rs := e.acquire(r.slot)
	defer rs.unref()
	total := bytesOf(rs.handles)
	var rep Report
	for _, h := range rs.handles {
		err := h.Verify(ctx, func(n int64) {
			if progress != nil {
				progress(rep.Bytes+n, total)
			}
		})
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		if err != nil {
			rep.Problems = append(rep.Problems, err)
		}
		rep.Tables++
		rep.Bytes += h.meta.Size
		rep.Entries += h.meta.Entries
	}
	rep.Problems = append(rep.Problems, rs.checkOrder()...)
	return rep, errors.Join(rep.Problems...)
}

// checkOrder checks that the tables of a run do not overlap.
func (rs *readState) checkOrder() (problems []error) {
	for _, r := range rs.runs {
		for i := 1; i < len(r.tables); i++ {
			a, b := r.tables[i-1].meta, r.tables[i].meta
			if bytes.Compare(a.Largest, b.Smallest) > 0 || bytes.Equal(a.Largest, b.Smallest) && !a.LargestExclusive {
				problems = append(problems, base.Corruptf(base.FileName(base.FileTable, b.Num), -1,
					"overlaps table %d of the same run", a.Num))
			}
		}
	}
	return problems
}

// Compact flushes and merges everything that overlaps [low, high) down to the
// last level, and then works off what debt is left.
func (e *Engine) Compact(ctx context.Context, low, high []byte) error {
	if err := e.hold(); err != nil {
		return err
	}
	defer e.release()
	if e.cfg.ReadOnly {
		return base.ErrReadOnly
	}
	if err := e.flushAll(); err != nil {
		return fmt.Errorf("compact: %w", spaceError(err))
	}
	for ctx.Err() == nil {
		did, err := e.compactRange(low, high)
		if err != nil {
			return fmt.Errorf("compact: %w", spaceError(err))
		}
		if !did {
			return nil
		}
	}
	return ctx.Err()
}

// flushAll seals the active memtable and flushes every sealed one.
func (e *Engine) flushAll() error {
	c := &e.commit
	c.mu.Lock()
	for c.mem != nil && c.mem.Len() > 0 {
		if err := e.refuse(); err != nil {
			c.mu.Unlock()
			return err
		}
		ok, err := e.makeSegment(0)
		if err != nil {
			c.mu.Unlock()
			return err
		}
		if ok {
			end, sum := c.lastEnd()
			e.rotate(end, sum)
			break
		}
	}
	c.mu.Unlock()
	for {
		if did, err := e.flushOldest(); err != nil || !did {
			return err
		}
	}
}

// compactRange runs one job of a manual compaction.
func (e *Engine) compactRange(low, high []byte) (bool, error) {
	e.merging.Lock()
	defer e.merging.Unlock()
	v := e.state.Load().version
	job, ok := compact.Manual(v, low, high, e.pickInputs(true))
	if !ok {
		return false, nil
	}
	if err := e.ensureManifest(); err != nil {
		return false, err
	}
	return true, e.runJob(&job)
}
