package harness

import (
	"github.com/cairndb/cairn/bench/internal/result"
)

// weatherSyncs is how many syncs are timed before a cell.
const weatherSyncs = 5

// weather begins to watch the machine; what it returns is to be called when the cell has
// ended, and says nil where nothing is known.
func (r *runner) weather(c cell) (ended func() *result.Weather) {
	none := func() *result.Weather { return nil }
	if c.driver.Info.Absent != "" {
		return none
	}
	delay, err := syncDelay(r.root, weatherSyncs)
	if err != nil {
		return none // the cell will say what is wrong
	}
	stolen, all, ok := processorTimes()
	if !ok {
		return none
	}
	return func() *result.Weather {
		w := &result.Weather{Sync: delay}
		if s, a, _ := processorTimes(); a > all {
			w.Stolen = float64(s-stolen) / float64(a-all)
		}
		return w
	}
}
