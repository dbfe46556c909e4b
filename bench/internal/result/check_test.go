package result

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// sound is a run of which every part refers to what is there.
func sound() *Run {
	run := &Run{Schema: Schema, Engines: []Engine{{Name: "cairn"}, {Name: "bbolt"}}, Workloads: []Workload{
		{ID: "w1/n=9", Columns: []Column{{Key: "put"}, {Key: "get"}}}, {ID: "w4/n=9", Columns: []Column{{Key: "put"}}},
	}}
	for _, w := range run.Workloads {
		for _, e := range run.Engines {
			for round := 1; round <= 2; round++ {
				run.Cells = append(run.Cells, Cell{Workload: w.ID, Engine: e.Name, Round: round, Status: OK, Metrics: map[string]float64{"put": 0, "other": 3}})
			}
		}
	}
	run.Durability = []Durability{{Engine: "cairn", Class: Grouped}}
	return run
}

func TestDecodeRefusesDamagedRuns(t *testing.T) {
	for want, damage := range map[string]func(*Run){
		"":                               func(*Run) {},
		`engine "bbolt" twice`:           func(r *Run) { r.Engines[0].Name = "bbolt" },
		`workload "w4/n=9" twice`:        func(r *Run) { r.Workloads[0].ID = "w4/n=9" },
		`column "put" twice`:             func(r *Run) { r.Workloads[0].Columns[1].Key = "put" },
		`cell 3: no engine "other"`:      func(r *Run) { r.Cells[2].Engine = "other" },
		`cell 8: no workload "w2"`:       func(r *Run) { r.Cells[7].Workload = "w2" },
		`cell 1: status "fine"`:          func(r *Run) { r.Cells[0].Status = "fine" },
		`cell 1: status ""`:              func(r *Run) { r.Cells[0].Status = "" },
		"cell 1: round 0":                func(r *Run) { r.Cells[0].Round = 0 },
		"cell 2: round 1 twice":          func(r *Run) { r.Cells[1].Round = 1 },
		"cell 1: put is -1":              func(r *Run) { r.Cells[0].Metrics["put"] = -1 },
		"cell 1: get p99 is -2":          func(r *Run) { r.Cells[0].Latency = map[string]float64{"get p99": -2} },
		"cell 1: it took -1s":            func(r *Run) { r.Cells[0].Elapsed = -time.Second },
		"it took -1s":                    func(r *Run) { r.Elapsed = -time.Second },
		`durability: no engine "nobody"`: func(r *Run) { r.Durability[0].Engine = "nobody" },
	} {
		run := sound()
		damage(run)
		var text bytes.Buffer
		if err := run.Encode(&text); err != nil {
			t.Fatal(err)
		}
		_, err := Decode(&text)
		switch {
		case want == "" && err != nil:
			t.Errorf("what is sound: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Decode(strings.NewReader(`{"schema":"cairn-bench/1","engines":[{"name":"a"}],"workloads":[{"id":"w"}],"cells":[{"engine":"a","workload":"w","round":1,"status":"ok","metrics":{"put":1e999}}]}`)); err == nil {
		t.Error("a figure that is not finite is read")
	}
}
