package html

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/chart"
	"github.com/cairndb/cairn/bench/internal/result"
)

// section is one workload.
type section struct {
	Anchor, Headline, Details string
	Title, ID                 string
	Rounds                    string // as in "2 rounds"
	Conditions                []string
	Bad                       []string
	Groups                    []columnGroup
	Latencies                 []latency
	Time                      overTime
	Notes                     []string
}

// columnGroup is one table and a chart for each of its columns.
type columnGroup struct {
	Title   string
	Columns []columnHead
	Rows    []figureRow
	Ratios  []string // of Cairn to the best rival; empty if there is none
	Charts  []chartView
}

type columnHead struct{ Title, Anchor string }

type figureRow struct {
	Engine, Class string
	Notes         []int
	Cells         []figureCell
}

type figureCell struct {
	Text  string
	Best  bool
	Class string
	Note  int    // 0: none
	Title string // the reason itself
}

type chartView struct {
	Anchor, Title string
	SVG           template.HTML
}

func sectionsOf(run *result.Run, tables []report.Table, ids map[string]string) []section {
	var all []section
	for _, t := range tables {
		all = append(all, sectionOf(run, t, ids[t.Workload.ID]))
	}
	return all
}

func sectionOf(run *result.Run, t report.Table, id string) section {
	w := t.Workload
	s := section{Anchor: id, Headline: headline(w), Details: details(w.ID), Title: w.Title, ID: w.ID, Rounds: report.Rounds(t)}
	s.Conditions = append(s.Conditions, w.Conditions...)
	if each := report.EachRounds(t); each != "" {
		s.Conditions = append(s.Conditions, each)
	}
	s.Conditions = append(s.Conditions, dataCondition(run, w))
	for _, row := range t.Rows {
		if row.Status.Bad() {
			s.Bad = append(s.Bad, row.Engine.Name+": "+upper(row.Status)+", "+row.Reason)
		}
	}
	for _, columns := range report.Groups(w.Columns) {
		s.Groups = append(s.Groups, columnGroupOf(t, columns, id, &s.Notes))
	}
	s.Latencies, s.Time = latenciesOf(run, w), overTimeOf(run, w)
	return s
}

func dataCondition(run *result.Run, w result.Workload) string {
	text := "data set " + value(float64(w.DataBytes), result.Bytes)
	if memory := run.Machine.MemoryBytes; memory > 0 {
		text += fmt.Sprintf(", %.2g %% of memory", 100*float64(w.DataBytes)/float64(memory))
	}
	if w.Snappy > 0 {
		text += fmt.Sprintf("; values compress %.2f× by snappy", w.Snappy)
	}
	return text
}

func columnGroupOf(t report.Table, columns []result.Column, id string, notes *[]string) columnGroup {
	g := columnGroup{Title: columns[0].Group}
	for _, c := range columns {
		g.Columns = append(g.Columns, columnHead{c.Title, figureAnchor(id, c)})
		g.Charts = append(g.Charts, chartView{figureAnchor(id, c), c.Title, barsOf(t, c)})
	}
	for _, row := range t.Rows {
		r := figureRow{Engine: row.Marked(row.Engine.Name), Class: classOf(row.Engine)}
		if row.Loses != "" {
			r.Notes = append(r.Notes, note(notes, row.Engine.Name+": "+row.Loses))
		}
		if row.Unsynced != "" {
			r.Notes = append(r.Notes, note(notes, row.Engine.Name+": "+row.Unsynced+"; its figures compare with nobody's"))
		}
		for _, n := range row.Notes {
			r.Notes = append(r.Notes, note(notes, row.Engine.Name+": "+n))
		}
		for _, c := range columns {
			r.Cells = append(r.Cells, figureCellOf(t, row, c, notes))
		}
		g.Rows = append(g.Rows, r)
	}
	g.Ratios = ratiosOf(t, columns)
	return g
}

// note numbers a remark, each once, from 1.
func note(notes *[]string, text string) int {
	for i, have := range *notes {
		if have == text {
			return i + 1
		}
	}
	*notes = append(*notes, text)
	return len(*notes)
}

func figureCellOf(t report.Table, row report.Row, c result.Column, notes *[]string) figureCell {
	if why, class := missing(row, c); why != "" {
		word := "n/a"
		if class == "bad" {
			word = upper(row.Status)
		}
		return figureCell{Text: word, Class: class, Title: why, Note: note(notes, row.Engine.Name+": "+why)}
	}
	return figureCell{Text: figure(row.Figures[c.Key], c.Unit), Best: isBest(t, row, c)}
}

// missing says why a row has no figure in a column; empty if it has one.
func missing(row report.Row, c result.Column) (why, class string) {
	switch f := row.Figures[c.Key]; {
	case row.Status.Bad():
		return row.Reason, "bad"
	case row.Status != result.OK:
		return row.Reason, "none"
	case f.None != "":
		return f.None, "none"
	case !f.Known():
		return "not measured", "none"
	}
	return "", ""
}

func isBest(t report.Table, row report.Row, c result.Column) bool {
	ratio, ok := t.ToBest(row, c)
	return ok && ratio == 1 && !row.Engine.Floor && row.Unsynced == ""
}

func ratiosOf(t report.Table, columns []result.Column) []string {
	texts, any := make([]string, len(columns)), false
	for _, g := range t.Gaps() {
		for i, c := range columns {
			if c.Key == g.Column.Key {
				texts[i], any = times(g.Ratio())+" "+g.Marked(), true
			}
		}
	}
	if !any {
		return nil
	}
	return texts
}

func barsOf(t report.Table, c result.Column) template.HTML {
	var bars []chart.Bar
	for _, row := range t.Rows {
		b := chart.Bar{Label: row.Marked(row.Engine.Name), Class: classOf(row.Engine), Best: isBest(t, row, c)}
		if row.Unsynced != "" {
			b.Class = "floor"
		}
		if why, class := missing(row, c); why != "" {
			b.None = "n/a"
			if class == "bad" {
				b.None, b.Class = upper(row.Status), "bad"
			}
		} else {
			f := row.Figures[c.Key]
			b.Value, b.Low, b.High, b.Text = f.Median, f.Low, f.High, value(f.Median, c.Unit)
		}
		bars = append(bars, b)
	}
	return template.HTML(chart.Bars(c.Title, bars)) //nolint:gosec // chart escapes all text
}

func upper(s result.Status) string { return strings.ToUpper(string(s)) }

// Number is the number of the note at an index.
func (section) Number(index int) int { return index + 1 }
