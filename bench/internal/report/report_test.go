package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/cairndb/cairn/bench/internal/result"
)

// sample is a run of two rounds: cairn ahead in gets, behind in puts; a void
// engine with the fastest figures of all; a floor below everybody.
func sample() *result.Run {
	w := result.Workload{ID: "w/sound/n=10/v=5/sync=on", Name: "w", N: 10, Title: "a workload", DataBytes: 1000,
		Columns: []result.Column{
			{Key: "put", Title: "put", Group: "time", Unit: result.NanosPerOp, Ranked: true},
			{Key: "get", Title: "get", Group: "time", Unit: result.NanosPerOp, Ranked: true},
			{Key: "close", Title: "close", Group: "time", Unit: result.Nanos},
			{Key: "disk", Title: "disk", Group: "space", Unit: result.Bytes, Ranked: true},
		}}
	run := &result.Run{Schema: result.Schema, Rounds: 2, Workloads: []result.Workload{w},
		Machine: result.Machine{OS: "linux", Arch: "amd64", Cores: 2, MemoryBytes: 1e9},
		Engines: []result.Engine{{Name: "cairn"}, {Name: "rival"}, {Name: "slow"}, {Name: "liar"}, {Name: "gomap", Floor: true}}}
	add := func(engine string, round int, put, get, disk float64) *result.Cell {
		run.Cells = append(run.Cells, result.Cell{Workload: w.ID, Engine: engine, Round: round, Status: result.OK,
			Metrics: map[string]float64{"put": put, "put_B": 8, "put_allocs": 1, "get": get, "close": 3, "disk": disk}})
		return &run.Cells[len(run.Cells)-1]
	}
	for round, noise := range []float64{0, 2} {
		add("cairn", round+1, 300+noise, 100+noise, 5000)
		add("rival", round+1, 200+noise, 150+noise, 4999)
		add("slow", round+1, 900, 900, 9000).Notes = []string{"puts one by one"}
		add("liar", round+1, 1, 1, 1)
		floor := add("gomap", round+1, 2, 2, 0)
		delete(floor.Metrics, "disk")
		floor.NA = map[string]string{"disk": "keeps nothing on disk"}
	}
	last := &run.Cells[len(run.Cells)-2]
	last.Status, last.Reason, last.Metrics = result.Void, "key 3: lost", nil
	return run
}

func TestBehindNamesTheBestRivalOnly(t *testing.T) {
	gaps := Behind(Tabulate(sample()))
	if len(gaps) != 2 {
		t.Fatalf("%d gaps, want puts and disk: %+v", len(gaps), gaps)
	}
	if g := gaps[0]; g.Column.Key != "put" || g.Rival != "rival" || math.Abs(g.Ratio()-301.0/201) > 1e-9 || g.Doubt() != "" {
		t.Errorf("worst gap: %s against %s, %.3f, %q", g.Column.Key, g.Rival, g.Ratio(), g.Doubt())
	}
	if g := gaps[1]; g.Column.Key != "disk" {
		t.Errorf("second gap: %s", g.Column.Key)
	}
}

func TestOneBadRoundVoidsTheRow(t *testing.T) {
	row, _ := Tabulate(sample())[0].Find("liar")
	if row.Status != result.Void || len(row.Figures) != 0 || !strings.Contains(row.Reason, "round 2: key 3: lost") {
		t.Errorf("%+v", row)
	}
}

// What a row says of several bad rounds used to be what the last of them came to.
func TestTheWorstRoundIsTold(t *testing.T) {
	for _, c := range []struct {
		rounds []result.Status
		want   result.Status
		round  string
	}{
		{[]result.Status{result.Crashed, result.OK, result.Failed}, result.Crashed, "round 1"},
		{[]result.Status{result.Hung, result.Crashed, result.Hung}, result.Crashed, "round 2"},
		{[]result.Status{result.Failed, result.Void, result.Crashed}, result.Void, "round 2"},
		{[]result.Status{result.Failed, result.Failed}, result.Failed, "round 1"},
		{[]result.Status{result.Failed, result.Absent}, result.Failed, "round 1"},
		{[]result.Status{result.Absent}, result.Absent, "why"},
	} {
		var cells []result.Cell
		for i, s := range c.rounds {
			cells = append(cells, result.Cell{Round: i + 1, Status: s, Reason: "why"})
		}
		if row := makeRow(result.Workload{}, result.Engine{}, cells); row.Status != c.want || !strings.HasPrefix(row.Reason, c.round) {
			t.Errorf("%v: %s, %q, want %s of %s", c.rounds, row.Status, row.Reason, c.want, c.round)
		}
	}
}

func TestFloorAndVoidAreNeverBest(t *testing.T) {
	table := Tabulate(sample())[0]
	if name, f, ok := table.Best("put", AnyEngine); !ok || name != "rival" || f.Median != 201 {
		t.Errorf("best put: %s %v", name, f.Median)
	}
	if name, _, _ := table.Best("get", AnyEngine); name != "cairn" {
		t.Errorf("best get: %s", name)
	}
}

