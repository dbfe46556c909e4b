package engine

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tree"
)

// flushOldest turns the oldest sealed layers, one or more, into tables of level 0 and reports
// whether there was one. Whoever calls it, commits learn how it went: those that wait
// for room would wait for ever if a layer whose flush had failed were flushed without
// a word.
func (e *Engine) flushOldest() (did bool, err error) {
	e.flushing.Lock()
	defer e.flushing.Unlock()
	defer func() { e.setFlushError(err) }()
	layers, err := e.awaitOldest()
	if len(layers) == 0 {
		return false, err
	}
	e.pressed.Store(e.awaited.Swap(false))
	start, long := time.Now(), e.State().LargestMemory() > int64(e.cfg.SegmentLimit())
	tables, err := e.installer.Flush(layers)
	if n := len(layers); n > 1 && reserve.IsFull(err) {
		tables, err = e.installer.Flush(layers[n-1:]) // for one there is space put aside
	}
	if err != nil {
		return true, fmt.Errorf("flush: %w", err)
	}
	if layers[0].Mem != nil { // those of a large transaction were written, and counted, before
		e.events.FlushedBytes.Add(tree.SizeOf(tables))
		e.events.Emit(report.Event{Kind: report.EventFlush, Done: tree.SizeOf(tables), Duration: time.Since(start)})
	}
	if long {
		e.shrinkReserve() // to what ordinary memtables need
	}
	return true, nil
}

// awaitOldest returns the layers to flush (together), once the outcome of all commits in the segment of
// the oldest is known: what fails must not reach a table, and a large transaction that succeeds becomes an
// older layer, without which the segment with its record must not become useless. While writing moves on
// from commits that failed it waits too: until the new segment's link is durable, what they left in a
// later segment is told from commits by the end of this one.
func (e *Engine) awaitOldest() ([]*tree.Layer, error) {
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		l := e.oldestSealed()
		switch {
		case l == nil:
			return nil, nil
		case c.failed != nil:
			return nil, c.failed
		case l.Mem == nil || e.decided(l):
			return e.together(), nil
		case !c.queue.Leading() && l.Mem.AwaitsLink():
			c.queue.Lead()
		default:
			c.cond.Wait()
		}
	}
}

// together returns the layers that are flushed next, the newest first: the oldest sealed one, and those
// above it whose memtables are flushed with its own. An empty memtable may be decided before one below
// it is. commit.mu is held.
func (e *Engine) together() []*tree.Layer {
	rs := e.State()
	layers := rs.Sealed(e.commit.mem)
	n := 1
	if layers[len(layers)-1].Mem != nil && !e.diskFull() && !e.spaceShort.Load() {
		all := len(layers) == len(rs.Layers) || e.commit.flushRest
		for most := e.pace.Together(rs, layers, all); n < most && e.decided(layers[len(layers)-1-n]); n++ {
		}
	}
	return layers[len(layers)-n:]
}

// decided reports whether the outcome of all commits in a sealed memtable's segment is known.
// commit.mu is held.
func (e *Engine) decided(l *tree.Layer) bool { return !e.commit.broken && !e.undecided(l.Mem) }

// undecided reports whether the outcome of a commit in a sealed memtable's segment
// may be open. The record of a large transaction begins a segment, so if there are
// entries it was decided before them. commit.mu is held.
func (e *Engine) undecided(m *tree.Memory) bool {
	if m.Len() > 0 {
		return e.Visible() < m.LastSeq()
	}
	return e.commit.ingesting > 0 || m.AwaitsLink()
}

// oldestSealed returns the oldest layer nothing is appended to any more.
// commit.mu is held.
func (e *Engine) oldestSealed() *tree.Layer { return e.State().OldestSealed(e.commit.mem) }
