package harness

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/cairndb/cairn/bench/internal/workload"
)

func TestMain(m *testing.M) {
	registerFakes()
	if IsChild() {
		Child()
	}
	if dir := os.Getenv(smallMark); dir != "" {
		runOnSmallDisk(dir)
	}
	if dir := os.Getenv(harnessMark); dir != "" {
		runHangingHarness(dir)
	}
	os.Exit(scratch.Tests(m.Run))
}

// run carries out a small plan on the named engines.
func run(t *testing.T, ctx context.Context, dir, suite string, rounds int, limit time.Duration, engines ...string) (*result.Run, error) {
	t.Helper()
	var ds []engine.Driver
	for _, name := range engines {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, d)
	}
	w, err := workload.Find(suite)
	if err != nil {
		t.Fatal(err)
	}
	scale := workload.Scale{Counts: []int{20}, ValueBytes: 64, Sync: []bool{false}, Seed: 1}
	if w.Unfit != nil && w.Unfit(scale) != "" {
		scale.ValueBytes = 0
	}
	plan := NewPlan(ds, []workload.Workload{w}, scale)
	plan.Rounds, plan.Limit = rounds, limit
	return Run(ctx, plan, Config{Dir: dir, Seed: 1})
}

func TestMisbehaviourIsSeenAndShownAsWhatItIs(t *testing.T) {
	for _, c := range []struct {
		engine, suite string
		status        result.Status
		reason        string
	}{
		{"good", "w1", result.OK, ""},
		{"good", "w4", result.OK, ""},
		{"loses", "w1", result.Void, "key 2: lost"},
		{"loses", "w4", result.Void, "lost"},
		{"stale", "w1", result.OK, ""}, // no fault: W1 deletes before it puts again
		{"stale", "w4", result.Void, "a stale value"},
		{"undeletes", "w1", result.Void, "still there after its delete"},
		{"forgets at close", "w1", result.Void, "after close and open: key"},
		{"forgets at close", "w4", result.Void, "lost"},
		{"fails", "w1", result.Failed, "the disk is on fire"},
		{"crashes", "w1", result.Crashed, "panic: a fault of the engine"},
		{"kills itself", "w1", result.Crashed, "signal: killed"},
		{"writes on", "w1", result.OK, ""},
		{"exits", "w1", result.Crashed, "exit status 0"},
		{"hangs", "w1", result.Hung, "no end after"},
		{"good", "w0", result.OK, ""},
		{"good", "w1/published", result.OK, ""},
		{"good", "w2", result.OK, ""},
		{"good", "w2/published", result.OK, ""},
		{"good", "w4/published", result.OK, ""},
		{"good", "ycsb", result.OK, ""},
		{"good", "load", result.OK, ""},
		{"good", "large", result.OK, ""},
		{"forgets at close", "w0", result.Void, "lost"},
		{"loses", "w1/published", result.Void, "key 2: lost"},
		{"undeletes", "w1/published", result.Void, "still there after its delete"},
		{"loses", "w2", result.Void, "lost"},
		{"forgets at close", "w2/published", result.Void, "lost"},
		{"loses", "w4/published", result.OK, ""}, // the next pass writes the same again: one reason why it is unsound
		{"forgets at close", "w4/published", result.Void, "after close and open: key"},
		{"loses", "ycsb", result.Void, "lost"},
		{"stale", "ycsb", result.Void, "a stale value"},
		{"forgets at close", "ycsb", result.Void, "after close and open: key"},
		{"loses", "load", result.Void, "lost"},
		{"forgets at close", "load", result.Void, "after close and open: key"},
		{"stale", "large", result.Void, "a stale value"},
		{"undeletes", "large", result.Void, "still there after its delete"},
		{"brings back", "large", result.Void, "after close and open: key 0: still there"},
	} {
		t.Run(c.engine+"/"+c.suite, func(t *testing.T) {
			dir := t.TempDir()
			limit := 20 * time.Second
			if c.status == result.Hung {
				limit = 300 * time.Millisecond
			}
			got, err := run(t, t.Context(), dir, c.suite, 1, limit, c.engine)
			if err != nil {
				t.Fatal(err)
			}
			cell := got.Cells[0]
			if cell.Status != c.status || !strings.Contains(cell.Reason, c.reason) {
				t.Errorf("%s: %s, want %s: ...%s...", cell.Status, cell.Reason, c.status, c.reason)
			}
			if c.status != result.OK && (len(cell.Metrics) > 0 || len(got.Bad()) != 1) {
				t.Errorf("a cell that does not count has figures, or is not listed as bad: %+v", cell)
			}
			var text bytes.Buffer
			if err := report.Text(&text, got); err != nil {
				t.Fatal(err)
			}
			shown := fmt.Sprintf("%s %s round 1: %s: ", c.engine, cell.Workload, strings.ToUpper(string(c.status)))
			if c.status != result.OK && !strings.Contains(text.String(), shown) {
				t.Errorf("%q is not in the report", shown)
			}
			empty(t, dir)
		})
	}
}

