package html

import (
	"fmt"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// matrix has a column for each engine and a row for each ranked figure, grouped by
// workload.
type matrix struct {
	Engines []engineHead
	Groups  []matrixGroup
}

type engineHead struct{ Name, Class string }

type matrixGroup struct {
	Headline, Details string
	Anchor            string
	Overall           []matrixCell
	Rows              []matrixRow
}

type matrixRow struct {
	Title  string
	Anchor string
	Cells  []matrixCell
}

type matrixCell struct {
	Text    string
	Class   string // of its background
	Best    bool
	Subject bool   // in the column of Cairn
	Title   string // the whole of it, in words
	Anchor  string
}

func matrixOf(run *result.Run, tables []report.Table, ids map[string]string) matrix {
	var m matrix
	for _, e := range run.Engines {
		m.Engines = append(m.Engines, engineHead{e.Name, classOf(e)})
	}
	for _, t := range tables {
		m.Groups = append(m.Groups, groupOf(t, run.Engines, ids[t.Workload.ID]))
	}
	return m
}

// groupOf takes the rows in the order of the engines, for a table may have its own.
func groupOf(t report.Table, engines []result.Engine, id string) matrixGroup {
	g := matrixGroup{Headline: headline(t.Workload), Details: details(t.Workload.ID), Anchor: id}
	if groups := report.Groups(t.Workload.Columns); len(groups) > 0 {
		for _, row := range inOrder(t, engines) {
			g.Overall = append(g.Overall, overallCell(t, row, groups[0], id).of(row))
		}
	}
	for _, c := range t.Workload.Columns {
		if !c.Ranked {
			continue
		}
		r := matrixRow{Title: figureName(t.Workload, c), Anchor: figureAnchor(id, c)}
		for _, row := range inOrder(t, engines) {
			r.Cells = append(r.Cells, ratioCell(t, row, c, r.Anchor).of(row))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

func (c matrixCell) of(row report.Row) matrixCell {
	c.Subject = row.Engine.Name == report.Subject
	return c
}

func inOrder(t report.Table, engines []result.Engine) []report.Row {
	var rows []report.Row
	for _, e := range engines {
		row, ok := t.Find(e.Name)
		if !ok {
			row = report.Row{Engine: e, Status: result.Absent, Reason: "not run"}
		}
		rows = append(rows, row)
	}
	return rows
}

func overallCell(t report.Table, row report.Row, columns []result.Column, anchor string) matrixCell {
	if row.Status != result.OK {
		return statusCell(row, anchor)
	}
	mean, of, all := t.Overall(row, columns)
	if of == 0 {
		return matrixCell{Text: "n/a", Class: "none", Title: row.Engine.Name + " has none of these figures", Anchor: anchor}
	}
	cell := matrixCell{Text: times(mean), Class: step(mean, row), Anchor: anchor,
		Title: fmt.Sprintf("%s, %s: geometric mean of %d ratios to the best: %s", row.Engine.Name, columns[0].Group, of, times(mean))}
	cell.mark(row)
	if of < all {
		cell.Text += "†"
		cell.Title += fmt.Sprintf("; of %d figures it lacks %d", all, all-of)
	}
	return cell
}

func ratioCell(t report.Table, row report.Row, c result.Column, anchor string) matrixCell {
	if row.Status != result.OK {
		return statusCell(row, anchor)
	}
	ratio, ok := t.ToBest(row, c)
	if !ok {
		why := row.Figures[c.Key].None
		if why == "" {
			why = "no store has a figure"
		}
		return matrixCell{Text: "n/a", Class: "none", Title: row.Engine.Name + ": " + why, Anchor: anchor}
	}
	cell := matrixCell{Text: times(ratio), Class: step(ratio, row), Best: isBest(t, row, c), Anchor: anchor,
		Title: fmt.Sprintf("%s, %s: %s, %s the best", row.Engine.Name, c.Title, figure(row.Figures[c.Key], c.Unit), times(ratio))}
	cell.mark(row)
	return cell
}

// mark says at a ratio what is to be known of its engine.
func (c *matrixCell) mark(row report.Row) {
	c.Text = row.Marked(c.Text)
	for _, why := range []string{row.Unsynced, row.Loses} {
		if why != "" {
			c.Title += "; " + why
		}
	}
}

// statusCell stands for an engine that has no figures in a workload.
func statusCell(row report.Row, anchor string) matrixCell {
	cell := matrixCell{Text: "n/a", Class: "none", Title: row.Engine.Name + ": " + row.Reason, Anchor: anchor}
	if row.Status.Bad() {
		cell.Text, cell.Class = upper(row.Status), "bad"
	}
	return cell
}

// step is the class of a ratio's background.
func step(ratio float64, row report.Row) string {
	switch {
	case row.Engine.Floor:
		return "step-floor"
	case row.Unsynced != "":
		return "none"
	}
	for i, limit := range []float64{1, 1.25, 2, 5, 20} {
		if ratio <= limit {
			return fmt.Sprintf("step%d", i)
		}
	}
	return "step5"
}
