package report

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// articles prints the articles the run repeats, figures of engines it has not left
// out.
func (p *printer) articles() {
	all, err := Articles(p.tables)
	if err != nil {
		p.err = err
		return
	}
	for _, a := range all {
		if !a.Measured {
			continue
		}
		p.line("PUBLISHED FIGURES of %s (%s) beside those measured", a.Name, a.Source)
		p.line("  another machine, versions (of engine, Go and program) and disk: compare the order of the engines and how far they are apart, not the figures")
		for _, s := range a.Sets {
			p.besideSet(s)
		}
		p.reasons(a)
		p.line("")
	}
}

func (p *printer) besideSet(s BesideSet) {
	p.line("  %s", s.Title)
	if s.Other != "" {
		p.line("  %s", s.Other)
	}
	head := []string{"engine", "figure", "published"}
	for _, t := range s.Tables {
		_, rest, _ := strings.Cut(t.Workload.ID, "/")
		head = append(head, rest, "ratio")
	}
	out := newTable(append(head, "why")...)
	left := 0
	for _, row := range s.Rows {
		if !row.shown() {
			left++
			continue
		}
		out.AppendRow(row.text())
	}
	if left < len(s.Rows) {
		p.line("%s", out.Render())
	}
	if left > 0 {
		p.line("  %d of %d figures have no counterpart in this run", left, len(s.Rows))
	}
}

// shown: there is a figure beside it, or what failed then can be looked up.
func (r BesideRow) shown() bool {
	for _, c := range r.Measured {
		if c.Known() || r.Failed != "" {
			return true
		}
	}
	return false
}

func (r BesideRow) text() table.Row {
	line := table.Row{r.Engine, r.Title, r.Failed}
	if r.Failed == "" {
		line[2] = FormatValue(r.Value, r.Unit)
	}
	for _, c := range r.Measured {
		switch {
		case !c.Known():
			line = append(line, "n/a: "+c.None, "")
		case c.OtherN:
			line = append(line, FormatValue(c.Median, r.Unit), "other n")
		default:
			line = append(line, FormatValue(c.Median, r.Unit), FormatRatio(c.Ratio))
		}
	}
	return append(line, r.Why)
}

// reasons prints what concerns the figures, by the letters of the tables.
func (p *printer) reasons(a Beside) {
	for _, r := range a.General {
		p.line("  general: %s", r.Text)
		p.line("           (%s)", r.RestsOn())
	}
	for _, r := range a.Special {
		p.line("  %s: %s", r.Letter, r.Text)
		p.line("     (%s)", r.RestsOn())
	}
}
