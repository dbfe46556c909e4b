package workload

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// histogram of latencies: 1 ns to 100 s in three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, (100 * time.Second).Nanoseconds(), 3)
}

// record adds a latency; one beyond the range counts as the greatest.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	if h.RecordValue(max(1, d.Nanoseconds())) != nil {
		_ = h.RecordValue(h.HighestTrackableValue())
	}
}

// curve is what is kept of a histogram for drawing.
var curve = []float64{50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}

// keepCurve records percentiles under "name p50" and so on.
func (r *Recorder) keepCurve(name string, h *hdrhistogram.Histogram) {
	if r.Latency == nil {
		r.Latency = map[string]float64{}
	}
	for _, p := range curve {
		r.Latency[fmt.Sprintf("%s p%g", name, p)] = float64(h.ValueAtPercentile(p))
	}
}

// percentiles sets prefix+p50, p99, p999 and max, if there is anything to take them of.
func (r *Recorder) percentiles(prefix string, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		r.None("none was done in its time", prefix+"p50", prefix+"p99", prefix+"p999", prefix+"max")
		return
	}
	r.Set(prefix+"p50", float64(h.ValueAtPercentile(50)))
	r.Set(prefix+"p99", float64(h.ValueAtPercentile(99)))
	r.Set(prefix+"p999", float64(h.ValueAtPercentile(99.9)))
	r.Set(prefix+"max", float64(h.Max()))
}
