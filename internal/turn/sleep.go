package turn

import (
	"sync"
	"time"
)

// timers are recycled; they are stopped. As many as ever slept at once: the garbage
// collector takes none, as it does from a sync.Pool.
var timers struct {
	sync.Mutex
	free []*time.Timer
}

func takeTimer() *time.Timer {
	timers.Lock()
	defer timers.Unlock()
	if n := len(timers.free); n > 0 {
		t := timers.free[n-1]
		timers.free = timers.free[:n-1]
		return t
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func freeTimer(t *time.Timer) {
	timers.Lock()
	defer timers.Unlock()
	timers.free = append(timers.free, t)
}

// Sleep waits for d, or until something is sent to wake, or until stop is closed, and
// reports whether it waited for d. It holds no mutex, and allocates nothing if others have
// slept before.
func Sleep(d time.Duration, wake, stop <-chan struct{}) (whole bool) {
	t := takeTimer()
	t.Reset(d)
	select {
	case <-t.C:
		whole = true
	case <-wake:
	case <-stop:
	}
	t.Stop() // from now on nothing is sent to t.C, nor is anything left in it
	freeTimer(t)
	return whole
}
