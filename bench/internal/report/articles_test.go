package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// articleRun repeats W1 of 10,000 keys with syncs, and W0's processes.
func articleRun() *result.Run {
	columns := []result.Column{{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp}, {Key: "total", Title: "all+close", Group: "time", Unit: result.Nanos},
		{Key: "disk", Title: "disk apparent", Group: "time", Unit: result.Bytes}, {Key: "disk_allocated", Title: "disk allocated", Group: "time", Unit: result.Bytes}}
	run := &result.Run{Engines: []result.Engine{{Name: "boltdb"}, {Name: "badger"}}, Workloads: []result.Workload{
		{ID: "w1/sound/n=10000/v=4096/sync=on", Name: "w1", Variant: "sound", N: 10_000, ValueBytes: 4096, Sync: true, Columns: columns},
		{ID: "w1/published/n=2000/v=4096/sync=on", Name: "w1", Variant: "published", N: 2000, ValueBytes: 4096, Sync: true, Columns: columns},
		{ID: "processes/sound/n=500/v=100/sync=off", Name: "processes", Variant: "sound", N: 500, Columns: []result.Column{{Key: "write", Title: "write", Group: "time", Unit: result.NanosPerOp}}},
	}}
	for _, w := range run.Workloads {
		metrics := map[string]float64{"put": 500_000, "total": 4.0685e9, "disk": 72 << 20, "disk_allocated": 59 << 20, "write": 1000}
		run.Cells = append(run.Cells, result.Cell{Workload: w.ID, Engine: "boltdb", Round: 1, Status: result.OK, Metrics: metrics},
			result.Cell{Workload: w.ID, Engine: "badger", Round: 1, Status: result.Crashed, Reason: "why"})
	}
	return run
}

// lineOf finds the only line that holds all words.
func lineOf(t *testing.T, text string, words ...string) string {
	t.Helper()
	var found []string
	for line := range strings.Lines(text) {
		has := true
		for _, w := range words {
			has = has && strings.Contains(line, w)
		}
		if has {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines have %q in\n%s", len(found), words, text)
	}
	return found[0]
}

func TestTextPutsPublishedFiguresBesideMeasuredOnes(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, articleRun()); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(out.String(), "PUBLISHED FIGURES of W0 processes")
	processes, text, _ := strings.Cut(text, "PUBLISHED FIGURES of W1")
	set, rest, _ := strings.Cut(text, "100,000 keys, sync on")
	for _, c := range []struct{ row, want []string }{
		{[]string{"| boltdb", "put in order"}, []string{"250 us", "500 us", "2.00x"}},
		{[]string{"| boltdb", "| total "}, []string{"8.14 s", "4.07 s", "0.50x", "other n"}},
		{[]string{"| boltdb", "| disk "}, []string{"1.00x", "other n"}}, // of the allocated size
		{[]string{"| engine", "figure"}, []string{"sound/n=10000/v=4096/sync=on", "published/n=2000/v=4096/sync=on", "ratio", "why"}},
	} {
		line := lineOf(t, set, c.row...)
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("%q is missing in %s", want, line)
			}
		}
	}
	if strings.Contains(set, "| badger") || !strings.Contains(set, "have no counterpart in this run") {
		t.Errorf("figures without a counterpart are shown, or nothing says so:\n%s", set)
	}
	if !strings.Contains(rest, "freelist.write") || !strings.Contains(set, "published with 10000") {
		t.Error("no reason with what it rests on, or the other count is not named")
	}
	lineOf(t, processes, "| leveldb", "resource temporarily unavailable")
	if strings.Contains(out.String(), "PUBLISHED FIGURES of W4") {
		t.Error("an article that is not repeated is shown")
	}
}

// Every letter in a table is explained, and every reason has a letter of its own.
func TestLettersAreExplained(t *testing.T) {
	views, err := Articles(Tabulate(articleRun()))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		explained := map[string]bool{"general": len(v.General) > 0, "machine": true, "versions": true}
		for _, l := range v.Special {
			if explained[l.Letter] || l.Letter > "z" {
				t.Errorf("%s: letter %q twice, or none", v.Name, l.Letter)
			}
			explained[l.Letter] = true
		}
		for _, s := range v.Sets {
			for _, r := range s.Rows {
				for letter := range strings.SplitSeq(r.Why, ", ") {
					if !explained[letter] {
						t.Errorf("%s, %s, %s: %q is not explained", v.Name, s.Title, r.Title, letter)
					}
				}
			}
		}
	}
}
