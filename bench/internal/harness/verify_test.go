package harness

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/syncs"
	"github.com/cairndb/cairn/bench/internal/workload"
)

func runSynced(t *testing.T, engines ...string) *result.Run {
	t.Helper()
	var ds []engine.Driver
	for _, name := range engines {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, d)
	}
	w, _ := workload.Find("w1")
	plan := NewPlan(ds, []workload.Workload{w}, workload.Scale{Counts: []int{10}, ValueBytes: 64, Sync: []bool{true}, Seed: 1})
	plan.Limit = time.Minute
	got, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Durability {
		if d.Class == result.NotCounted {
			t.Skip("calls cannot be counted here: ", d.Why)
		}
	}
	return got
}

func TestAnEngineThatLiesAboutSyncIsCaught(t *testing.T) {
	for name, want := range map[string]result.Class{
		"good": result.EveryCommit, "never syncs": result.NoCommit, "syncs sometimes": result.SomeCommits,
		"syncs later": result.NoCommit, "syncs another file": result.NoCommit, "syncs puts only": result.NoCommit,
	} {
		t.Run(name, func(t *testing.T) {
			cell := runSynced(t, name).Cells[0]
			if cell.Status != result.OK || cell.Durability == nil {
				t.Fatalf("%s: %s, %+v", cell.Status, cell.Reason, cell.Durability)
			}
			// A machine under load may let a late sync end in time, once in a while.
			class := cell.Durability.Class
			if class != want && !(name == "syncs later" && class == result.SomeCommits) {
				t.Errorf("%s, want %s: %+v", class, want, cell.Durability)
			}
			if lies := name != "good"; lies != strings.Contains(cell.Durability.Fault, "NOT SYNCED") {
				t.Errorf("fault %q", cell.Durability.Fault)
			}
		})
	}
}

func TestALiarIsMarkedAndRankedLast(t *testing.T) {
	got := runSynced(t, "never syncs", "good")
	table := report.Tabulate(got)[0]
	rows := table.Rows
	if best, _, ok := table.Best("put", report.AnyEngine); !ok || best != "good" {
		t.Errorf("the best put is %q", best)
	}
	if rows[0].Engine.Name != "good" || rows[1].Unsynced == "" {
		t.Errorf("first %s, then %s %q", rows[0].Engine.Name, rows[1].Engine.Name, rows[1].Unsynced)
	}
	var text bytes.Buffer
	if err := report.Text(&text, got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| ! never syncs [", "! none (30/0/0)", "every commit (30/30/30)",
		"never syncs: NOT SYNCED: asked for durable commits, it acknowledged 30 commits (put) and synced none of them"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "| ! never syncs") && strings.Contains(line, "*") {
			t.Errorf("a liar is marked best: %s", line)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
}

// Every driver that says it can sync does, when asked to.
func TestEveryEngineSyncsWhenAskedTo(t *testing.T) {
	var names []string
	for _, d := range engine.All() {
		if !strings.HasPrefix(d.Info.Title, "a fake") && d.Info.Absent == "" && d.Info.Can(engine.CanSync) {
			names = append(names, d.Info.Name)
		}
	}
	for _, d := range runSynced(t, names...).Durability {
		t.Logf("%-15s %-7s %s (%d/%d/%d) %s", d.Engine, d.Kind, d.Class, d.Commits, d.Durable, d.Syncs, d.Why)
		if fault := d.Fault(); fault != "" {
			t.Errorf("%s: %s", d.Engine, fault)
		}
	}
}

func TestWhereNothingCanBeCountedTheReportSaysSo(t *testing.T) {
	d, _ := engine.Find("good")
	for name, seen := range map[string][]result.Durability{
		"operation not permitted": classify(d, true, syncs.Report{}, errors.New("installing a seccomp filter: operation not permitted")),
		"asynchronous I/O":        classify(d, true, syncs.Report{Ring: true, Kinds: map[syncs.Kind]syncs.Count{0: {Commits: 5}}}, nil),
	} {
		sum := result.Sum(seen)
		if sum.Class != result.NotCounted || sum.Fault != "" || !strings.Contains(sum.Why, name) {
			t.Errorf("%s: %+v", name, sum)
		}
		run := &result.Run{Engines: []result.Engine{{Name: "good"}}, Durability: seen}
		var text bytes.Buffer
		if err := report.Text(&text, run); err != nil || !strings.Contains(text.String(), "could not be counted [1]") || !strings.Contains(text.String(), name) {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
	}
	if class := classOf(syncs.Count{Commits: 9, Durable: 9, Syncs: 3}); class != result.Grouped {
		t.Errorf("%s", class)
	}
}
