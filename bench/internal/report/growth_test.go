package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// growing is a run of a workload with three numbers of keys, given out of order: gets take
// the square root of them, scans the same whatever they are, and one engine fails at the most.
func growing() *result.Run {
	run := &result.Run{Schema: result.Schema, Rounds: 1, Engines: []result.Engine{{Name: "cairn"}, {Name: "fails"}}}
	for _, n := range []int{10_000, 100, 1_000_000} {
		w := result.Workload{ID: fmt.Sprintf("load/sound/n=%d/v=100/sync=off", n), Name: "load", N: n, Columns: []result.Column{
			{Key: "get", Title: "get rnd", Unit: result.NanosPerOp, Ranked: true},
			{Key: "keys", Title: "scan keys", Unit: result.NanosPerOp, Ranked: true},
			{Key: "range", Title: "scan range", Unit: result.NanosPerOp, Ranked: true},
			{Key: "settle", Title: "settle", Unit: result.Nanos},
			{Key: "disk", Title: "disk", Unit: result.Bytes, Ranked: true},
		}}
		run.Workloads = append(run.Workloads, w)
		for _, e := range run.Engines {
			c := result.Cell{Workload: w.ID, Engine: e.Name, Round: 1, Status: result.OK, NA: map[string]string{"range": "has no order"},
				Metrics: map[string]float64{"get": 20 * math.Sqrt(float64(n)), "keys": 30, "settle": 5, "disk": 7}}
			if e.Name == "fails" && n == 1_000_000 {
				c.Status, c.Reason, c.Metrics = result.Failed, "no space", nil
			}
			run.Cells = append(run.Cells, c)
		}
	}
	other := run.Workloads[0]
	other.ID = strings.Replace(other.ID, "sync=off", "sync=on", 1)
	run.Workloads = append(run.Workloads, other)
	return run
}

func TestGrowth(t *testing.T) {
	all := Grow(Tabulate(growing()))
	if len(all) != 1 || all[0].Name != "load/sound/v=100/sync=off" || fmt.Sprint(all[0].Counts) != "[100 10000 1000000]" || all[0].Workload.N != 100 {
		t.Fatalf("%+v", all)
	}
	g := all[0]
	if len(g.Times) != 3 || g.Times[0].Column.Key != "get" || g.Times[2].Column.Key != "range" {
		t.Fatalf("the ranked times are not get, keys and range: %+v", g.Times)
	}
	for _, c := range []struct {
		time, line int
		want       string
	}{{0, 0, "n^0.50"}, {0, 1, "n^0.50"}, {1, 0, "n^0.00"}, {2, 0, "n/a"}} {
		if got := FormatExponent(g.Times[c.time].Lines[c.line], g.Counts); got != c.want {
			t.Errorf("%s of %s grows as %s, want %s", g.Times[c.time].Column.Key, g.Times[c.time].Lines[c.line].Engine.Name, got, c.want)
		}
	}
	if f := g.Times[0].Lines[1].Figures[2]; f.Known() || !strings.Contains(f.None, "no space") {
		t.Errorf("what failed has the figure %+v", f)
	}
	if all := Grow(Tabulate(sample())); len(all) != 0 {
		t.Errorf("one number of keys: %+v", all)
	}
}

// A run may have one table twice, as one did whose workload was named twice: from a number
// of keys to the same nothing grows, and the exponent is no number.
func TestGrowthWithATableTwice(t *testing.T) {
	run := growing()
	run.Workloads = append(run.Workloads[:1:1], run.Workloads[0])
	if all := Grow(Tabulate(run)); len(all) != 0 {
		t.Errorf("one number of keys: %+v", all)
	}
	run = growing()
	run.Workloads = append(run.Workloads, run.Workloads[0])
	if all := Grow(Tabulate(run)); len(all) != 1 || fmt.Sprint(all[0].Counts) != "[100 10000 1000000]" || len(all[0].Times[0].Lines[0].Figures) != 3 {
		t.Errorf("%+v", all)
	}
}

func TestGrowthInMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := Markdown(&out, growing()); err != nil {
		t.Fatal(err)
	}
	if _, text, ok := strings.Cut(out.String(), "keys: load/sound/v=100/sync=off\n"); !ok || !strings.Contains(text, "| get rnd | 200 ns | 2.00 us | 20.0 us | n^0.50 |") {
		t.Error(out.String())
	}
}

func TestGrowthInText(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, growing()); err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(out.String(), "TIMES GROW WITH THE NUMBER OF KEYS: load/sound/v=100/sync=off\n")
	for _, want := range []string{"| n=100   | n=10000 | n=1000000 | as ", "| get rnd    | 200 ns  | 2.00 us | 20.0 us   | n^0.50 |", "| scan range | n/a     | n/a     | n/a       | n/a    |"} {
		if !ok || !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
