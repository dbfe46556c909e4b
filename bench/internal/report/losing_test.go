package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// losingRun has every workload there is in both modes, Cairn and a rival that is
// faster and loses what it acknowledged.
func losingRun() *result.Run {
	run := &result.Run{Engines: []result.Engine{{Name: "cairn"}, {Name: "loser", LosesAtKill: "it forgets"}}}
	for _, w := range workload.All() {
		for _, sync := range []bool{true, false} {
			id := w.Name + "/" + w.Variant + "/" + workload.SyncLabel(sync)
			run.Workloads = append(run.Workloads, result.Workload{ID: id, Name: w.Name, Variant: w.Variant, Sync: sync, Columns: w.Columns})
			for _, e := range run.Engines {
				c := result.Cell{Workload: id, Engine: e.Name, Round: 1, Status: result.OK, Metrics: map[string]float64{}}
				for _, col := range w.Columns {
					c.Metrics[col.Key] = float64(10 * (len(run.Cells)%2 + 1))
					if e.Name == "cairn" {
						c.Metrics[col.Key] = 1000
					}
				}
				run.Cells = append(run.Cells, c)
			}
		}
	}
	return run
}

// Wherever nothing is synced an engine that loses acknowledged commits at a kill is
// marked, with the reason, and so it is where it is the best rival. With syncs it is
// not.
func TestLosingEnginesAreMarkedInEveryTableWithoutSyncs(t *testing.T) {
	run := losingRun()
	var out bytes.Buffer
	if err := Text(&out, run); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, w := range run.Workloads {
		_, table, found := strings.Cut(text, "\n"+w.ID+"\n")
		table, _, _ = strings.Cut(table, "\n\n")
		if !found || !strings.Contains(table, "loser") {
			t.Fatalf("%s: no table of it", w.ID)
		}
		row, note := strings.Contains(table, "| ‡ loser [1]"), strings.Contains(table, "[1] loser: with sync off it loses acknowledged commits when its process is killed: it forgets")
		best := strings.Contains(table, "x ‡ loser") || !strings.Contains(table, "cairn / best rival")
		if w.Sync && strings.Contains(table, "‡") || !w.Sync && !(row && note && best) {
			t.Errorf("%s: marked row %v, note %v, best rival %v\n%s", w.ID, row, note, best, table)
		}
	}
	behind, _, _ := strings.Cut(text, "CONDITIONS")
	if !strings.Contains(behind, "| ‡ loser |") || !strings.Contains(behind, "‡ with sync off this rival loses") {
		t.Errorf("not marked where Cairn is behind:\n%.1500s", behind)
	}
}

// Commits that a kill can take back are no bar for those of an engine that keeps them;
// nor is the size of an open store whose commits may be in no file yet. Reads and other
// sizes are, and with syncs everything is.
func TestLosingEnginesAreNoBarForCommits(t *testing.T) {
	columns := []result.Column{
		{Key: "put", Ranked: true, Writes: true}, {Key: "get", Ranked: true},
		{Key: "disk", Ranked: true, Open: true}, {Key: "disk_end", Ranked: true},
	}
	table := Table{Workload: result.Workload{Columns: columns}}
	for name, time := range map[string]float64{"cairn": 3, "loser": 1, "keeper": 2} {
		row := Row{Engine: result.Engine{Name: name}, Figures: map[string]Figure{}}
		for _, c := range columns {
			row.Figures[c.Key] = Figure{Median: time, Rounds: 1}
		}
		if name == "loser" {
			row.Loses = "it forgets"
		}
		table.Rows = append(table.Rows, row)
	}
	rivals := func() string {
		var names []string
		for _, g := range table.Gaps() {
			names = append(names, g.Marked())
		}
		return strings.Join(names, " ")
	}
	if got := rivals(); got != "keeper ‡ loser keeper ‡ loser" {
		t.Errorf("rivals of put, get, an open store's size and a closed one's without syncs: %s", got)
	}
	for _, c := range columns {
		if best, _, _ := table.Best(c.Key, AnyEngine); best != "loser" {
			t.Errorf("best shown of %s: %s", c.Key, best)
		}
	}
	for i := range table.Rows {
		table.Rows[i].Loses = "" // as with syncs
	}
	if got := rivals(); got != "loser loser loser loser" {
		t.Errorf("rivals with syncs: %s", got)
	}
}

// Where batches are all that is committed, an engine that keeps these loses nothing.
func TestKeptBatches(t *testing.T) {
	keeper := result.Engine{LosesAtKill: "it forgets puts", KeepsBatches: true}
	for _, c := range []struct {
		w     result.Workload
		e     result.Engine
		loses bool
	}{
		{result.Workload{Batches: true}, keeper, false},
		{result.Workload{}, keeper, true},
		{result.Workload{Batches: true}, result.Engine{LosesAtKill: "it forgets"}, true},
		{result.Workload{Sync: true}, result.Engine{LosesAtKill: "it forgets"}, false},
	} {
		if got := losesAtKill(c.w, c.e); (got != "") != c.loses {
			t.Errorf("%+v, %+v: %q", c.w, c.e, got)
		}
	}
}

// What is timed with commits says so, or an engine that loses some would be a bar.
func TestColumnsOfCommitsAreKnown(t *testing.T) {
	for _, w := range workload.All() {
		for _, c := range w.Columns {
			timed := c.Unit == result.NanosPerOp || c.Unit == result.Nanos
			writes := strings.Contains(c.Title, "put") || strings.Contains(c.Title, "load") || strings.Contains(c.Title, "write") || strings.Contains(c.Title, "delete")
			writes = writes || c.Key == "total" // commits are in it, among others
			if timed && c.Ranked && writes && !c.Writes {
				t.Errorf("%s/%s: %s is timed with commits", w.Name, w.Variant, c.Title)
			}
		}
	}
}