// A figure or a reason for every column: no cell is left empty, none is a zero
// in place of something that cannot be measured.
func TestEveryColumnHasAFigureOrAReason(t *testing.T) {
	suites := []string{
		"w0", "w0/published", "w1", "w1/published", "w2", "w2/published", "w4", "w4/published", "ycsb", "load", "large",
		"crash", "processes", "memory",
	}
	for _, suite := range suites {
		engines := []string{"good", "gomap", "pogreb", "bbolt", "floor"}
		if suite == "processes" {
			engines = engines[1:] // the fake has no lock: its readers may write old values back
		}
		got, err := run(t, t.Context(), t.TempDir(), suite, 1, time.Minute, engines...)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Cells {
			if c.Status != result.OK {
				t.Errorf("%s: %s", c.Engine, c.Reason)
			}
			for _, col := range got.Workloads[0].Columns {
				v, has := c.Metrics[col.Key]
				maybe := col.Unit == result.AllocsPerOp || col.Unit == result.BytesPerOp || col.Unit == result.Number || col.Key == workload.ReadColumn // all of a small set stays in the kernel's memory
				if has && v == 0 && c.Engine != "good" && !maybe {
					t.Errorf("%s %s %s: a zero", suite, c.Engine, col.Key)
				}
				if has == (c.NA[col.Key] != "") {
					t.Errorf("%s %s %s: figure %v, reason %q", suite, c.Engine, col.Key, has, c.NA[col.Key])
				}
			}
		}
	}
}

func TestRoundsAreInterleavedAndRotated(t *testing.T) {
	got, err := run(t, t.Context(), t.TempDir(), "w1", 3, time.Minute, "good", "gomap")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range got.Cells {
		order = append(order, c.Engine)
	}
	if s := strings.Join(order, " "); s != "good gomap gomap good good gomap" {
		t.Errorf("order: %s", s)
	}
}

// Who begins goes round among those that are in the rounds, wherever their rows are.
func TestEachIsFirstAboutAsOften(t *testing.T) {
	plan := planOf(1)
	plan.Engines = make([]engine.Driver, 17)
	table := &plan.Tables[0]
	for _, c := range []struct {
		what string
		in   func(round, engine int) bool
		want map[int]int // by engine: how often it is first in 24 rounds
	}{
		{"two rows beside each other", func(_, e int) bool { return e == 3 || e == 4 }, map[int]int{3: 12, 4: 12}},
		{"two rows far apart", func(_, e int) bool { return e == 3 || e == 16 }, map[int]int{3: 12, 16: 12}},
		{"three rows", func(_, e int) bool { return e < 2 || e == 9 }, map[int]int{0: 8, 1: 8, 9: 8}},
		{"one in each second round", func(n, e int) bool { return e == 3 || e == 9 && n%2 == 0 }, map[int]int{3: 18, 9: 6}},
		{"two in turns", func(n, e int) bool { return e == 3 || e == 9+n%2 }, map[int]int{3: 12, 9: 6, 10: 6}},
	} {
		table.due = nil
		first := map[int]int{}
		for n := 1; n <= 24; n++ {
			table.next = make([]bool, len(plan.Engines))
			for e := range table.next {
				table.next[e] = c.in(n, e)
			}
			first[plan.turn(0, n)[0].engine]++
		}
		if !maps.Equal(first, c.want) {
			t.Errorf("%s: first are %v, want %v", c.what, first, c.want)
		}
	}
}

