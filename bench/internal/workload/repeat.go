package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
)

// Repeats is how many times a cell does the whole of the workload, at least once. A
// published variant does what its article did, which is once.
func (w Workload) Repeats(p Params) int {
	if w.Repeat == nil || w.Variant == "published" {
		return 1
	}
	return max(1, w.Repeat(p))
}

// RunCell does a cell in dir, which is empty: the whole of the workload, as often as it
// is repeated. The first error ends it.
func RunCell(w Workload, d engine.Driver, dir string, p Params) (*Recorder, error) {
	rec, err := repeat(w.Repeats(p), dir, func(rec *Recorder, dir string) error { return Do(w, rec, d, dir, p) })
	if err == nil {
		rec.onlyWholeWork(w.Columns)
	}
	return rec, err
}

// repeat calls fn so many times, each time with a new recorder and, if there are
// several, a new directory below dir, and puts what was recorded together.
func repeat(times int, dir string, fn func(rec *Recorder, dir string) error) (*Recorder, error) {
	if times == 1 {
		rec := NewRecorder(dir)
		return rec, fn(rec, dir)
	}
	var parts []*Recorder
	for i := range times {
		rec, err := withNewDirectory(filepath.Join(dir, fmt.Sprintf("repeat%d", i+1)), fn)
		if err != nil {
			return nil, err
		}
		parts = append(parts, rec)
	}
	return combine(parts), nil
}

// withNewDirectory calls fn and removes its directory, unless fn failed: whether the
// disk is full then must stay to be seen. The memory that is left to the Go runtime
// goes back to the system, so that the next call begins as the first did.
func withNewDirectory(dir string, fn func(rec *Recorder, dir string) error) (*Recorder, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	rec := NewRecorder(dir)
	if err := fn(rec, dir); err != nil {
		return nil, err
	}
	scratch.Remove(dir)
	debug.FreeOSMemory()
	return rec, nil
}

// combine makes one record of several of the same work. Figures and percentiles are
// medians, but allocations means, since a buffer that is pooled is allocated now and then;
// those of resident memory are of the first: what later ones find in the process is not of
// their work. What one of them has a reason not to have, the whole has not.
func combine(parts []*Recorder) *Recorder {
	all := &Recorder{
		NA: map[string]string{}, Series: parts[0].Series,
		Metrics: medians(parts, func(r *Recorder) map[string]float64 { return r.Metrics }),
		Latency: medians(parts, func(r *Recorder) map[string]float64 { return r.Latency }),
	}
	all.keepResident(parts)
	for _, part := range parts {
		for _, note := range part.Notes {
			all.Note(note)
		}
		for key, why := range part.NA {
			if _, known := all.NA[key]; !known {
				all.None(why, key)
			}
		}
	}
	return all
}

// keepResident sets the figures of resident memory, which are of the whole process.
func (r *Recorder) keepResident(parts []*Recorder) {
	for _, key := range []string{result.PeakRSS, result.RSSBefore} {
		delete(r.Metrics, key)
		if bytes, ok := parts[0].Metrics[key]; ok {
			r.Set(key, bytes)
		}
	}
}

// medians takes the middle one of each figure, of allocations the mean, of those parts that
// have it.
func medians(parts []*Recorder, of func(*Recorder) map[string]float64) map[string]float64 {
	values := map[string][]float64{}
	for _, part := range parts {
		for key, value := range of(part) {
			values[key] = append(values[key], value)
		}
	}
	middle := map[string]float64{}
	for key, all := range values {
		if middle[key] = median(all); ofAllocations(key) {
			middle[key] = mean(all)
		}
	}
	return middle
}

// ofAllocations reports whether key is a figure of the Go heap, as PerOp names them.
func ofAllocations(key string) bool {
	return strings.HasSuffix(key, "_B") || strings.HasSuffix(key, "_allocs")
}

func mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// median is the middle value, or the mean of the two in the middle. It sorts values, of
// which there is at least one.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
