package pace

import (
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// Pace is that of one store. Config is set before its first use.
type Pace struct {
	Config *config.Config
	Brake
	Burst
	counted atomic.Pointer[counted]
}

// Slow returns how long a commit of n bytes should wait, in proportion to what flushes and compactions
// owe.
func (p *Pace) Slow(rs *tree.State, n int64) time.Duration {
	more := rs.Waiting() - config.FreeMemtables
	if more > 0 {
		more = -p.free(rs)
	}
	return p.Delay(perByte(p.runs(rs.Version), more), n)
}

// counted is as how many runs level 0 of a version counts.
type counted struct {
	of   *manifest.Version
	runs float64
}

// runs returns as how many runs level 0 counts.
func (p *Pace) runs(v *manifest.Version) float64 {
	if len(v.L0) <= freeRuns {
		return float64(len(v.L0))
	}
	c := p.counted.Load()
	if c == nil || c.of != v {
		c = &counted{v, weigh(v, p.Config.Memory)}
		p.counted.Store(c)
	}
	return c.runs
}

const (
	wholeRun   = 16 << 20 // bytes of keys and values that a run counts for
	leastOfRun = 0.25     // but a smaller one counts for so much at least: it is one more place where a get looks
	ofTheRest  = 16       // where gets read the device a run counts for one part in so many of what lies below, if that is more

	leastMemory = 64 << 20 // with less the pages that a scan holds of each run are too much
	indexShare  = 16       // of Memory the point indexes of level 0 may take one part in so many,
	indexed     = 16       // a row so many bytes, as long as a run more is little to a get
)

// weigh returns as how many runs level 0 of a version counts, whose debt commits are slowed by. Small runs are
// less work for a merge. And where the store does not fit into memory, a merge rewrites all that lies below whether
// it begins with few of them or with many, and gets, which read the device, hardly notice how many there are. This
// is not so where memory is too little for what each of them has there.
func weigh(v *manifest.Version, memory int64) (runs float64) {
	raw, rest, rows := int64(0), int64(0), int64(0)
	for level, t := range v.Tables() {
		if level > 0 {
			rest += t.RawBytes
		} else {
			raw, rows = raw+t.RawBytes, rows+int64(t.Entries)
		}
	}
	if memory < leastMemory || rows > memory/indexShare/indexed {
		return float64(len(v.L0))
	}
	whole := int64(wholeRun)
	if raw+rest > memory/2 {
		whole = max(whole, rest/ofTheRest)
	}
	for i := range v.L0 {
		bytes := int64(0)
		for _, t := range v.L0[i].Tables {
			bytes += t.RawBytes
		}
		runs += min(1, max(leastOfRun, float64(bytes)/float64(whole)))
	}
	return runs
}

// free returns how many more memtables may wait to be flushed before commits are slowed, the active one as
// far as it is used; negative if so many are too many.
func (p *Pace) free(rs *tree.State) float64 {
	return config.FreeMemtables - rs.Waiting() + p.Left()*float64(p.Config.FreeInBurst(rs.BulkyLayers()))
}

// FlushDue reports whether what lies below the active memtable should be flushed. Some small memtables
// wait for the store to rest: what is written again is written to a table once then, and a burst of
// writes has the machine for itself. In a burst many do, if they are bulky.
func (p *Pace) FlushDue(rs *tree.State, active *tree.Memory) bool {
	return !rs.MayWait(active, p.Config.WaitingBytes()) &&
		!(p.Lasts(rs.LogBytes()) && rs.MayWaitInBurst(active, p.Config.BurstBytes()))
}

// Together returns how many sealed layers of a state, the newest first, are flushed together, the oldest at
// least. What is written again in them is written to a table once, and level 0 has fewer runs; but
// nothing of their memory is free before everything is written. So where commits come it is memtables up
// to where the others may wait, and no more than may come meanwhile; where all are flushed, since nobody
// writes, half of them; and no more than a flush may hold up.
func (p *Pace) Together(rs *tree.State, sealed []*tree.Layer, all bool) (n int) {
	waiting := int64(0)
	for _, l := range sealed {
		if l.Mem != nil {
			waiting += l.Mem.LogBytes()
		}
	}
	large := int64(p.Config.SegmentLimit())
	due, limit := waiting-p.Config.WaitingBytes(), int64((p.free(rs)-1)*float64(large))
	if all {
		due, limit = waiting, waiting/2
	}
	limit = min(max(limit, large), p.Config.TogetherBytes())
	for bytes := int64(0); n < len(sealed); n++ {
		m := sealed[len(sealed)-1-n].Mem
		if m == nil || n > 0 && (bytes >= due || bytes+m.LogBytes() > limit) {
			break
		}
		bytes += m.LogBytes()
	}
	return max(n, 1)
}

// A store comes to rest after so long without commits, or sooner where commits came without pauses
// and nobody reads either; later where a burst has left much, which takes a second to merge and what
// comes next may hide.
const (
	RestAfter      = 25 * time.Millisecond
	UnusedAfter    = 6 * time.Millisecond
	BurstRestAfter = 500 * time.Millisecond
)

// Rests reports whether the store has been quiet for long enough.
func (p *Pace) Rests(rs *tree.State, q *Quiet) bool {
	if n := rs.LogBytes(); n > tree.RestMerge && rs.BulkyLayers() > 0 && p.Lasts(n) {
		return q.Idle(BurstRestAfter)
	}
	return q.Idle(RestAfter) || q.Unused(UnusedAfter) && !rs.LargeRecords()
}

// restShare: less than one part in this many of what the tables hold is no reason for a
// table of its own. A store of a few writes keeps them in its log.
const restShare = 10

// hiddenShare: deletes of which the log is little, but which hide one part in this many of what the tables hold,
// are reason enough for a table, since merging it frees about as much as it writes.
const hiddenShare = 2

// Restless reports whether memtables hold enough, or hide enough, to be merged with the tables once the store is quiet.
func (p *Pace) Restless(rs *tree.State) bool {
	log, tables, little := rs.LogBytes(), rs.TableBytes(), int64(min(tree.LittleBytes, p.Config.SegmentLimit()/2))
	return log >= max(little, tables/restShare) || log > 0 && tables > little && rs.HiddenBytes() >= max(little, tables/hiddenShare)
}
