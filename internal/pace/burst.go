package pace

import (
	"sync/atomic"
	"time"
)

// A Burst is a time of many commits, in which memtables may wait to be flushed, so that commits have
// the machine for themselves. What has gathered in it is worked off beside the commits that still
// come. The zero value is one that is long over. All methods may be called at once.
type Burst struct{ begun atomic.Int64 } // nanoseconds after longAgo

const (
	longestBurst = 3 * time.Second
	workedOff    = time.Minute // what has gathered in it should be, so long after it
	slowestBurst = 100e6       // bytes a second: flushes can go on beside fewer
)

var longAgo = time.Now().Add(-longestBurst - workedOff)

// Begin begins a burst.
func (b *Burst) Begin() { b.begun.Store(int64(time.Since(longAgo))) }

func (b *Burst) age() time.Duration { return time.Since(longAgo) - time.Duration(b.begun.Load()) }

// Lasts reports whether a burst of so many bytes by now is not over.
func (b *Burst) Lasts(bytes int64) bool {
	age := b.age()
	return age < longestBurst && float64(bytes) > age.Seconds()*slowestBurst
}

// Left returns how much of what a burst may gather may still be there: 1 while it lasts, and then
// less and less.
func (b *Burst) Left() float64 {
	return min(1, max(0, 1-float64(b.age()-longestBurst)/float64(workedOff)))
}