func TestAbsentEngineKeepsItsRow(t *testing.T) {
	d := engine.Driver{Info: engine.Info{Name: "absent", Absent: "not built"}}
	w, _ := workload.Find("w1")
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, workload.Scale{Sync: []bool{true}})
	got, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Cells[0]; c.Status != result.Absent || c.Reason != "not built" || c.Status.Bad() {
		t.Errorf("%+v", c)
	}
}

// planOf makes a plan of tables that take the given minutes a round.
func planOf(minutes ...int) Plan {
	plan := Plan{Engines: []engine.Driver{{}, {}}, Rounds: 1}
	for _, m := range minutes {
		each := time.Duration(m) * time.Minute / 2
		w := workload.Workload{Name: "w", Estimate: func(workload.Params, engine.Info, time.Duration) time.Duration { return each }}
		plan.Tables = append(plan.Tables, Table{Workload: w})
	}
	return plan
}

func TestFitRoundsSpreadsTheTime(t *testing.T) {
	for _, c := range []struct {
		budget time.Duration
		rounds string
	}{
		{0, "[3 3 3]"}, {time.Second, "[1 1 1]"}, {13 * time.Minute, "[1 1 1]"},
		{15 * time.Minute, "[1 2 1]"}, {18 * time.Minute, "[1 2 2]"}, {19 * time.Minute, "[1 3 2]"}, {28 * time.Minute, "[2 2 2]"}, {time.Hour, "[3 3 3]"},
	} {
		plan := planOf(10, 1, 3)
		if c.budget > 0 {
			c.budget += plan.verifyEstimate(0)
		}
		plan.FitRounds(c.budget, 0, 3)
		var got []int
		for i := range plan.Tables {
			got = append(got, plan.rounds(i, 0))
		}
		if fmt.Sprint(got) != c.rounds {
			t.Errorf("budget %s: rounds %v, want %s", c.budget, got, c.rounds)
		}
		if total := plan.Estimate(0); c.budget > 14*time.Minute && total > c.budget {
			t.Errorf("budget %s: planned %s", c.budget, total)
		}
		cells := 0
		for n := range plan.Rounds {
			cells += len(plan.round(n + 1))
		}
		if cells != plan.Cells() {
			t.Errorf("budget %s: %d cells, Cells says %d", c.budget, cells, plan.Cells())
		}
	}
}

func TestCheapestTablesGetTheTimeFirst(t *testing.T) {
	plan := planOf(10, 3, 1)
	plan.FitRounds(17*time.Minute+plan.verifyEstimate(0), 0, 3)
	if got := fmt.Sprint(plan.Tables[0].Rounds, plan.Tables[1].Rounds, plan.Tables[2].Rounds); got != "[1 1] [1 1] [3 3]" {
		t.Errorf("rounds %s, want those of the last table", got)
	}
}

