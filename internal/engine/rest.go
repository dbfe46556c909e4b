package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/tree"
)

// A store to which nobody writes comes to rest: what has gathered in the active memtable
// becomes a table, the log is let go of, and so is most of the space put aside for
// flushes. It is then read from tables, merged by idle compaction, takes little more
// space than these, and has nothing to replay after a kill. The next commit makes a new
// segment, as the first one after Open does.

// restAfter is the quiet time after which a store comes to rest.
const restAfter = 25 * time.Millisecond

// restShare: less than one part in this many of what the tables hold is no reason for a
// table of its own. A store of a few writes keeps them in its log.
const restShare = 10

// restless returns the bytes of log that wait for the store to come to rest; 0 if what
// the active memtable holds is too little to be flushed. commit.mu is held.
func (e *Engine) restless(rs *tree.State) int64 {
	m := e.commit.mem
	if m == nil || m.Len() == 0 || e.commit.closing || e.commit.failed != nil {
		return 0
	}
	if n := m.LogBytes(); n >= max(int64(min(tree.MinSegment, e.cfg.segmentLimit()/2)), rs.TableBytes()/restShare) {
		return n
	}
	return 0
}

// idleAfter is the quiet time after which tables are merged that nobody waits for.
func (e *Engine) idleAfter() time.Duration {
	e.commit.mu.Lock()
	defer e.commit.mu.Unlock()
	if e.commit.mem == nil {
		return restAfter
	}
	return idleMark
}

// rest seals the active memtable, gives up the spare, and makes tables of what there is,
// if there has been no commit since visible was seq.
func (e *Engine) rest(seq uint64) {
	c := &e.commit
	c.mu.Lock()
	if c.mem == nil && c.spare == nil && !c.preparing && len(e.state.Load().Layers) == 0 {
		c.mu.Unlock()
		e.tidy()
		return
	}
	if e.restless(e.state.Load()) == 0 || c.leading || c.preparing || c.nextSeq != seq+1 || e.diskFull() {
		c.mu.Unlock()
		return
	}
	c.shape.Rest(c.mem, e.cfg.segmentLimit())
	c.mem, c.asked = nil, false
	spare := c.spare
	c.spare = nil
	sealed := e.state.Load()
	sealed.Ref() // commit.mu is held: it is the state's, and nobody has begun another memtable
	c.mu.Unlock()
	defer sealed.Unref()
	if spare != nil {
		e.dropSpare(spare)
	}
	if did, _ := e.mergeAll(sealed, restMerge); did {
		e.tidy()
		return
	}
	c.mu.Lock()
	c.sealed.Signal() // piece by piece, and whatever was wrong is reported
	c.mu.Unlock()
}

// restMerge is how many bytes a store may have to be merged into the last level then.
const restMerge = 64 << 20

// tidy lets go of what only writing needs, now that the store is at rest.
func (e *Engine) tidy() {
	e.markIfQuiet()
	signal(e.wake) // the files that waited for the mark
	e.reserve.Shrink(restReserve)
}

// restReserve stays put aside: for a small segment of deletes on a disk filled meanwhile.
const restReserve = smallSegmentBytes*5/4 + reserveSlack
