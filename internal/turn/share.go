package turn

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Share is what a goroutine takes of the processors that works for nobody in particular:
// what nobody else wants, and a little more. The zero value is ready. It is for one
// goroutine.
type Share struct {
	until  time.Time         // its own time, after it has waited
	sample [1]metrics.Sample // how many goroutines wait
}

const (
	// leastShare: who has waited may then work one part in so many of that time, so that it
	// goes on however many others there are.
	leastShare = 4

	// pause is how long it sleeps to let others go first. It need not be exact: while there
	// are others it becomes 10 ms, after which Go's scheduler interrupts one of them.
	pause = 20 * time.Microsecond
)

// GiveWay lets those goroutines go first that could run if there were a processor for
// them, and reports whether there were any. runtime.Gosched alone does not: the goroutine
// waits in the queue of all processors then, and its own looks there before it looks at what
// waits for another one.
func (s *Share) GiveWay() (crowded bool) {
	now := time.Now()
	if now.Before(s.until) {
		return true
	}
	runtime.Gosched()
	if crowded = s.Waiting() > 0; crowded {
		time.Sleep(pause)
	}
	waited := time.Since(now)
	s.until = now.Add(waited + waited/leastShare)
	return crowded
}

// Waiting returns how many goroutines could run and do not.
func (s *Share) Waiting() uint64 {
	s.sample[0].Name = "/sched/goroutines/runnable:goroutines"
	metrics.Read(s.sample[:])
	if s.sample[0].Value.Kind() != metrics.KindUint64 { // an older runtime does not know
		return 0
	}
	return s.sample[0].Value.Uint64()
}