// What takes least is done most often: a tenth of the time is worth about three times the
// rounds, as far as there may be so many.
func TestCellsGetTheTimeWhereItIsWorthMost(t *testing.T) {
	once := map[string]time.Duration{"fast": time.Second, "slow": 10 * time.Second, "absent": 0}
	w := workload.Workload{Name: "w", Estimate: func(_ workload.Params, e engine.Info, _ time.Duration) time.Duration { return once[e.Name] }}
	plan := Plan{Rounds: 1, Tables: []Table{{Workload: w}}}
	for _, name := range []string{"fast", "slow", "absent"} {
		plan.Engines = append(plan.Engines, engine.Driver{Info: engine.Info{Name: name}})
	}
	verify := plan.verifyEstimate(0)
	for _, c := range []struct {
		seconds int
		rounds  string
	}{{21, "[1 1 1]"}, {22, "[2 2 2]"}, {23, "[3 2 2]"}, {35, "[15 2 2]"}, {44, "[14 3 2]"}, {45, "[15 3 2]"}, {66, "[15 5 2]"}} {
		plan.FitRounds(time.Duration(c.seconds)*time.Second+verify, 0, 15)
		if got := fmt.Sprint(plan.Tables[0].Rounds); got != c.rounds {
			t.Errorf("budget %d s: rounds %s, want %s", c.seconds, got, c.rounds)
		}
	}
	plan.FitRounds(66*time.Second+verify, 0, 15)
	var order []string
	for n := range plan.Rounds {
		for i, c := range plan.round(n + 1) {
			if order = append(order, c.driver.Info.Name); c.place != i+1 {
				t.Errorf("round %d: %s at place %d, want %d", n+1, c.driver.Info.Name, c.place, i+1)
			}
		}
	}
	if got, want := fmt.Sprint(order[:10]), "[fast slow absent slow absent fast fast slow slow fast]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestBudgetStopsBetweenTables(t *testing.T) {
	plan := planOf(1)
	plan.Budget, plan.Rounds = time.Minute, 2
	r := &runner{plan: &plan, took: [][]time.Duration{{20 * time.Second, 5 * time.Second}}}
	if r.outOfTime(plan.turn(0, 1), time.Hour) != "" {
		t.Error("the first round is always run")
	}
	if r.outOfTime(plan.turn(0, 2), 35*time.Second) != "" {
		t.Error("a table that fits is not run again")
	}
	if r.outOfTime(plan.turn(0, 2), 36*time.Second) == "" {
		t.Error("a table that does not fit is run again")
	}
}

func TestProgressIsRateLimitedOffTerminals(t *testing.T) {
	var plain, terminal bytes.Buffer
	w, _ := workload.Find("w1")
	d, _ := engine.Find("good")
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, workload.Scale{Sync: []bool{true}})
	for out, p := range map[*bytes.Buffer]*Progress{&plain: NewProgress(&plain, false), &terminal: NewProgress(&terminal, true)} {
		p.begin(&plan, time.Millisecond, time.Now())
		for _, c := range plan.round(1) {
			p.next(c)
			p.done(c, result.Cell{Status: result.Void, Engine: "good", Reason: "why\x1b[2J"})
		}
		p.end()
		if !strings.Contains(out.String(), "void: why?[2J") {
			t.Errorf("trouble is not shown: %q", out)
		}
	}
	if strings.Contains(plain.String(), "left") || strings.Contains(plain.String(), "\r") {
		t.Errorf("plain progress at once: %q", plain.String())
	}
	if !strings.Contains(terminal.String(), "1/1") || !strings.Contains(terminal.String(), "left") {
		t.Errorf("terminal progress: %q", terminal.String())
	}
}

// A long cell does not look like a hung harness.
func TestProgressMovesWhileACellRuns(t *testing.T) {
	var out lockedBuffer
	p := NewProgress(&out, true)
	w, _ := workload.Find("w1")
	d, _ := engine.Find("good")
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, workload.Scale{Sync: []bool{true}})
	p.begin(&plan, time.Millisecond, time.Now())
	p.next(plan.round(1)[0])
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "(1 s)") && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	p.end()
	if !strings.Contains(out.String(), "(1 s)") {
		t.Errorf("%q", out.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTailKeepsBothEnds(t *testing.T) {
	tl := &tail{limit: 20}
	for range 50 {
		tl.Write([]byte("middle "))
	}
	tl.Write([]byte("the end"))
	if s := tl.String(); !strings.HasPrefix(s, "middle") || !strings.HasSuffix(s, "the end") || len(s) > 20 {
		t.Errorf("%q", s)
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("left behind: %s", f.Name())
	}
}
