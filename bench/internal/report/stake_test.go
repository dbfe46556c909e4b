package report

import (
	"math"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// stakes is a table of two ranked figures and a note, one round of each engine.
func stakes() *result.Run {
	columns := []result.Column{
		{Key: "put", Unit: result.NanosPerOp, Ranked: true, Writes: true},
		{Key: "get", Unit: result.NanosPerOp, Ranked: true},
		{Key: "disk", Unit: result.Bytes, Ranked: true},
		{Key: "note", Unit: result.NanosPerOp},
	}
	run := &result.Run{Workloads: []result.Workload{{ID: "w", Columns: columns}}}
	for _, e := range []struct {
		result.Engine
		put, get, disk, note float64
	}{
		{result.Engine{Name: "cairn"}, 900, 900, 9, 9},
		{result.Engine{Name: "loser", LosesAtKill: "it forgets"}, 1, 210, 90, 9},
		{result.Engine{Name: "floor", Floor: true}, 1, 1, 1, 9},
		{result.Engine{Name: "reader"}, 300, 100, 90, 9},
		{result.Engine{Name: "writer"}, 100, 300, 90, 9},
		{result.Engine{Name: "near"}, 300, 134, 90, 9},
		{result.Engine{Name: "small"}, 300, 300, 10, 9},
		{result.Engine{Name: "far"}, 210, 210, 90, 1},
	} {
		run.Engines = append(run.Engines, e.Engine)
		run.Cells = append(run.Cells, result.Cell{
			Workload: "w", Engine: e.Name, Round: 1, Status: result.OK,
			Metrics: map[string]float64{"put": e.put, "get": e.get, "disk": e.disk, "note": e.note},
		})
	}
	return run
}

// A ratio hangs on Cairn and on whoever may be its best rival; not on floors, those that
// lose commits where these count, and whoever is more than twice behind after one round.
// Times vary more than sizes.
func TestStakes(t *testing.T) {
	got := Tabulate(stakes())[0].Stakes()
	time, size := 0.25*0.25, 0.05*0.05
	for engine, want := range map[string]float64{
		"cairn": 2*time + size, "loser": 0, "floor": 0, "reader": time / 2, "writer": time, "near": time / 2, "small": size, "far": 0, "nobody": 0,
	} {
		if math.Abs(got[engine]-want) > 1e-12 {
			t.Errorf("%s has a stake of %g, want %g", engine, got[engine], want)
		}
	}
}

// After many rounds only those stay in the race that are close.
func TestStakesNarrow(t *testing.T) {
	run := stakes()
	for round := 2; round <= 6; round++ {
		for name, get := range map[string]float64{"near": 134, "reader": 100} {
			run.Cells = append(run.Cells, result.Cell{
				Workload: "w", Engine: name, Round: round, Status: result.OK,
				Metrics: map[string]float64{"put": 300, "get": get, "disk": 90, "note": 9},
			})
		}
	}
	got := Tabulate(run)[0].Stakes()
	if near, reader := got["near"], got["reader"]; near != 0 || math.Abs(reader-2*0.25*0.25/7) > 1e-12 {
		t.Errorf("stakes of %g and %g, want none for who is a third behind in six rounds, and all for the best", near, reader)
	}
}

// What the rounds show counts beside what is usual, up to a bound.
func TestStakesLearn(t *testing.T) {
	stake := func(puts ...float64) float64 {
		run := stakes()
		for i, put := range puts {
			run.Cells = append(run.Cells, result.Cell{
				Workload: "w", Engine: "writer", Round: 2 + i, Status: result.OK,
				Metrics: map[string]float64{"put": put, "get": 200, "disk": 90, "note": 9},
			})
		}
		return Tabulate(run)[0].Stakes()["writer"]
	}
	one, steady, wild := stake(), stake(100, 100, 100, 100), stake(100, 100*math.E, 100, 100)
	if want := one / 3; math.Abs(steady-want) > 1e-12 {
		t.Errorf("five equal rounds: %g, want %g", steady, want)
	}
	if wild <= one || wild > 0.09 {
		t.Errorf("a wild one: %g, of one round alone %g, want more, and no more than 0.09", wild, one)
	}
	if got := stake(0); got != one*2/3 {
		t.Errorf("a figure without a logarithm: %g, want %g", got, one*2/3)
	}
}
