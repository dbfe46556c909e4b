package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Growth is a workload that was measured with several numbers of keys, all else the same.
type Growth struct {
	Name     string          // the workload's ID without the number of keys
	Workload result.Workload // with the fewest
	Counts   []int           // ascending
	Times    []GrowingTime
}

// GrowingTime is a ranked time of it.
type GrowingTime struct {
	Column result.Column
	Lines  []GrowthLine
}

// GrowthLine is an engine's figures, one for each count; those that are not Known say why.
type GrowthLine struct {
	Engine  result.Engine
	Figures []Figure
}

// Exponent says how a time grows with the number of keys, from the fewest for which it is
// known to the most: as n to this power. One that does not depend on n has 0, one that
// is proportional to it 1. ok is false if it is known for fewer than two.
func (l GrowthLine) Exponent(counts []int) (exponent float64, ok bool) {
	first, last := -1, -1
	for i, f := range l.Figures {
		if !f.Known() || f.Median <= 0 {
			continue
		}
		if last = i; first < 0 {
			first = i
		}
	}
	if first == last {
		return 0, false
	}
	return math.Log(l.Figures[last].Median/l.Figures[first].Median) / math.Log(float64(counts[last])/float64(counts[first])), true
}

// FormatExponent writes how a time grows.
func FormatExponent(l GrowthLine, counts []int) string {
	e, ok := l.Exponent(counts)
	if !ok {
		return "n/a"
	}
	return strings.Replace(fmt.Sprintf("n^%.2f", e), "-0.00", "0.00", 1)
}

// Grow finds the workloads that tables have with several numbers of keys.
func Grow(tables []Table) []Growth {
	var all []Growth
	at := map[string]int{}
	alike := [][]Table{}
	for _, t := range tables {
		name := strings.Replace(t.Workload.ID, fmt.Sprintf("/n=%d/", t.Workload.N), "/", 1)
		i, known := at[name]
		if !known {
			i = len(all)
			at[name], all, alike = i, append(all, Growth{Name: name}), append(alike, nil)
		}
		alike[i] = append(alike[i], t)
	}
	for i := range all {
		all[i].fill(alike[i])
	}
	return slices.DeleteFunc(all, func(g Growth) bool { return len(g.Counts) < 2 })
}

// fill takes the figures of tables that only the number of keys tells apart; of several
// with the same number, the first's.
func (g *Growth) fill(tables []Table) {
	slices.SortStableFunc(tables, func(a, b Table) int { return cmp.Compare(a.Workload.N, b.Workload.N) })
	tables = slices.CompactFunc(tables, func(a, b Table) bool { return a.Workload.N == b.Workload.N })
	g.Workload = tables[0].Workload
	for _, t := range tables {
		g.Counts = append(g.Counts, t.Workload.N)
	}
	for _, c := range g.Workload.Columns {
		if !c.Ranked || c.Unit != result.NanosPerOp && c.Unit != result.Nanos || c.Key == result.CPU {
			continue
		}
		time := GrowingTime{Column: c}
		for _, row := range tables[0].Rows {
			line := GrowthLine{Engine: row.Engine}
			for _, t := range tables {
				line.Figures = append(line.Figures, t.figureOf(row.Engine.Name, c))
			}
			time.Lines = append(time.Lines, line)
		}
		g.Times = append(g.Times, time)
	}
}

// figureOf returns an engine's figure, or one that says why there is none.
func (t Table) figureOf(engine string, c result.Column) Figure {
	row, ok := t.Find(engine)
	switch {
	case !ok:
		return Figure{None: "not run"}
	case row.Status != result.OK:
		return Figure{None: row.Reason}
	}
	return row.Figures[c.Key]
}
