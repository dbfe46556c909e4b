package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

const id = "w/sound/n=10/v=5/sync=on"

// run makes rounds of one workload from the figures of each engine; "put" and "get"
// get the same values, get of cairn doubled.
func run(rounds int, figures map[string][]float64) *result.Run {
	r := &result.Run{Schema: result.Schema, Rounds: rounds, Workloads: []result.Workload{{ID: id, Name: "w", Columns: []result.Column{
		{Key: "put", Title: "put", Unit: result.NanosPerOp, Ranked: true},
		{Key: "get", Title: "get", Unit: result.NanosPerOp, Ranked: true},
		{Key: "close", Title: "close", Unit: result.Nanos},
	}}}}
	for _, name := range []string{"cairn", "fast", "slow"} {
		values, ok := figures[name]
		if !ok {
			continue
		}
		r.Engines = append(r.Engines, result.Engine{Name: name, Version: "v1"})
		for i, v := range values {
			get := v
			if name == "cairn" {
				get = 2 * v
			}
			r.Cells = append(r.Cells, result.Cell{Workload: id, Engine: name, Round: i + 1, Status: result.OK,
				Metrics: map[string]float64{"put": v, "get": get, "close": 1}})
		}
	}
	return r
}

func standing(t *testing.T, c *Comparison, column string) Standing {
	t.Helper()
	for _, s := range c.Standings {
		if s.Column == column {
			return s
		}
	}
	t.Fatalf("no standing of %s", column)
	return Standing{}
}

func change(t *testing.T, c *Comparison, engine, column string) Change {
	t.Helper()
	for _, x := range c.Changes {
		if x.Engine == engine && x.Column == column {
			return x
		}
	}
	t.Fatalf("no change of %s %s", engine, column)
	return Change{}
}

func near(a Number, b float64) bool { return math.Abs(float64(a)-b) < 1e-9 }

func TestStandings(t *testing.T) {
	a := run(1, map[string][]float64{"cairn": {100}, "fast": {50}, "slow": {80}})
	b := run(1, map[string][]float64{"cairn": {110}, "fast": {90}, "slow": {44}})
	c := Of(a, b, 20)
	put := standing(t, c, "put")
	if !near(put.A.Ratio, 2) || put.A.Rival != "fast" || !near(put.B.Ratio, 2.5) || put.B.Rival != "slow" || !near(put.Moved, 25) {
		t.Errorf("%+v", put)
	}
	if back := standing(t, Of(b, a, 20), "put"); !near(back.Moved, 25) {
		t.Errorf("the other way round it moved by %v", back.Moved)
	}
	if len(c.Standings) != 2 || c.Moved != 2 || !c.TooManyMoved() {
		t.Errorf("%d standings, %d moved: close is not ranked", len(c.Standings), c.Moved)
	}
	if c := Of(a, b, 25); c.Moved != 0 || c.TooManyMoved() {
		t.Errorf("%d moved by more than 25 %%", c.Moved)
	}
	if !strings.HasPrefix(c.Summary(), "0 of 2 cells moved by at most 20 %") {
		t.Error(c.Summary())
	}
}

func TestATenthMayMove(t *testing.T) {
	c := &Comparison{Limit: 20}
	for range 9 {
		c.Standings = append(c.Standings, Standing{Moved: 20})
	}
	c.Standings = append(c.Standings, Standing{Moved: 20.1})
	c.count()
	if c.Moved != 1 || c.TooManyMoved() {
		t.Errorf("%d of 10 moved; a tenth is allowed", c.Moved)
	}
	c.Standings = c.Standings[:9]
	if !c.TooManyMoved() {
		t.Error("1 of 9 is more than a tenth")
	}
}

func TestSignificance(t *testing.T) {
	a := run(6, map[string][]float64{"cairn": {10, 11, 12, 13, 14, 15}, "fast": {5, 5, 5, 5, 5, 5}, "slow": {20, 22, 21, 23, 20, 25}})
	b := run(6, map[string][]float64{"cairn": {30, 31, 32, 33, 34, 35}, "fast": {5, 5, 5, 5, 5, 5}, "slow": {21, 20, 23, 22, 25, 20}})
	c := Of(a, b, 20)
	if x := change(t, c, "cairn", "put"); !x.Significant || !near(x.Ratio, 32.5/12.5) || x.P > 0.01 || x.verdict() != "significant: more" {
		t.Errorf("%+v", x)
	}
	if x := change(t, c, "slow", "put"); x.Significant || x.verdict() != "no difference found" {
		t.Errorf("%+v", x)
	}
	if x := change(t, c, "fast", "put"); x.Significant || !near(x.Ratio, 1) {
		t.Errorf("%+v", x)
	}
}

