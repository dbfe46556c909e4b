package engine

import "time"

// throttle slows a commit of n bytes in proportion to what compaction owes. The hard bound,
// on memory, is in makeRoom.
func (e *Engine) throttle(n int64) {
	rs := e.State()
	if rs == nil {
		return
	}
	if d := e.brake.Delay(len(rs.Version.L0), n); d > 0 {
		e.counters.StallNanos.Add(int64(d))
		signal(e.wakeMerge)
		time.Sleep(d)
	}
}
