package compare

import (
	"fmt"
	"io"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cairndb/cairn/bench/internal/report"
)

// Summary is the comparison in one line.
func (c *Comparison) Summary() string {
	return fmt.Sprintf("%d of %d cells moved by at most %g %% (Cairn's figure divided by the best rival's)",
		len(c.Standings)-c.Moved, len(c.Standings), c.Limit)
}

// Text writes the comparison: the summary, what was different about the runs, where
// Cairn stands in both, then every figure of every engine.
func (c *Comparison) Text(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s", c.Summary())
	p.line("  a  %s, started %s, %d rounds", c.A.Name, c.A.Started, c.A.Rounds)
	p.line("  b  %s, started %s, %d rounds", c.B.Name, c.B.Started, c.B.Rounds)
	if few := min(c.A.Rounds, c.B.Rounds); few < enough {
		p.line("  %d rounds are too few for significance: the test needs %d in both runs", few, enough)
	}
	for _, s := range c.Apart {
		p.line("  different: %s", s)
	}
	for _, id := range c.Once {
		p.line("  in one run only: %s", id)
	}
	p.line("")
	p.standings(c)
	p.changes(c)
	return p.err
}

type printer struct {
	w   io.Writer
	err error // the first of a write
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, report.Printable(fmt.Sprintf(format+"\n", args...)))
	}
}

func (p *printer) standings(c *Comparison) {
	if len(c.Standings) == 0 {
		p.line("CAIRN / BEST RIVAL: nothing in both runs to compare")
		p.line("")
		return
	}
	p.line("CAIRN / BEST RIVAL, most moved first; above 1 Cairn is behind; ! beyond %g %%", c.Limit)
	t := newTable([]string{"workload", "figure", "a", "", "b", "", "moved", ""}, 3, 5, 7)
	for _, s := range c.Standings {
		mark := ""
		if s.movedBeyond(c.Limit) {
			mark = "!"
		}
		t.AppendRow(table.Row{s.Workload, s.Title, ratio(s.A.Ratio), s.A.Rival, ratio(s.B.Ratio), s.B.Rival, movement(s.Moved), mark})
	}
	p.line("%s", t.Render())
	p.line("")
}

func (p *printer) changes(c *Comparison) {
	p.line("EVERY FIGURE: medians of a and b, b divided by a; p is that of no difference (Mann-Whitney U test)")
	significant, tested := 0, 0
	for i := 0; i < len(c.Changes); {
		id := c.Changes[i].Workload
		t := newTable([]string{"engine", "figure", "a", "b", "b/a", "p", "verdict"}, 3, 4, 5, 6)
		for ; i < len(c.Changes) && c.Changes[i].Workload == id; i++ {
			x := c.Changes[i]
			t.AppendRow(table.Row{x.Engine, x.Title, median(x, 0), median(x, 1), ratio(x.Ratio), probability(x.P), x.verdict()})
			if x.P.known() {
				tested++
			}
			if x.Significant {
				significant++
			}
		}
		p.line("%s", id)
		p.line("%s", t.Render())
	}
	p.line("%d of %d differences are significant at 5 %%; of so many, about %.0f would be by chance alone if nothing had changed and the rounds were enough",
		significant, tested, 0.05*float64(tested))
}

func (c Change) verdict() string {
	switch {
	case c.Significant && c.Ratio > 1:
		return "significant: more"
	case c.Significant:
		return "significant: less"
	case c.Remark != "":
		return c.Remark
	}
	return "no difference found"
}

func median(c Change, i int) string {
	if !c.figures[i].Known() {
		return "n/a"
	}
	return report.FormatFigure(c.figures[i], c.Unit)
}

func ratio(n Number) string {
	if !n.known() {
		return "n/a"
	}
	return report.FormatRatio(float64(n))
}

func movement(n Number) string {
	switch {
	case !n.known():
		return "in one only"
	case math.IsInf(float64(n), 0):
		return "beyond measure"
	}
	return fmt.Sprintf("%.0f%%", float64(n))
}

func probability(n Number) string {
	if !n.known() {
		return ""
	}
	return fmt.Sprintf("%.3f", float64(n))
}

func newTable(head []string, right ...int) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Format.Header = text.FormatDefault
	row := table.Row{}
	for _, h := range head {
		row = append(row, h)
	}
	t.AppendHeader(row)
	var align []table.ColumnConfig
	for _, n := range right {
		align = append(align, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(align)
	return t
}