func TestFewRoundsAreToldSo(t *testing.T) {
	a := run(3, map[string][]float64{"cairn": {10, 11, 12}, "fast": {5, 5, 5}})
	b := run(3, map[string][]float64{"cairn": {100, 110, 120}, "fast": {5, 5, 5}})
	c := Of(a, b, 20)
	if x := change(t, c, "cairn", "put"); x.Significant || x.verdict() != "too few rounds to tell" {
		t.Errorf("%+v", x)
	}
	var out bytes.Buffer
	if err := c.Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0 of 2 cells moved by at most 20 %", "3 rounds are too few for significance: the test needs 4", "10.0x", "900%", "too few rounds to tell"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// A figure that only one run has is no zero, and its standing counts as moved.
func TestLostFigureCountsAsMoved(t *testing.T) {
	a := run(1, map[string][]float64{"cairn": {10}, "fast": {5}})
	b := run(1, map[string][]float64{"cairn": {10}, "fast": {5}})
	b.Cells[0].Status, b.Cells[0].Metrics = result.Crashed, nil
	c := Of(a, b, 20)
	if c.Moved != 2 || standing(t, c, "put").Moved.known() {
		t.Errorf("%d moved", c.Moved)
	}
	x := change(t, c, "cairn", "put")
	if x.B.known() || x.Ratio.known() || x.Remark != "in one run only" {
		t.Errorf("%+v", x)
	}
	var out bytes.Buffer
	if err := c.Text(&out); err != nil || !strings.Contains(out.String(), "in one only") || !strings.Contains(out.String(), "n/a") {
		t.Errorf("%v\n%s", err, out.String())
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"moved_percent":null`) || !strings.Contains(string(text), `"b":null`) {
		t.Errorf("%s", text)
	}
}

// What only one run has is listed and counted, whichever run it is.
func TestEitherRunsFiguresAreCompared(t *testing.T) {
	all := run(1, map[string][]float64{"cairn": {10}, "fast": {5}, "slow": {20}})
	less := run(1, map[string][]float64{"cairn": {10}, "fast": {5}})
	less.Workloads[0].Columns = less.Workloads[0].Columns[1:] // no put
	for i := range less.Cells {
		delete(less.Cells[i].Metrics, "put")
	}
	for name, c := range map[string]*Comparison{"first": Of(all, less, 20), "second": Of(less, all, 20)} {
		put := standing(t, c, "put")
		if len(c.Standings) != 2 || c.Moved != 1 || put.Moved.known() || put.Title != "put" || put.A.Ratio.known() == put.B.Ratio.known() {
			t.Errorf("only the %s run has put: %d of %d moved, %+v", name, c.Moved, len(c.Standings), put)
		}
		for _, once := range [][2]string{{"cairn", "put"}, {"slow", "put"}, {"slow", "get"}} {
			if x := change(t, c, once[0], once[1]); x.A.known() == x.B.known() || x.Remark != "in one run only" || x.Title != once[1] {
				t.Errorf("only the %s run has %s of %s: %+v", name, once[1], once[0], x)
			}
		}
		if len(c.Changes) != 9 {
			t.Errorf("only the %s run has all: %d changes, want three figures of three engines", name, len(c.Changes))
		}
	}
}

func TestBestRivalAtZero(t *testing.T) {
	a := run(1, map[string][]float64{"cairn": {10}, "fast": {0}})
	if c := Of(a, a, 20); c.Moved != 0 {
		t.Errorf("a run differs from itself: %+v", c.Standings)
	}
	b := run(1, map[string][]float64{"cairn": {10}, "fast": {5}})
	if c := Of(a, b, 20); c.Moved != 2 {
		t.Errorf("from infinite to 2 is no movement: %+v", c.Standings)
	}
}

func TestConditionsApart(t *testing.T) {
	a, b := run(1, map[string][]float64{"cairn": {10}, "fast": {5}}), run(2, map[string][]float64{"cairn": {10, 10}, "slow": {5, 5}})
	b.Engines[0].Version, b.Machine.CPU, b.Build = "v2", "other", "0123"
	b.Workloads[0].Conditions = []string{"all of it twice"}
	b.Workloads[0].Columns = slices.Clone(b.Workloads[0].Columns)
	b.Workloads[0].Columns[0].Unit = "rows"
	b.Workloads = append(b.Workloads, result.Workload{ID: "more"})
	c := Of(a, b, 20)
	text := strings.Join(append(c.Apart, c.Once...), "\n")
	for _, want := range []string{"cairn: version v1, then v2", "processor: none, then other", "rounds: 1, then 2", "slow: in the second run only", "fast: in the first run only", "more",
		"laboratory's program: none, then 0123", b.Workloads[0].ID + ": other conditions", "the unit of " + b.Workloads[0].Columns[0].Title + ": "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if same := Of(a, a, 20); len(same.Apart)+len(same.Once) > 0 {
		t.Errorf("a run differs from itself: %v", same.Apart)
	}
}

// The names in a comparison are those of files, and of what the files hold.
func TestTextSteersNoTerminal(t *testing.T) {
	a, b := run(1, map[string][]float64{"cairn": {1}, "fast": {2}}), run(1, map[string][]float64{"cairn": {1}, "fast": {2}})
	a.Machine.CPU = "\x1b[2J\u009b"
	c := Of(a, b, 20)
	c.A.Name = "\x1b[2J.json"
	var out bytes.Buffer
	if err := c.Text(&out); err != nil || strings.ContainsAny(out.String(), "\x1b\u009b") || strings.Count(out.String(), "?[2J") != 2 {
		t.Errorf("%v: %q", err, out.String())
	}
}
