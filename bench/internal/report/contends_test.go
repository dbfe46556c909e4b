package report

import (
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Whoever may be the best rival of Cairn in a column contends, Cairn always; floors, those
// that lose commits where these count, and whoever is more than a quarter behind do not.
func TestContends(t *testing.T) {
	columns := []result.Column{{Key: "put", Ranked: true, Writes: true}, {Key: "get", Ranked: true}, {Key: "note"}}
	run := &result.Run{Workloads: []result.Workload{{ID: "w", Columns: columns}}}
	for _, e := range []struct {
		result.Engine
		put, get, note float64
	}{
		{result.Engine{Name: "cairn"}, 900, 900, 9},
		{result.Engine{Name: "loser", LosesAtKill: "it forgets"}, 1, 126, 9},
		{result.Engine{Name: "floor", Floor: true}, 1, 1, 9},
		{result.Engine{Name: "reader"}, 200, 100, 9},
		{result.Engine{Name: "writer"}, 100, 200, 9},
		{result.Engine{Name: "near"}, 300, 125, 9},
		{result.Engine{Name: "far"}, 126, 126, 1},
	} {
		run.Engines = append(run.Engines, e.Engine)
		run.Cells = append(run.Cells, result.Cell{
			Workload: "w", Engine: e.Name, Round: 1, Status: result.OK,
			Metrics: map[string]float64{"put": e.put, "get": e.get, "note": e.note},
		})
	}
	table := Tabulate(run)[0]
	for engine, want := range map[string]bool{
		"cairn": true, "loser": false, "floor": false, "reader": true, "writer": true, "near": true, "far": false, "nobody": false,
	} {
		if got := table.Contends(engine, 1.25); got != want {
			t.Errorf("%s contends: %v", engine, got)
		}
	}
}
