package workload

import (
	"runtime"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Recorder collects the figures of one cell.
type Recorder struct {
	Metrics map[string]float64
	NA      map[string]string
	Notes   []string
	Latency map[string]float64 // percentile: ns
	Series  []result.Second
	dir     string // where the data are
	before  usage
	again   time.Duration // of CPU, for doing once more what Reads repeats
	device  int64         // bytes its device had written before
}

// NewRecorder returns an empty recorder of work done in dir.
func NewRecorder(dir string) *Recorder {
	return &Recorder{Metrics: map[string]float64{}, NA: map[string]string{}, dir: dir}
}

// Set records a figure.
func (r *Recorder) Set(key string, value float64) { r.Metrics[key] = value }

// None records why columns have no figure.
func (r *Recorder) None(reason string, keys ...string) {
	for _, key := range keys {
		delete(r.Metrics, key)
		r.NA[key] = reason
	}
}

// noneOf records why a cell has no figures at all.
func (r *Recorder) noneOf(reason string, columns []result.Column) {
	for _, c := range columns {
		r.None(reason, c.Key)
	}
	r.None(reason, result.PeakRSS, result.CPU, result.Written)
}

// Note adds a remark to the row, once.
func (r *Recorder) Note(note string) {
	if note == "" {
		return
	}
	for _, have := range r.Notes {
		if have == note {
			return
		}
	}
	r.Notes = append(r.Notes, note)
}

// Span is what a piece of work took.
type Span struct {
	Time   time.Duration
	Bytes  uint64 // allocated on the Go heap
	Allocs uint64
}

// add sums spans of the same kind of work up.
func (s *Span) add(more Span) {
	s.Time += more.Time
	s.Bytes += more.Bytes
	s.Allocs += more.Allocs
}

// Measure runs fn and says what it took. What an engine maps beside the Go heap
// is not in Bytes.
func Measure(fn func() error) (Span, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := fn()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return Span{took, after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs}, err
}

// Phase measures fn and records key (ns per operation), key_B and key_allocs.
func (r *Recorder) Phase(key string, ops int, fn func() error) (Span, error) {
	span, err := Measure(fn)
	r.PerOp(key, span, ops)
	return span, err
}

// Reads is Phase for work that changes nothing: all of it is done again and again until
// atLeast is over, and counts from the first; of their CPU time one pass's is counted. On a
// shared machine what takes some milliseconds takes twice as long while others use the same
// core.
func (r *Recorder) Reads(key string, ops int, atLeast time.Duration, fn func() error) error {
	passes := 0
	before := readUsage()
	span, err := Measure(func() error {
		for start := time.Now(); passes == 0 || time.Since(start) < atLeast; passes++ {
			if err := fn(); err != nil {
				return err
			}
		}
		return nil
	})
	passes = max(1, passes)
	r.again += (readUsage().cpu - before.cpu) * time.Duration(passes-1) / time.Duration(passes)
	r.PerOp(key, span, ops*passes)
	return err
}

// PerOp records a span divided by its operations as key, key_B and key_allocs.
func (r *Recorder) PerOp(key string, s Span, ops int) {
	r.Set(key, float64(s.Time)/float64(ops))
	r.Set(key+"_B", float64(s.Bytes)/float64(ops))
	r.Set(key+"_allocs", float64(s.Allocs)/float64(ops))
}
