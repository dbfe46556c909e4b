package turn

import (
	"sync"
	"time"
)

// timers are recycled; they are stopped.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// Sleep waits for d, or until something is sent to wake, or until stop is closed, and
// reports whether it waited for d. It holds no mutex, and allocates nothing if others have
// slept before.
func Sleep(d time.Duration, wake, stop <-chan struct{}) (whole bool) {
	t := timers.Get().(*time.Timer)
	t.Reset(d)
	select {
	case <-t.C:
		whole = true
	case <-wake:
	case <-stop:
	}
	t.Stop() // from now on nothing is sent to t.C, nor is anything left in it
	timers.Put(t)
	return whole
}
