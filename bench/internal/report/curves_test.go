package report

import (
	"slices"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

func timed() *result.Run {
	run := sample()
	for i := range run.Cells {
		c := &run.Cells[i]
		c.Latency = map[string]float64{"get p100": float64(1000 * c.Round), "get p50": float64(10 * c.Round), "put p99.9": 7, "nonsense": 3, "put pX": 4}
		c.Series = []result.Second{{Ops: 5, MaxNano: float64(c.Round)}, {}}
	}
	return run
}

func TestCurvesAreMediansOfTheRounds(t *testing.T) {
	run := timed()
	id := run.Workloads[0].ID
	if ops := Operations(run, id); !slices.Equal(ops, []string{"get", "put"}) {
		t.Errorf("%v", ops)
	}
	curves := LatencyCurves(run, id, "get")
	if len(curves) != 4 { // all but the liar
		t.Fatalf("%d curves", len(curves))
	}
	for _, c := range curves {
		if c.Engine.Name == "liar" {
			t.Error("a void engine has a curve")
		}
		if want := []Percentile{{50, 15}, {100, 1500}}; !slices.Equal(c.Points, want) {
			t.Errorf("%s: %v, want %v", c.Engine.Name, c.Points, want)
		}
	}
	if none := LatencyCurves(run, id, "nosuch"); len(none) > 0 {
		t.Errorf("curves of nothing: %v", none)
	}
}

func TestWorstSeriesIsThatOfTheSlowestOperation(t *testing.T) {
	run := timed()
	all := WorstSeries(run, run.Workloads[0].ID)
	if len(all) != 4 {
		t.Fatalf("%d series", len(all))
	}
	for _, s := range all {
		if s.Round != 2 || len(s.Seconds) != 2 {
			t.Errorf("%s: round %d", s.Engine.Name, s.Round)
		}
	}
}
