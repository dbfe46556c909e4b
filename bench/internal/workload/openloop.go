package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cairndb/cairn/bench/internal/result"
)

// openLoop begins operations at a fixed rate, whether the last has ended or not as
// far as one goroutine can: late ones are begun at once and their wait counts.
type openLoop struct {
	every     time.Duration
	planned   int
	giveUp    time.Duration
	puts      *hdrhistogram.Histogram
	gets      *hdrhistogram.Histogram
	seconds   []result.Second
	abandoned int

	longest, paused time.Duration // of operations by themselves, from their real start
	pauses          int
}

// pause is how long a put, or a sync of the disk, may take.
const pause = 20 * time.Millisecond

func newOpenLoop(perSecond float64, length time.Duration) *openLoop {
	every := max(1, time.Duration(float64(time.Second)/perSecond))
	return &openLoop{every: every, planned: max(1, int(length/every)), giveUp: latencyMost * length, puts: newHistogram(), gets: newHistogram()}
}

func (l *openLoop) run(operation func() (put bool, err error)) error {
	start := time.Now()
	for i := range l.planned {
		due := time.Duration(i) * l.every
		begun := waitUntil(start, due)
		if begun > l.giveUp {
			l.abandoned = l.planned - i
			return nil
		}
		put, err := operation()
		if err != nil {
			return err
		}
		end := time.Since(start)
		l.note(put, end-due, end)
		l.noteAlone(end - begun)
	}
	return nil
}

// waitUntil sleeps, spins at the end, and returns the time since start.
func waitUntil(start time.Time, due time.Duration) time.Duration {
	const spin = 200 * time.Microsecond
	now := time.Since(start)
	if due-now > spin {
		time.Sleep(due - now - spin/2)
	}
	for now = time.Since(start); now < due; now = time.Since(start) {
	}
	return now
}

func (l *openLoop) note(put bool, latency, end time.Duration) {
	if put {
		record(l.puts, latency)
	} else {
		record(l.gets, latency)
	}
	for int(end/time.Second) >= len(l.seconds) {
		l.seconds = append(l.seconds, result.Second{})
	}
	s := &l.seconds[int(end/time.Second)]
	s.Ops++
	s.MaxNano = max(s.MaxNano, float64(latency))
}

// noteAlone counts what an operation took by itself.
func (l *openLoop) noteAlone(took time.Duration) {
	l.longest = max(l.longest, took)
	if took > pause {
		l.pauses++
		l.paused += took
	}
}

// report records the rate, and how it was kept.
func (l *openLoop) report(rec *Recorder) {
	rec.Set("rate", float64(time.Second)/float64(l.every))
	rec.Set("given_up", float64(l.abandoned))
	rec.Series = l.seconds
	var ops []float64
	for _, s := range l.seconds {
		ops = append(ops, float64(s.Ops))
	}
	if len(ops) > 1 {
		ops = ops[:len(ops)-1] // the last is not whole
	}
	if len(ops) > 0 {
		rec.Set("worst_second", slices.Min(ops))
	} else {
		rec.None("nothing was done in its time", "worst_second")
	}
	if l.abandoned > 0 {
		rec.Note(fmt.Sprintf("could not keep up with its rate: %d of %d operations were given up", l.abandoned, l.planned))
	}
}
