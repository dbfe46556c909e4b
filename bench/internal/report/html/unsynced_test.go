package html

import (
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// An engine that did not sync has its figures with a mark, is never the best, and
// stands in its own column though its table puts it last.
func TestUnsyncedEngineIsMarkedAndNeverBest(t *testing.T) {
	run := sample()
	table := report.Tabulate(run)[0]
	for i := range table.Rows {
		if table.Rows[i].Engine.Name == "cairn" { // the fastest at puts
			table.Rows[i].Unsynced = "NOT SYNCED: asked for durable commits"
		}
	}
	table.Rows = append(table.Rows[1:], table.Rows[0])
	put := groupOf(table, run.Engines, "id").Rows[0].Cells
	if put[0].Text != "! 0.28×" || put[0].Best || put[0].Class != "none" || !strings.Contains(put[0].Title, "NOT SYNCED") {
		t.Errorf("%+v", put[0])
	}
	if !put[1].Best {
		t.Errorf("the best of those that sync: %+v", put[1])
	}
	s := sectionOf(run, table, "id")
	last := s.Groups[0].Rows[len(s.Groups[0].Rows)-1]
	if last.Engine != "! cairn" || last.Cells[0].Best || !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, "cairn: NOT SYNCED") }) {
		t.Errorf("%+v %q", last, s.Notes)
	}
	if !strings.Contains(string(s.Groups[0].Charts[0].SVG), ">! cairn<") {
		t.Error("the chart does not mark it")
	}
	if gaps := table.Gaps(); len(gaps) > 0 {
		t.Errorf("its figures are compared: %+v", gaps)
	}
}

func TestThatCairnDidNotSyncIsInTheSummary(t *testing.T) {
	run := sample()
	for i := range run.Cells {
		if c := &run.Cells[i]; c.Engine == "cairn" && c.Workload == run.Workloads[0].ID {
			c.Durability = &result.CellDurability{Class: result.NoCommit, Fault: "NOT SYNCED: not at all"}
		}
	}
	text := render(t, run)
	tiles, _, _ := strings.Cut(text, "</header>")
	_, behind, _ := strings.Cut(text, `<h2 id="behind-h">`)
	behind, _, _ = strings.Cut(behind, "</p>")
	if !strings.Contains(tiles, "workloads in which Cairn was asked to sync and did not") || !strings.Contains(behind, run.Workloads[0].ID+": NOT SYNCED: not at all") {
		t.Errorf("%s\n%s", tiles, behind)
	}
	if strings.Contains(render(t, sample()), "workloads in which Cairn was asked") {
		t.Error("it is said of a Cairn that syncs")
	}
}
