package report

import (
	"fmt"
	"slices"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Weather says what the machine was like during the cells of a run: two runs under
// different weather are not alike. Empty where nothing is known.
func Weather(run *result.Run) string {
	var stolen, syncs []float64
	for _, c := range run.Cells {
		if c.Weather != nil {
			stolen, syncs = append(stolen, 100*c.Weather.Stolen), append(syncs, float64(c.Weather.Sync))
		}
	}
	if len(stolen) == 0 {
		return ""
	}
	slices.Sort(stolen)
	slices.Sort(syncs)
	last, middle, tenth := len(stolen)-1, len(stolen)/2, len(stolen)/10
	return fmt.Sprintf("of the processors' time the host gave others %.0f %% during the middle cell, %.0f %% in one of ten, %.0f %% at worst; an fsync before a cell took %s, %s, %s",
		stolen[middle], stolen[last-tenth], stolen[last],
		FormatValue(syncs[middle], result.Nanos), FormatValue(syncs[last-tenth], result.Nanos), FormatValue(syncs[last], result.Nanos))
}
