package engine

import "time"

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
	e.counters.StallNanos.Add(int64(d))
	e.counters.Throttled.Add(1)
	signal(e.wakeMerge)
	time.Sleep(d)
}
