package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Subject is the engine the report is about.
const Subject = "cairn"

// Figure is one metric over all rounds.
type Figure struct {
	Median    float64
	Low, High float64
	Rounds    int
	Interval  bool    // Low and High are a 95 % confidence interval, else the range of the rounds
	squares   float64 // sum of the squared distances of the rounds' logarithms from their mean
	None      string  // why there is no figure; empty if there is one
}

// Known reports whether there is a figure.
func (f Figure) Known() bool { return f.None == "" && f.Rounds > 0 }

// Row is one engine of a table.
type Row struct {
	Engine  result.Engine
	Figures map[string]Figure // by column key
	Status  result.Status     // the worst of all rounds
	Reason  string            // of the first round of that status
	Notes   []string
	Rounds  int // in which it ran, whatever came of it

	Unsynced string // it was asked for durable commits and did not sync: marked, never best, last
	Loses    string // its sync off is weaker than the others': marked, and no rival where the time of commits or the size of an open store counts
}

// Marked is a name with the marks of its row.
func (r Row) Marked(name string) string {
	switch {
	case r.Unsynced != "":
		return "! " + name
	case r.Loses != "":
		return Losing + " " + name
	}
	return name
}

// Losing marks an engine that, with sync off, loses acknowledged commits when its
// process is killed.
const Losing = "‡"

// losesAtKill says what the mark means; empty if the engine does not deserve it.
func losesAtKill(w result.Workload, e result.Engine) string {
	if w.Sync || e.LosesAtKill == "" || w.Batches && e.KeepsBatches {
		return ""
	}
	return "with sync off it loses acknowledged commits when its process is killed: " + e.LosesAtKill
}

// Table is one workload.
type Table struct {
	Workload result.Workload
	Rows     []Row
}

// Tabulate sums the rounds up.
func Tabulate(run *result.Run) []Table {
	var tables []Table
	for _, w := range run.Workloads {
		t := Table{Workload: w}
		for _, e := range run.Engines {
			t.Rows = append(t.Rows, makeRow(w, e, cellsOf(run, w.ID, e.Name)))
		}
		slices.SortStableFunc(t.Rows, unsyncedLast)
		tables = append(tables, t)
	}
	return tables
}

func cellsOf(run *result.Run, workload, engine string) []result.Cell {
	var cells []result.Cell
	for _, c := range run.Cells {
		if c.Workload == workload && c.Engine == engine {
			cells = append(cells, c)
		}
	}
	return cells
}

func makeRow(w result.Workload, e result.Engine, cells []result.Cell) Row {
	row := Row{Engine: e, Figures: map[string]Figure{}, Status: result.OK, Loses: losesAtKill(w, e)}
	if len(cells) == 0 {
		row.Status, row.Reason = result.Absent, "not run"
	}
	for _, c := range cells {
		if c.Status != result.Absent {
			row.Rounds++
		}
		if c.Status.Worse(row.Status) {
			row.Status, row.Reason = c.Status, fmt.Sprintf("round %d: %s", c.Round, c.Reason)
			if c.Status == result.Absent {
				row.Reason = c.Reason
			}
		}
		if c.Durability != nil && c.Durability.Fault != "" {
			row.Unsynced = c.Durability.Fault
		}
		for _, note := range c.Notes {
			if !slices.Contains(row.Notes, note) {
				row.Notes = append(row.Notes, note)
			}
		}
	}
	if row.Status == result.OK {
		for _, col := range w.Columns {
			row.Figures[col.Key] = makeFigure(col.Key, cells)
		}
	}
	return row
}

func makeFigure(key string, cells []result.Cell) Figure {
	var values []float64
	for _, c := range cells {
		if why, no := c.NA[key]; no {
			return Figure{None: why}
		}
		if v, ok := c.Metrics[key]; ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return Figure{None: "not measured"}
	}
	return Summarise(values)
}

// Summarise takes the median of values and its interval: benchmath gives no interval for fewer than six values, then the
// range of the values stands in.
func Summarise(values []float64) Figure {
	s := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	sum := benchmath.AssumeNothing.Summary(s, 0.95)
	f := Figure{Median: sum.Center, Low: sum.Lo, High: sum.Hi, Rounds: len(values), Interval: true, squares: logSquares(values)}
	if math.IsInf(sum.Lo, 0) || math.IsInf(sum.Hi, 0) || math.IsNaN(sum.Lo) {
		f.Low, f.High, f.Interval = s.Values[0], s.Values[len(s.Values)-1], false
	}
	return f
}

// Spread is the greater distance of an end from the median, relative to it.
func (f Figure) Spread() float64 {
	if f.Median == 0 {
		return 0
	}
	return max(f.High/f.Median-1, 1-f.Low/f.Median)
}

