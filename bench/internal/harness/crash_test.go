package harness

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// The fakes keep everything in memory until they are closed: a kill takes it all.
func TestAcknowledgedWritesThatAKillTakesAreCounted(t *testing.T) {
	got, err := run(t, t.Context(), t.TempDir(), "crash", 1, time.Minute, "good", "bbolt", "needs repair")
	if err != nil {
		t.Fatal(err)
	}
	loser, keeper, broken := got.Cells[0], got.Cells[1], got.Cells[2]
	for _, c := range got.Cells[:2] {
		if c.Status != result.OK {
			t.Fatalf("%s: %s: %s", c.Engine, c.Status, c.Reason)
		}
	}
	if loser.Metrics["lost"] == 0 || loser.Metrics["lost"] > loser.Metrics["acknowledged"] {
		t.Errorf("what is kept in memory: %v", loser.Metrics)
	}
	if lost, known := keeper.Metrics["lost"]; !known || lost != 0 || keeper.Metrics["acknowledged"] == 0 {
		t.Errorf("bbolt: %v", keeper.Metrics)
	}
	if broken.Status != result.Failed || !strings.Contains(broken.Reason, "the store was not closed: repair it") {
		t.Errorf("what does not open: %s: %s", broken.Status, broken.Reason)
	}
	var text bytes.Buffer
	if err := report.Text(&text, got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LOST ", "DID NOT OPEN after 5 of 5 kills: the store was not closed: repair it"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}

// An engine keeps deletes, and long values, as well as short puts, or it is found out.
func TestEverySortOfCommitIsLookedForAfterAKill(t *testing.T) {
	losing := map[string]bool{"survives kills": false, "loses deletes at a kill": true, "loses middling values at a kill": true, "loses long values at a kill": true}
	for _, c := range crashedCells(t, 500, slices.Sorted(maps.Keys(losing))...) {
		want := result.OK
		if losing[c.Engine] {
			want = result.Void
		}
		if c.Status != want || losing[c.Engine] != strings.HasPrefix(c.Reason, "LOST ") {
			t.Errorf("%s: %s: %s, want %s", c.Engine, c.Status, c.Reason, want)
		}
	}
}

// Commits that were to be durable and are lost are a wrong answer.
func TestDurableCommitsThatAKillTakesVoidTheCell(t *testing.T) {
	cells := crashedCells(t, 20, "good", "bbolt")
	loser, keeper := cells[0], cells[1]
	if loser.Status != result.Void || !strings.HasPrefix(loser.Reason, "LOST ") || !strings.Contains(loser.Reason, "acknowledged commits when its process was killed (sync=on)") {
		t.Errorf("what is kept in memory: %s: %s", loser.Status, loser.Reason)
	}
	if keeper.Status != result.OK || keeper.Metrics["acknowledged"] == 0 {
		t.Errorf("bbolt: %s: %s", keeper.Status, keeper.Reason)
	}
}

// crashedCells is one round of crash, with syncs.
func crashedCells(t *testing.T, n int, names ...string) []result.Cell {
	t.Helper()
	var drivers []engine.Driver
	for _, name := range names {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		drivers = append(drivers, d)
	}
	w, err := workload.Find("crash")
	if err != nil {
		t.Fatal(err)
	}
	plan := NewPlan(drivers, []workload.Workload{w}, workload.Scale{Counts: []int{n}, Sync: []bool{true}, Seed: 1})
	plan.Rounds = 1
	got, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Cells) != len(names) {
		t.Fatalf("%d cells of %d engines", len(got.Cells), len(names))
	}
	return got.Cells
}
