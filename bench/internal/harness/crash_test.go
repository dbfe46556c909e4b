package harness

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// The fakes keep everything in memory until they are closed: a kill takes it all.
func TestAcknowledgedWritesThatAKillTakesAreCounted(t *testing.T) {
	got, err := run(t, t.Context(), t.TempDir(), "crash", 1, time.Minute, "good", "bbolt", "needs repair")
	if err != nil {
		t.Fatal(err)
	}
	loser, keeper, broken := got.Cells[0], got.Cells[1], got.Cells[2]
	for _, c := range got.Cells {
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
	if broken.Metrics["unopened"] != 5 || !strings.Contains(broken.NA["lost"], "the store was not closed: repair it") {
		t.Errorf("what does not open: %v %v", broken.Metrics, broken.NA)
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
