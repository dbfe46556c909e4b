package workload

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// What the workloads have in common that offer operations at a fixed rate.

// putPercentiles are the figures of puts, rateColumns those of the rate itself.
var (
	putPercentiles = []result.Column{
		{Key: "put_p50", Title: "put p50", Group: "puts", Unit: result.Nanos, Ranked: true, Writes: true},
		{Key: "put_p99", Title: "p99", Group: "puts", Unit: result.Nanos, Ranked: true, Writes: true},
		{Key: "put_p999", Title: "p99.9", Group: "puts", Unit: result.Nanos, Ranked: true, Writes: true},
		{Key: "put_max", Title: "max", Group: "puts", Unit: result.Nanos, Ranked: true, Writes: true},
	}
	rateColumns = []result.Column{
		{Key: "rate", Title: "rate", Group: "rate", Unit: result.PerSecond},
		{Key: "alone", Title: "throughput before", Group: "rate", Unit: result.PerSecond},
		{Key: "worst_second", Title: "ops in the worst second", Group: "rate", Unit: result.Number},
		{Key: "given_up", Title: "given up", Group: "rate", Unit: result.Number},
	}
)

// timed sets how long a workload keeps its rate, and which, if that is asked for.
func timed(p Params, s Scale, seconds float64) Params {
	p.Seconds, p.Rate = seconds, s.Rate
	if s.Seconds > 0 {
		p.Seconds = s.Seconds
		p.Detail = fmt.Sprintf("%gs", s.Seconds)
	}
	return p
}

// part is a share of the time for which a rate is kept.
func (p Params) part(share float64) time.Duration {
	return time.Duration(share * p.Seconds * float64(time.Second))
}

// rateCondition says at which rate, if a share of what was done before in another share of
// the time is kept, unless one was asked for.
func rateCondition(p Params, before, share float64) string {
	if p.Rate > 0 {
		return fmt.Sprintf(", %g a second, which is the rate of every engine, for %.0f s", p.Rate, p.Seconds)
	}
	return fmt.Sprintf(" as fast as it can for %.1f s; %.0f %% of that rate is kept for %.0f s: every engine has its own", p.Seconds*before, 100*share, p.Seconds)
}

// rateEstimate is for a rate that is kept after so much of its time for other things.
func rateEstimate(p Params, e engine.Info, syncDelay time.Duration, before float64) time.Duration {
	total := p.part(1.5+before) + time.Duration(p.N)*60*time.Microsecond
	if p.Sync && e.Can(engine.CanSync) && !e.Can(engine.CanBatch) {
		total += time.Duration(p.N) * syncDelay * 3 / 2
	}
	return total
}

// loopAt makes the loop of operations: at the rate that was asked for, or at a share of
// what can be done, which is measured for another share of the time.
func (m *mixed) loopAt(rec *Recorder, p Params, before, share float64) (*openLoop, error) {
	if p.Rate > 0 {
		rec.None("the rate was given", "alone")
		return newOpenLoop(p.Rate, p.part(1)), nil
	}
	alone, err := m.asFastAsItCan(p.part(before))
	if err != nil {
		return nil, err
	}
	rec.Set("alone", alone)
	return newOpenLoop(alone*share, p.part(1)), nil
}

func (m *mixed) asFastAsItCan(length time.Duration) (perSecond float64, err error) {
	start, n := time.Now(), 0
	for n == 0 || time.Since(start) < length {
		if _, err := m.operation(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
