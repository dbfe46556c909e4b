package html

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/chart"
	"github.com/cairndb/cairn/bench/internal/result"
)

// latency is the distribution of one operation of a timed workload.
type latency struct {
	Op          string
	Curve       template.HTML
	Percentiles []string
	Rows        []latencyRow
}

// overTime is a timed workload second by second.
type overTime struct {
	Slowest template.HTML // the slowest operation of each second
	Rate    template.HTML // operations of each second
	Rows    []secondsRow
}

type latencyRow struct {
	Engine, Class string
	Cells         []string
}

// secondsRow sums a time series up.
type secondsRow struct {
	Engine, Class          string
	Round, Seconds, Stalls int
	Fewest, Most           string // operations in a second
	Slowest                string
}

func latenciesOf(run *result.Run, w result.Workload) []latency {
	var all []latency
	for _, op := range report.Operations(run, w.ID) {
		l := latency{Op: op}
		l.distribution(run, w, op)
		all = append(all, l)
	}
	return all
}

func (l *latency) distribution(run *result.Run, w result.Workload, op string) {
	curves := report.LatencyCurves(run, w.ID, op)
	if len(curves) == 0 {
		return
	}
	var lines []chart.Line
	var shown []float64
	for _, c := range curves {
		line := chart.Line{Label: c.Engine.Name, Class: classOf(c.Engine)}
		for _, p := range c.Points {
			line.Points = append(line.Points, [2]float64{p.Percentile, p.Nanos})
			if !slices.Contains(shown, p.Percentile) && common(p.Percentile) {
				shown = append(shown, p.Percentile)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(shown)
	l.Curve = template.HTML(chart.Latency("latency of "+op, lines, nanos)) //nolint:gosec // chart escapes all text
	for _, p := range shown {
		l.Percentiles = append(l.Percentiles, percentileName(p))
	}
	for _, c := range curves {
		l.Rows = append(l.Rows, latencyRow{c.Engine.Name, classOf(c.Engine), percentileCells(c, shown)})
	}
}

func percentileCells(c report.Curve, shown []float64) []string {
	var cells []string
	for _, want := range shown {
		text := "n/a"
		for _, p := range c.Points {
			if p.Percentile == want {
				text = nanos(p.Nanos)
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// common are the percentiles people ask for; a curve may have many more.
func common(p float64) bool {
	return slices.Contains([]float64{50, 90, 99, 99.9, 99.99, 99.999, 100}, p)
}

func percentileName(p float64) string {
	if p == 100 {
		return "max"
	}
	return fmt.Sprintf("p%g", p)
}

func overTimeOf(run *result.Run, w result.Workload) overTime {
	var o overTime
	var slowest, rate []chart.Strip
	for _, s := range report.WorstSeries(run, w.ID) {
		class := classOf(s.Engine)
		late, ops := chart.Strip{Label: s.Engine.Name, Class: class}, chart.Strip{Label: s.Engine.Name, Class: class}
		for _, sec := range s.Seconds {
			late.Values = append(late.Values, sec.MaxNano)
			ops.Values = append(ops.Values, float64(sec.Ops))
		}
		row := secondsRow{Engine: s.Engine.Name, Class: class, Round: s.Round, Seconds: len(s.Seconds)}
		for _, v := range ops.Values {
			if v == 0 {
				row.Stalls++
			}
		}
		row.Fewest, row.Most = fmt.Sprintf("%.0f", slices.Min(ops.Values)), fmt.Sprintf("%.0f", slices.Max(ops.Values))
		row.Slowest = nanos(slices.Max(late.Values))
		late.Text, ops.Text = "max "+row.Slowest, row.Fewest+" to "+row.Most+" /s"
		slowest, rate = append(slowest, late), append(rate, ops)
		o.Rows = append(o.Rows, row)
	}
	if len(slowest) > 0 {
		o.Slowest = template.HTML(chart.Strips("slowest operation of each second", slowest, true)) //nolint:gosec // chart escapes all text
		o.Rate = template.HTML(chart.Strips("operations of each second", rate, false))             //nolint:gosec // chart escapes all text
	}
	return o
}

func nanos(v float64) string { return value(v, result.Nanos) }
