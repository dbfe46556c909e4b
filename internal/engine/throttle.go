package engine

import (
	"errors"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

const (
	slowRuns  = 8                      // level 0 runs from which commits are slowed
	slowStep  = 250 * time.Microsecond // per run above that
	slowLimit = 10 * time.Millisecond  // longest delay of one commit
)

// throttle slows a commit in proportion to what compaction owes, so that debt
// stays bounded without anybody ever being stopped. The hard bound, on memory,
// is in makeRoom.
func (e *Engine) throttle() {
	rs := e.state.Load()
	if rs == nil || len(rs.Version.L0) <= slowRuns {
		return
	}
	d := min(time.Duration(len(rs.Version.L0)-slowRuns)*slowStep, slowLimit)
	e.counters.stallNanos.Add(int64(d))
	e.counters.throttled.Add(1)
	signal(e.wakeMerge)
	time.Sleep(d)
}

// reserve is space kept back on the disk, so that when it is full, deletes,
// flushes and compactions, which make room, still have some.
type reserve struct{ held bool }

const reserveBytes = 4 << 20

// keepReserve puts space aside, if there is any. Keeper only.
func (e *Engine) keepReserve() {
	c := &e.commit
	c.mu.Lock()
	want := c.mem != nil && !e.reserve.held && e.flushErr == nil && c.failed == nil && !c.closing &&
		c.mem.Seg.Capacity() > minSegmentBytes
	c.mu.Unlock()
	if !want {
		return
	}
	name := e.path(base.FileReserve, 0)
	f, err := e.cfg.FS.Create(name)
	if err != nil {
		return
	}
	err = f.Preallocate(0, min(reserveBytes, e.cfg.Memory/4))
	f.Close()
	if err != nil {
		e.cfg.FS.Remove(name)
		return
	}
	c.mu.Lock()
	e.reserve.held = true
	c.mu.Unlock()
}

// mayFreeSpace reports whether a commit that found the disk full should be tried
// again: if it only deletes, it gets the space that was put aside. commit.mu is
// held, and let go of.
func (e *Engine) mayFreeSpace(w *Write, err error) bool {
	if !errors.Is(err, base.ErrNoSpace) || !w.onlyDeletes() {
		return false
	}
	e.commit.mu.Unlock()
	defer e.commit.mu.Lock()
	return e.releaseReserve()
}

func (w *Write) onlyDeletes() bool {
	for rest := w.Payload; len(rest) > 0; {
		ent, n := frame.DecodeEntry(rest)
		if ent.Kind == base.KindPut {
			return false
		}
		rest = rest[n:]
	}
	return true
}

// releaseReserve gives the space back to the disk and reports whether there was any.
func (e *Engine) releaseReserve() bool {
	c := &e.commit
	c.mu.Lock()
	held := e.reserve.held
	e.reserve.held = false
	c.mu.Unlock()
	return held && e.cfg.FS.Remove(e.path(base.FileReserve, 0)) == nil
}
