package workload

import "strings"

// Uncounted takes back what was counted on the Go heap, for an engine that works
// outside it: its figures would be no measure of what it allocates.
func (r *Recorder) Uncounted(reason string) {
	for key := range r.Metrics {
		operation, allocs := strings.CutSuffix(key, "_allocs")
		if !allocs {
			operation, allocs = strings.CutSuffix(key, "_B")
		}
		if _, measured := r.Metrics[operation]; allocs && (measured || r.NA[operation] != "") {
			r.None(reason, key)
		}
	}
}