func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		values            []float64
		median, low, high float64
		interval          bool
	}{
		{[]float64{5}, 5, 5, 5, false},
		{[]float64{3, 1, 2}, 2, 1, 3, false},
		{[]float64{6, 1, 2, 3, 4, 5}, 3.5, 1, 6, true}, // 6 values: the whole range is the 95 % interval
	} {
		f := Summarise(c.values)
		if f.Median != c.median || f.Low != c.low || f.High != c.high || f.Interval != c.interval {
			t.Errorf("%v: %+v", c.values, f)
		}
	}
	many := make([]float64, 20)
	for i := range many {
		many[i] = float64(i)
	}
	if f := Summarise(many); !f.Interval || f.Low <= 0 || f.High >= 19 {
		t.Errorf("20 values: the interval %v to %v is no narrower than the range", f.Low, f.High)
	}
}

func TestDoubt(t *testing.T) {
	near := Gap{Cairn: Figure{Median: 10, Low: 8, High: 12, Rounds: 3}, Best: Figure{Median: 9, Low: 8, High: 10, Rounds: 3}}
	if near.Doubt() != "intervals overlap" {
		t.Errorf("%q", near.Doubt())
	}
	once := Gap{Cairn: Figure{Median: 10, Low: 10, High: 10, Rounds: 1}, Best: Figure{Median: 1, Low: 1, High: 1, Rounds: 1}}
	if once.Doubt() != "one round" {
		t.Errorf("%q", once.Doubt())
	}
	none := Gap{Cairn: Figure{Median: 2}, Best: Figure{}}
	if FormatRatio(none.Ratio()) != "more than none" || (Gap{}).Ratio() != 1 {
		t.Error("a rival at zero")
	}
}

func TestTextSaysFirstWhereCairnIsBehind(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, sample()); err != nil {
		t.Fatal(err)
	}
	s := out.String()
	if !strings.HasPrefix(s, "WHERE CAIRN IS BEHIND\n  in 2 of 3 figures") {
		t.Errorf("begins with %q", s[:80])
	}
	for _, want := range []string{"1.50x", "liar w/sound/n=10/v=5/sync=on round 2: VOID: key 3: lost", "* 101 ns", "VOID [",
		"gomap: keeps nothing on disk", "puts one by one", "0.67x rival", "cairn / best rival"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "| gomap") && (strings.Contains(line, "*") || strings.Contains(line, " 0 ")) {
			t.Errorf("the floor is marked best or shows a zero: %s", line)
		}
	}
	if t.Failed() {
		t.Log(s)
	}
}

func TestTextWithoutCairn(t *testing.T) {
	run := sample()
	run.Engines[0].Absent = "not built"
	for i := range run.Cells {
		if run.Cells[i].Engine == "cairn" {
			run.Cells[i] = result.Cell{Workload: run.Cells[i].Workload, Engine: "cairn", Status: result.Absent, Reason: "not built"}
		}
	}
	var out bytes.Buffer
	if err := Text(&out, run); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nothing to compare: cairn not built") {
		t.Errorf("%s", out.String()[:200])
	}
}

func TestBenchstatIsReadByBenchfmt(t *testing.T) {
	var out bytes.Buffer
	if err := Benchstat(&out, sample()); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&out, "sample")
	found := map[string]float64{}
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			if ns, ok := rec.Value("sec/op"); ok {
				found[rec.Name.String()] = ns
			}
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if v := found["W/variant=sound/n=10/v=5/sync=on/op=put/engine=cairn-2"]; v < 299e-9 || v > 303e-9 {
		t.Errorf("cairn's put: %v of %v", v, found)
	}
	for name := range found {
		if strings.Contains(name, "liar") && strings.Contains(name, "round=2") {
			t.Errorf("a void cell is printed: %s", name)
		}
	}
}

func TestFormatValue(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit result.Unit
		want string
	}{
		{0, result.NanosPerOp, "0 ns"}, {1.234, result.NanosPerOp, "1.23 ns"}, {999.9, result.Nanos, "1.00 us"},
		{12345, result.Nanos, "12.3 us"}, {3.6e12, result.Nanos, "3600 s"},
		{1480, result.Bytes, "1.48 kB"}, {268435456, result.Bytes, "268 MB"}, {0.08, result.AllocsPerOp, "0.08"}, {0.0042, result.AllocsPerOp, "<0.01"}, {0.0099, result.AllocsPerOp, "<0.01"}, {0.01, result.AllocsPerOp, "0.01"}, {0, result.AllocsPerOp, "0"},
		{0.5, result.BytesPerOp, "<1.00 B"}, {0, result.BytesPerOp, "0 B"}, {0.0042, result.Number, "0.0042"}, {0.000012, result.Number, "0.000012"}, {0.0095, result.Number, "0.01"}, {18, result.AllocsPerOp, "18.0"},
	} {
		if got := FormatValue(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// Where all rounds are below what counts their range says nothing.
func TestFormatFigureBelowWhatCounts(t *testing.T) {
	for want, high := range map[string]float64{"<0.01": 0.009, "<0.01 ~400%": 0.02} {
		if got := FormatFigure(Figure{Median: 0.004, Low: 0.004, High: high, Rounds: 2}, result.AllocsPerOp); got != want {
			t.Errorf("up to %v: %q, want %q", high, got, want)
		}
	}
}

// A column that was chosen is shown, ranked or not; none is the best where nothing is ranked.
func TestMarkdownShowsTheColumnsThatWereChosen(t *testing.T) {
	run, err := sample().Part(nil, []string{"close", "get"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Markdown(&out, run); err != nil {
		t.Fatal(err)
	}
	if want := "|  | close | get |\n| --- | --- | --- |\n| **cairn** | 3.00 ns | **101 ns** |\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	out.Reset()
	if err := Markdown(&out, sample()); err != nil || strings.Contains(out.String(), "close") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
