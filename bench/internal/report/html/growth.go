package html

import (
	"html/template"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/chart"
)

// growth is a workload that was measured with several numbers of keys.
type growth struct {
	Headline, Details string
	Counts            []string
	Times             []growingTime
}

// growingTime is a chart of a time, and a table of the same figures.
type growingTime struct {
	Title string
	Curve template.HTML
	Rows  []growthRow
}

type growthRow struct {
	Engine, Class string
	Cells         []figureCell
	As            string // how the time grows
}

func growthOf(tables []report.Table) []growth {
	var all []growth
	for _, g := range report.Grow(tables) {
		view := growth{Headline: headline(g.Workload), Details: details(g.Name)}
		for _, n := range g.Counts {
			view.Counts = append(view.Counts, chart.Count(n))
		}
		for _, time := range g.Times {
			view.Times = append(view.Times, growingTimeOf(g, time))
		}
		all = append(all, view)
	}
	return all
}

func growingTimeOf(g report.Growth, time report.GrowingTime) growingTime {
	view := growingTime{Title: figureName(g.Workload, time.Column)}
	var lines []chart.Line
	for _, l := range time.Lines {
		line := chart.Line{Label: l.Engine.Name, Class: classOf(l.Engine)}
		row := growthRow{Engine: l.Engine.Name, Class: line.Class, As: report.FormatExponent(l, g.Counts)}
		for i, f := range l.Figures {
			if !f.Known() {
				row.Cells = append(row.Cells, figureCell{Text: "n/a", Class: "none", Title: f.None})
				continue
			}
			line.Points = append(line.Points, [2]float64{float64(g.Counts[i]), f.Median})
			row.Cells = append(row.Cells, figureCell{Text: figure(f, time.Column.Unit)})
		}
		lines, view.Rows = append(lines, line), append(view.Rows, row)
	}
	view.Curve = template.HTML(chart.Growth(view.Title+" by number of keys", lines, g.Counts, nanos)) //nolint:gosec // chart escapes all text
	return view
}
