package report

import (
	"testing"

	"github.com/cairndb/cairn/bench/internal/report/published"
	"github.com/cairndb/cairn/bench/internal/result"
)

func besideTable(variant string, n int, sync bool) Table {
	w := result.Workload{ID: variant, Name: "w4", Variant: variant, N: n, ValueBytes: 1480, Sync: sync,
		Columns: []result.Column{{Key: "put", Unit: result.NanosPerOp}, {Key: "pass", Unit: result.Nanos}, {Key: "pass_allocs", Title: "put allocs/pass", Unit: result.NanosPerOp}}}
	figures := map[string]Figure{"put": {Median: 100, Rounds: 1}, "pass": {Median: 5000, Rounds: 1}, "pass_allocs": {Median: 5000, Rounds: 1}}
	return Table{Workload: w, Rows: []Row{{Engine: result.Engine{Name: "boltdb"}, Status: result.OK, Figures: figures},
		{Engine: result.Engine{Name: "tokyo-hash"}, Status: result.OK, Figures: figures},
		{Engine: result.Engine{Name: "bbolt"}, Status: result.Crashed, Reason: "round 1: why"}}}
}

func TestCounterpartsAreTheNearest(t *testing.T) {
	tables := []Table{besideTable("sound", 10, true), besideTable("sound", 9_000, true), besideTable("sound", 100_000, true), besideTable("sound", 10, false), besideTable("published", 10_000, true)}
	set := published.Set{N: 10_000, ValueBytes: 1480}
	got := Counterparts(tables, published.Article{Workload: "w4"}, set)
	if len(got) != 3 || got[0].Workload.N != 9_000 || got[1].Workload.Sync || got[2].Workload.Variant != "published" {
		t.Errorf("%d: %+v", len(got), got)
	}
	set.Sync = "sync=off"
	if got := Counterparts(tables, published.Article{Workload: "w4"}, set); len(got) != 1 || got[0].Workload.Sync {
		t.Errorf("of one sync mode: %+v", got)
	}
	if got := Counterparts(tables, published.Article{Workload: "w1"}, set); len(got) != 0 {
		t.Errorf("of another workload: %+v", got)
	}
}

func TestCounterpart(t *testing.T) {
	table := besideTable("sound", 50, true)
	for _, c := range []struct {
		engine  string
		columns []string
		want    float64
		none    string
	}{
		{"boltdb", []string{"nosuch", "put"}, 100, ""},
		{"boltdb", []string{"pass"}, 100, ""}, // 5,000 ns for 50
		{"boltdb", []string{"pass_allocs"}, 100, ""},
		{"tokyocabinet", []string{"put"}, 100, ""},
		{"bbolt", []string{"put"}, 0, "crashed: round 1: why"},
		{"rocksdb", []string{"put"}, 0, "not run"},
		{"boltdb", []string{"nosuch"}, 0, "no such column"},
	} {
		f, ok := table.Counterpart(published.Figure{Engine: c.engine, Columns: c.columns, Unit: result.NanosPerOp})
		if ok != (c.none == "") || f.Median != c.want || f.None != c.none {
			t.Errorf("%s %v: %+v", c.engine, c.columns, f)
		}
	}
}