// Find returns the row of an engine.
func (t Table) Find(engine string) (Row, bool) {
	for _, r := range t.Rows {
		if r.Engine.Name == engine {
			return r, true
		}
	}
	return Row{}, false
}

// Rounds says how many rounds tables have, as in "2 to 3 rounds": what takes long gets
// fewer, and the last round of a run that was stopped has some engines only.
func Rounds(tables ...Table) string {
	switch least, most := roundsRange(tables...); {
	case most == 0:
		return "no round"
	case most == 1:
		return "1 round"
	case least == most:
		return fmt.Sprintf("%d rounds", most)
	default:
		return fmt.Sprintf("%d to %d rounds", least, most)
	}
}

// roundsRange is over the rows that ran.
func roundsRange(tables ...Table) (least, most int) {
	for _, t := range tables {
		for _, r := range t.Rows {
			if r.Rounds > 0 && (least == 0 || r.Rounds < least) {
				least = r.Rounds
			}
			most = max(most, r.Rounds)
		}
	}
	return least, most
}

// EachRounds says how many rounds each engine of a table had; empty if all had the same.
func EachRounds(t Table) string {
	if least, most := roundsRange(t); least == most {
		return ""
	}
	var each []string
	for _, r := range t.Rows {
		if r.Rounds > 0 {
			each = append(each, fmt.Sprintf("%s %d", r.Engine.Name, r.Rounds))
		}
	}
	return "rounds, where they steady the ratios of " + Subject + " to the best rivals most for the time they take: " + strings.Join(each, ", ")
}

// Best returns the least figure of a column among the stores that take keeps.
func (t Table) Best(column string, take func(Row) bool) (engine string, f Figure, ok bool) {
	for _, r := range t.Rows {
		have := r.Figures[column]
		if !have.Known() || r.Engine.Floor || r.Unsynced != "" || !take(r) {
			continue
		}
		if !ok || have.Median < f.Median {
			engine, f, ok = r.Engine.Name, have, true
		}
	}
	return engine, f, ok
}

// AnyEngine is for Best: every store counts.
func AnyEngine(Row) bool { return true }

// rivalIn returns, for Best, which stores Cairn is compared with in a column. Commits
// that a process kill can take back are not the same work, and what is in no file yet
// has no size: the rows of engines that lose some are shown, but are no bar for the
// commits of one that loses none, nor for the sizes of its open store.
func rivalIn(c result.Column) func(Row) bool {
	return func(r Row) bool { return r.Engine.Name != Subject && (r.Loses == "" || !c.Writes && !c.Open) }
}

// Gap is a figure of Cairn beside the best rival's.
type Gap struct {
	Workload result.Workload
	Column   result.Column
	Cairn    Figure
	Rival    string
	Best     Figure
	Losing   bool // the rival is one that loses acknowledged commits at a kill
}

// Marked is the rival's name with its mark.
func (g Gap) Marked() string {
	if g.Losing {
		return Losing + " " + g.Rival
	}
	return g.Rival
}

// Ratio is Cairn's figure divided by the rival's: above 1 Cairn is behind.
func (g Gap) Ratio() float64 {
	return g.Column.Unit.Ratio(g.Cairn.Median, g.Best.Median)
}

// Doubt says why the difference may be none; empty if it looks real.
func (g Gap) Doubt() string {
	switch {
	case g.Cairn.Rounds < 2 || g.Best.Rounds < 2:
		return "one round"
	case g.Cairn.Low <= g.Best.High && g.Best.Low <= g.Cairn.High:
		return "intervals overlap"
	}
	return ""
}

// Gaps compares Cairn with the best rival in every ranked column of a table.
func (t Table) Gaps() []Gap {
	row, ok := t.Find(Subject)
	if !ok || row.Unsynced != "" {
		return nil
	}
	var gaps []Gap
	for _, col := range t.Workload.Columns {
		have := row.Figures[col.Key]
		name, best, ok := t.Best(col.Key, rivalIn(col))
		if col.Ranked && ok && have.Known() {
			rival, _ := t.Find(name)
			gaps = append(gaps, Gap{t.Workload, col, have, name, best, rival.Loses != ""})
		}
	}
	return gaps
}

// Behind lists where Cairn is not the best, worst first.
func Behind(tables []Table) []Gap {
	var behind []Gap
	for _, t := range tables {
		for _, g := range t.Gaps() {
			if g.Ratio() > 1 {
				behind = append(behind, g)
			}
		}
	}
	slices.SortStableFunc(behind, func(a, b Gap) int {
		switch ra, rb := a.Ratio(), b.Ratio(); {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return strings.Compare(a.Workload.ID, b.Workload.ID)
	})
	return behind
}
