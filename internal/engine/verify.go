package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/tree"
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
	if err := e.Hold(); err != nil {
		return Report{}, err
	}
	defer e.Release()
	r := e.readers.Get().(*Reader)
	defer e.readers.Put(r)
	rs := e.Acquire(r.Slot)
	defer rs.Unref()
	total := tree.SizeOf(rs.Handles)
	var rep Report
	for _, h := range rs.Handles {
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
		rep.Bytes += h.Meta.Size
		rep.Entries += h.Meta.Entries
	}
	rep.Problems = append(rep.Problems, rs.CheckOrder()...)
	return rep, errors.Join(rep.Problems...)
}

// Compact flushes and merges everything that overlaps [low, high) down to the
// last level, and then works off what debt is left.
func (e *Engine) Compact(ctx context.Context, low, high []byte) error {
	if err := e.Hold(); err != nil {
		return err
	}
	defer e.Release()
	if e.cfg.ReadOnly {
		return base.ErrReadOnly
	}
	if err := e.flushAll(); err != nil {
		return fmt.Errorf("compact: %w", SpaceError(err))
	}
	for ctx.Err() == nil {
		did, err := e.compactRange(low, high)
		if err != nil {
			return fmt.Errorf("compact: %w", SpaceError(err))
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
	v := e.state.Load().Version
	job, ok := compact.Manual(v, low, high, e.pickInputs(true))
	if !ok {
		return false, nil
	}
	if err := e.ensureManifest(); err != nil {
		return false, err
	}
	return true, e.runJob(&job)
}
