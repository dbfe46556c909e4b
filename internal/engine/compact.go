package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/reserve"
)

// Compact flushes what has been committed by now, and merges what of that overlaps [low, high) down to the
// last level.
func (e *Engine) Compact(ctx context.Context, low, high []byte) error {
	if err := e.Hold(); err != nil {
		return err
	}
	defer e.Release()
	if e.cfg.ReadOnly {
		return base.ErrReadOnly
	}
	last, err := e.flushAll(ctx)
	if err != nil {
		return fmt.Errorf("compact: %w", reserve.SpaceError(err))
	}
	asked := compact.Asked{Low: low, High: high, LastSeq: last, NextNum: e.ledger.TakeNum()}
	for joined := false; ctx.Err() == nil; {
		did, err := e.compactRange(ctx, asked)
		if reserve.IsFull(err) && e.logs.Clear(e.cfg.FS.Remove) {
			continue
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("compact: %w", reserve.SpaceError(err))
		}
		if !did && err == nil {
			if joined {
				return nil
			}
			joined, asked.NextNum = true, e.ledger.TakeNum() // small tables that these merges have made are joined, too: once, so that it ends
		}
	}
	return ctx.Err()
}

// flushAll seals the active memtable and flushes what has been committed by then, up to the sequence it returns, or until
// ctx is done.
func (e *Engine) flushAll(ctx context.Context) (last uint64, err error) {
	c := &e.commit
	c.mu.Lock()
	for c.mem != nil && c.mem.Len() > 0 {
		if err := e.refuse(); err != nil {
			c.mu.Unlock()
			return 0, err
		}
		ok, err := e.makeSegment(0)
		if err != nil {
			c.mu.Unlock()
			return 0, err
		}
		if ok {
			end, sum := c.lastEnd()
			e.rotate(end, sum)
			break
		}
	}
	c.flushRest = true
	last = c.nextSeq - 1
	c.mu.Unlock()
	for done := false; !done && ctx.Err() == nil; {
		did, err := e.flushOldest()
		if err != nil || !did {
			return last, err
		}
		c.mu.Lock()
		done = !e.State().WaitsUpTo(last, c.mem)
		c.mu.Unlock()
	}
	return last, nil
}

// compactRange runs one job of a manual compaction.
func (e *Engine) compactRange(ctx context.Context, asked compact.Asked) (bool, error) {
	e.merging.Lock()
	defer e.merging.Unlock()
	rs := e.State()
	if !e.merger.Survey(rs, asked.Low, asked.High) {
		return true, nil
	}
	in := e.merger.Inputs(true)
	in.Unreadable = nil // whoever asks is told
	job, ok := compact.Manual(rs.Version, asked, in)
	if !ok {
		return false, nil
	}
	return true, e.runJob(&job, func() error { return cmp.Or(ctx.Err(), e.mustStop()) })
}
