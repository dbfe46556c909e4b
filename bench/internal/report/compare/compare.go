package compare

import (
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// Comparison is two runs beside each other. Change and Standing lists are complete:
// nothing is left out because it did not move.
type Comparison struct {
	A         Side       `json:"a"`
	B         Side       `json:"b"`
	Apart     []string   `json:"conditions_apart,omitempty"` // what was different about the runs
	Limit     float64    `json:"limit_percent"`              // Moved counts standings that moved more
	Moved     int        `json:"moved"`
	Standings []Standing `json:"standings"` // most moved first
	Changes   []Change   `json:"changes"`
	Once      []string   `json:"in_one_run_only,omitempty"` // workloads
}

// Side says which run it is.
type Side struct {
	Name    string `json:"name"`
	Started string `json:"started"`
	Rounds  int    `json:"rounds"`
}

// Standing is Cairn's figure divided by the best rival's in both runs.
type Standing struct {
	Workload string `json:"workload"`
	Column   string `json:"column"`
	Title    string `json:"title"`
	A        Place  `json:"a"`
	B        Place  `json:"b"`
	Moved    Number `json:"moved_percent"` // the greater ratio over the less, minus one; null: only one run has it
}

// Place is a ratio and the rival it is to.
type Place struct {
	Ratio Number `json:"ratio"` // null if there is none or no finite one
	Rival string `json:"rival,omitempty"`
}

// Change is one figure of one engine.
type Change struct {
	Workload    string      `json:"workload"`
	Engine      string      `json:"engine"`
	Column      string      `json:"column"`
	Title       string      `json:"title"`
	Unit        result.Unit `json:"unit"`
	A           Number      `json:"a"`     // medians; null if there is none
	B           Number      `json:"b"`     //
	Ratio       Number      `json:"ratio"` // b divided by a
	P           Number      `json:"p"`     // of no difference; null if untested
	Significant bool        `json:"significant"`
	Remark      string      `json:"remark,omitempty"`
	figures     [2]report.Figure
}

// Of compares two runs; limit is in per cent.
func Of(a, b *result.Run, limit float64) *Comparison {
	c := &Comparison{A: sideOf(a), B: sideOf(b), Limit: limit, Apart: apart(a, b)}
	second := map[string]report.Table{}
	for _, t := range report.Tabulate(b) {
		second[t.Workload.ID] = t
	}
	for _, t := range report.Tabulate(a) {
		u, both := second[t.Workload.ID]
		delete(second, t.Workload.ID)
		if !both {
			c.Once = append(c.Once, t.Workload.ID)
			continue
		}
		c.Standings = append(c.Standings, standings(t, u)...)
		c.Changes = append(c.Changes, changes(a, b, t, u)...)
	}
	for id := range second {
		c.Once = append(c.Once, id)
	}
	slices.Sort(c.Once)
	c.count()
	return c
}

func sideOf(run *result.Run) Side {
	return Side{Started: run.Started.UTC().Format("2006-01-02 15:04:05"), Rounds: run.Rounds}
}

func (c *Comparison) count() {
	for _, s := range c.Standings {
		if s.movedBeyond(c.Limit) {
			c.Moved++
		}
	}
	slices.SortStableFunc(c.Standings, func(x, y Standing) int {
		switch a, b := x.Moved.orInf(), y.Moved.orInf(); {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return strings.Compare(x.Workload, y.Workload)
	})
}

// TooManyMoved reports whether more than a tenth of the standings moved beyond the limit.
func (c *Comparison) TooManyMoved() bool { return 10*c.Moved > len(c.Standings) }

// movedBeyond allows for the last bit: 1.2/1 is a little above 1.2.
func (s Standing) movedBeyond(limit float64) bool { return s.Moved.orInf() > limit+1e-9 }

// standings are those of the ranked columns that either run has.
func standings(t, u report.Table) []Standing {
	first, second := places(t), places(u)
	var all []Standing
	for _, col := range columns(t, u) {
		a, inA := first[col.Key]
		b, inB := second[col.Key]
		if !inA && !inB {
			continue
		}
		s := Standing{Workload: t.Workload.ID, Column: col.Key, Title: col.Title, A: none, B: none, Moved: Number(math.NaN())}
		if inA {
			s.A = a
		}
		if inB {
			s.B = b
		}
		if inA && inB {
			s.Moved = moved(float64(a.Ratio), float64(b.Ratio))
		}
		all = append(all, s)
	}
	return all
}

var none = Place{Ratio: Number(math.NaN())}

func places(t report.Table) map[string]Place {
	at := map[string]Place{}
	for _, g := range t.Gaps() {
		at[g.Column.Key] = Place{Number(g.Ratio()), g.Rival}
	}
	return at
}

// moved is by how many per cent two ratios differ, whichever run came first.
func moved(a, b float64) Number {
	switch {
	case a == b:
		return 0 // both infinite too
	case a <= 0 || b <= 0:
		return Number(math.Inf(1))
	}
	return Number(100 * (max(a/b, b/a) - 1))
}

func changes(a, b *result.Run, t, u report.Table) []Change {
	var all []Change
	for _, name := range engines(t, u) {
		first, _ := t.Find(name)
		second, _ := u.Find(name)
		for _, col := range columns(t, u) {
			x, y := first.Figures[col.Key], second.Figures[col.Key]
			if !x.Known() && !y.Known() {
				continue
			}
			c := Change{Workload: t.Workload.ID, Engine: name, Column: col.Key, Title: col.Title, Unit: col.Unit, figures: [2]report.Figure{x, y}}
			c.test(samples(a, c), samples(b, c))
			all = append(all, c)
		}
	}
	return all
}

// columns are those of either table, the first's before what only the second has.
func columns(t, u report.Table) []result.Column {
	all := slices.Clone(t.Workload.Columns)
	for _, col := range u.Workload.Columns {
		if !slices.ContainsFunc(all, func(c result.Column) bool { return c.Key == col.Key }) {
			all = append(all, col)
		}
	}
	return all
}

// engines are those with a row in either table, the first's before what only the second has.
func engines(t, u report.Table) []string {
	var all []string
	for _, row := range slices.Concat(t.Rows, u.Rows) {
		if !slices.Contains(all, row.Engine.Name) {
			all = append(all, row.Engine.Name)
		}
	}
	return all
}

// test fills in the medians and what benchmath says about them.
func (c *Change) test(a, b []float64) {
	nan := Number(math.NaN())
	c.A, c.B, c.Ratio, c.P = nan, nan, nan, nan
	if c.figures[0].Known() {
		c.A = Number(c.figures[0].Median)
	}
	if c.figures[1].Known() {
		c.B = Number(c.figures[1].Median)
	}
	if !c.figures[0].Known() || !c.figures[1].Known() {
		c.Remark = "in one run only"
		return
	}
	c.Ratio = Number(1)
	if c.A != c.B {
		c.Ratio = c.B / c.A
	}
	limits := &benchmath.DefaultThresholds
	verdict := benchmath.AssumeNothing.Compare(benchmath.NewSample(a, limits), benchmath.NewSample(b, limits))
	c.P, c.Significant = Number(verdict.P), verdict.P < verdict.Alpha
	for _, w := range verdict.Warnings {
		c.Remark = w.Error()
	}
	if min(len(a), len(b)) < enough && !c.Significant && c.A != c.B {
		c.Remark = "too few rounds to tell"
	}
}

// enough rounds in both runs for the U test to find a difference at all at 5 %.
const enough = 4

func samples(run *result.Run, c Change) []float64 {
	var values []float64
	for _, cell := range run.Cells {
		if v, ok := cell.Metrics[c.Column]; ok && cell.Workload == c.Workload && cell.Engine == c.Engine && cell.Status == result.OK {
			values = append(values, v)
		}
	}
	return values
}
