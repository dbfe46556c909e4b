package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// revives is an engine that brings keys back in a store that was recovered after a kill: Pogreb
// v0.10.2, synced or not, has the value before the last put again, of some keys that were put and
// deleted since. That is no loss of what it kept in memory, and by chance.
const revives = "pogreb"

// What a driver says of its engine's acknowledged commits after a process kill,
// without syncs, is what kills show.
func TestWhichEnginesLoseAtAKill(t *testing.T) {
	var stores []engine.Driver
	for _, d := range engine.All() {
		real := d.Info.Module != "" || strings.HasPrefix(d.Info.Name, "tokyo-") // and no fake of these tests
		if real && d.Info.Absent == "" && d.Info.Can(engine.CanDisk) {
			stores = append(stores, d)
		}
	}
	w, err := workload.Find("crash")
	if err != nil {
		t.Fatal(err)
	}
	plan := NewPlan(stores, []workload.Workload{w}, workload.Scale{Counts: []int{1000}, Sync: []bool{false}, Seed: 1})
	plan.Rounds, plan.Limit = 1, 2*time.Minute
	got, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Cells) != len(stores) || len(stores) < 9 {
		t.Fatalf("%d cells of %d engines", len(got.Cells), len(stores))
	}
	for _, c := range got.Cells {
		d, err := engine.Find(c.Engine)
		if err != nil {
			t.Fatal(err)
		}
		if c.Engine != "cairn" && strings.HasPrefix(c.Reason, "DID NOT OPEN") { // now and then one does not, after a kill
			t.Logf("NOT TESTED: what %s loses: %s", c.Engine, c.Reason)
			continue
		}
		lost, known := c.Metrics["lost"]
		if c.Engine == revives && lost > 0 {
			t.Logf("NOT TESTED: what a kill takes of %s: %v commits are lost, among them deletes of a recovered store", c.Engine, lost)
			continue
		}
		if c.Status != result.OK || !known || lost > 0 != (d.Info.LosesAtKill != "") {
			t.Errorf("%s: %s %s, lost %v of %v acknowledged commits; its driver says %q", c.Engine, c.Status, c.Reason, lost, c.Metrics["acknowledged"], d.Info.LosesAtKill)
		}
		if batches, counted := c.Metrics["lost_batches"]; counted && batches > 0 != (d.Info.LosesAtKill != "" && !d.Info.KeepsBatches) {
			t.Errorf("%s: lost %v batches; its driver says that they are kept: %v", c.Engine, batches, d.Info.KeepsBatches)
		}
	}
}
