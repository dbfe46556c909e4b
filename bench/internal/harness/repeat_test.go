package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Every engine can be opened, filled and closed many times in one process, as the cells
// of little work ask; their tables say how often, and others say nothing.
func TestEveryEngineCanBeRepeated(t *testing.T) {
	var engines []engine.Driver
	for _, d := range engine.All() {
		if d.Info.Title != fakeTitle && d.Info.Absent == "" {
			engines = append(engines, d)
		}
	}
	for name, times := range map[string]string{"w4/sound": "15 times", "large": "5 times", "w1/sound": ""} {
		w, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		plan := NewPlan(engines, []workload.Workload{w}, workload.Scale{Counts: []int{8}, Sync: []bool{false}, Seed: 1})
		plan.Limit = time.Minute
		dir := t.TempDir()
		got, err := Run(t.Context(), plan, Config{Dir: dir, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Cells {
			if t.Logf("%s %s: %s", c.Engine, c.Workload, c.Elapsed); c.Status != result.OK {
				t.Errorf("%s %s: %s %s", c.Engine, c.Workload, c.Status, c.Reason)
			}
		}
		for _, table := range got.Workloads {
			said := strings.Contains(strings.Join(table.Conditions, "; "), "all of it done "+times)
			if said != (times != "") {
				t.Errorf("%s: repeats %q, conditions %q", table.ID, times, table.Conditions)
			}
		}
		empty(t, dir)
	}
}
