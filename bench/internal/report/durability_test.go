package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// countedSample is the sample with counts: an engine that does as asked, one that does not,
// one of which nothing is known.
func countedSample() *result.Run {
	run := sample()
	run.Durability = []result.Durability{
		{Engine: "slow", Kind: "put", Class: result.NoCommit, Commits: 30},
		{Engine: "cairn", Sync: true, Kind: "put", Class: result.EveryCommit, Commits: 30, Durable: 30, Syncs: 31, Calls: map[string]int{"fsync": 1, "fdatasync": 30}},
		{Engine: "liar", Sync: true, Kind: "batch", Class: result.SomeCommits, Commits: 8, Durable: 1, Syncs: 1},
		{Engine: "rival", Sync: true, Kind: "put", Class: result.NotCounted, Why: "no tracer here"},
	}
	return run
}

func TestDurabilityPutsWhatWasAskedToSyncFirst(t *testing.T) {
	table := Durability(countedSample())
	var order []string
	for _, r := range table.Rows {
		order = append(order, r.Engine.Name+" "+r.Asked())
	}
	if !slices.Equal(order, []string{"cairn sync on", "rival sync on", "liar sync on", "slow sync off"}) || !slices.Equal(table.Kinds, []string{"put", "batch"}) {
		t.Fatalf("%q %q", order, table.Kinds)
	}
	for i, want := range []string{"every commit (30/30/31)", "could not be counted", "n/a", "none (30/0/0)"} {
		if got := table.Rows[i].Cells[0].Text(); got != want {
			t.Errorf("put of %s: %q, want %q", order[i], got, want)
		}
	}
	if c := table.Rows[2].Cells[1]; c.Text() != "! some commits (8/1/1)" || !strings.HasPrefix(c.Remarks, "liar: NOT SYNCED") {
		t.Errorf("%+v", c)
	}
	if got := table.Unsynced(); !slices.Equal(got, []string{"liar"}) {
		t.Errorf("unsynced: %q", got)
	}
	if table.Rows[0].Calls != "fdatasync 30, fsync 1" {
		t.Errorf("%q", table.Rows[0].Calls)
	}
}

func TestTextShowsDurability(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, countedSample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DURABILITY", "could not be counted [1]", "! some commits (8/1/1) [2]", "[1] rival: no tracer here", "[2] liar: NOT SYNCED", "a workload; 2 rounds", "2 rounds of a workload, in 2 turns"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestRounds(t *testing.T) {
	table := func(rounds ...int) Table {
		var t Table
		for _, r := range rounds {
			t.Rows = append(t.Rows, Row{Rounds: r})
		}
		return t
	}
	for _, c := range []struct {
		tables []Table
		want   string
	}{
		{nil, "no round"}, {[]Table{table(0, 0)}, "no round"}, {[]Table{table(1, 0, 1)}, "1 round"},
		{[]Table{table(3, 3), table(3)}, "3 rounds"}, {[]Table{table(3), table(0, 2)}, "2 to 3 rounds"},
	} {
		if got := Rounds(c.tables...); got != c.want {
			t.Errorf("%v: %q, want %q", c.tables, got, c.want)
		}
	}
}

func TestEachRounds(t *testing.T) {
	row := func(name string, rounds int) Row { return Row{Engine: result.Engine{Name: name}, Rounds: rounds} }
	even := Table{Rows: []Row{row("cairn", 3), row("absent", 0), row("rival", 3)}}
	if got := EachRounds(even); got != "" {
		t.Errorf("the same rounds for all: %q", got)
	}
	uneven := Table{Rows: []Row{row("cairn", 9), row("absent", 0), row("rival", 2)}}
	if got, want := EachRounds(uneven), "rounds, where they steady the ratios of cairn to the best rivals most for the time they take: cairn 9, rival 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// That Cairn did not sync is the first thing that is said, and the reason why nothing of
// that table is compared.
func TestThatCairnDidNotSyncComesFirst(t *testing.T) {
	const fault = "NOT SYNCED: asked for durable commits, it did not"
	run := sample()
	for i := range run.Cells {
		if run.Cells[i].Engine == "cairn" {
			run.Cells[i].Durability = &result.CellDurability{Class: result.NoCommit, Fault: fault}
		}
	}
	other := run.Workloads[0]
	other.ID = "w/sound/n=10/v=5/sync=off"
	for _, two := range []bool{false, true} {
		if two {
			run.Workloads = append(run.Workloads, other)
			for _, c := range run.Cells {
				c.Workload, c.Durability = other.ID, nil
				run.Cells = append(run.Cells, c)
			}
		}
		var text, markdown bytes.Buffer
		if err := errors.Join(Text(&text, run), Markdown(&markdown, run)); err != nil {
			t.Fatal(err)
		}
		first := "WHERE CAIRN IS BEHIND\n  NOT COMPARED, for cairn was asked to sync and did not:\n    w/sound/n=10/v=5/sync=on: " + fault + "\n  "
		if first += "nothing to compare: cairn was asked to sync and did not, in w/sound/n=10/v=5/sync=on\n"; two {
			first, _, _ = strings.Cut(first, "nothing")
			first += "in 2 of 3 figures"
		}
		if !strings.HasPrefix(text.String(), first) {
			t.Errorf("text begins with\n%.400s\nwant\n%s", text.String(), first)
		}
		if want := "**NOT COMPARED, for cairn was asked to sync and did not:**\n\n- w/sound/n=10/v=5/sync=on: " + fault + "\n\nw/"; !strings.HasPrefix(markdown.String(), want) {
			t.Errorf("markdown begins with\n%.300s", markdown.String())
		}
	}
}
