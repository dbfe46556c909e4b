package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Text writes the whole run as text: first where Cairn is behind, then what went
// wrong, then the conditions, then a table for each workload, then how times grow with
// the number of keys where there are several, then what articles
// published beside it, then the engines.
func Text(w io.Writer, run *result.Run) error {
	p := &printer{w: printable{w}, run: run, tables: Tabulate(run)}
	p.behind()
	p.bad()
	p.conditions()
	p.durability()
	for _, t := range p.tables {
		p.table(t)
	}
	p.growth()
	p.articles()
	p.engines()
	return p.err
}

type printer struct {
	w      io.Writer
	run    *result.Run
	tables []Table
	err    error // the first of a write
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// behind comes first, whatever it says.
func (p *printer) behind() {
	p.line("WHERE CAIRN IS BEHIND")
	if list := NotSynced(p.tables); len(list) > 0 {
		p.line("  %s", notCompared)
		for _, what := range list {
			p.line("    %s", what)
		}
	}
	compared := 0
	for _, t := range p.tables {
		compared += len(t.Gaps())
	}
	gaps := Behind(p.tables)
	switch {
	case compared == 0:
		p.line("  nothing to compare: %s", WhyNotCompared(p.tables))
	case len(gaps) == 0:
		p.line("  nowhere: best in all %d figures compared", compared)
	default:
		p.line("  in %d of %d figures (ratio: cairn's figure divided by the best rival's)", len(gaps), compared)
		t := newTable("ratio", "workload", "figure", "cairn", "best rival", "", "doubt")
		for _, g := range gaps {
			t.AppendRow(table.Row{FormatRatio(g.Ratio()), g.Workload.ID, g.Column.Title,
				FormatFigure(g.Cairn, g.Column.Unit), FormatFigure(g.Best, g.Column.Unit), g.Marked(), g.Doubt()})
		}
		p.line("%s", t.Render())
	}
	if slices.ContainsFunc(gaps, func(g Gap) bool { return g.Losing }) {
		p.line("  %s with sync off this rival loses acknowledged commits when its process is killed; Cairn does not", Losing)
	}
	p.line("")
}

// WhyNotCompared says why there is no figure of Cairn beside one of a rival.
func WhyNotCompared(tables []Table) string {
	for _, t := range tables {
		row, _ := t.Find(Subject)
		switch {
		case row.Reason != "":
			return "cairn " + row.Reason
		case row.Unsynced != "":
			return "cairn was asked to sync and did not, in " + t.Workload.ID
		}
	}
	return "cairn was not run beside a rival"
}

func (p *printer) bad() {
	cells := p.run.Bad()
	if len(cells) == 0 {
		return
	}
	p.line("CELLS THAT DO NOT COUNT")
	for _, c := range cells {
		p.line("  %s %s round %d: %s: %s", c.Engine, c.Workload, c.Round, strings.ToUpper(string(c.Status)), c.Reason)
	}
	p.line("")
}

func (p *printer) conditions() {
	m, d := p.run.Machine, p.run.Data
	p.line("CONDITIONS")
	p.line("  machine    %s/%s %s, %s, %d cores for Go, memory %s, load when it began %s", m.OS, m.Arch, m.Kernel, m.CPU, m.Cores,
		FormatValue(float64(m.MemoryBytes), result.Bytes), orUnknown(m.Load))
	p.line("  go         %s %s", m.Go, strings.Join(m.Environment, " "))
	p.line("  disk       %s, read-ahead %s; a 4 KiB write with fsync takes %s (median of 15)", orUnknown(m.Filesystem), orUnknown(m.ReadAhead), FormatValue(float64(m.SyncDelay), result.Nanos))
	if m.Volatile {
		p.line("             THIS FILE SYSTEM IS MEMORY: syncs cost nothing here; use -dir for a real disk")
	}
	p.line("  data       seed %d; %s; snappy %.2fx in 4 KiB blocks, %.2fx in 32 KiB blocks", d.Seed, DataText(d), d.Snappy4K, d.Snappy32K)
	p.line("  rounds     %s of a workload, in %d turns, interleaved, starting engine rotated, one process per cell, dirty pages %swritten back between cells", Rounds(p.tables...), p.run.Rounds, not(p.run.Settled))
	if p.run.Stopped != "" {
		p.line("             only %s", p.run.Stopped)
	}
	p.line("  took       %s", Took(p.run))
	if weather := Weather(p.run); weather != "" {
		p.line("  weather    %s", weather)
	}
	p.line("  figures    medians; +-n%% a 95 %% confidence interval (6 rounds or more), ~n%% the range of the rounds; * the best; less is better; less than 0.01 allocs or 1 B per operation is as good as none, and counts as so much in ratios")
	p.line("  memory     peak RSS is of the whole process, of which %s are this program, its data and keys before the engine is opened; CPU counts from then", BeforeOpening(p.run))
	p.line("")
}

// DataText says what the values are made of: the laboratory's text, or the user's
// records, with what was left out of them.
func DataText(d result.Data) string {
	if d.Records == 0 {
		return fmt.Sprintf("windows into %d MiB of JSON-lines log text", d.PoolBytes>>20)
	}
	text := fmt.Sprintf("%d records of %s, %s together", d.Records, d.File, FormatValue(float64(d.PoolBytes), result.Bytes))
	if d.Skipped > 0 {
		text += fmt.Sprintf(", %d malformed ones left out", d.Skipped)
	}
	if d.KeyField != "" {
		text += ", keys from field " + d.KeyField
	}
	return text
}

// BeforeOpening is the greatest resident size any cell had before its engine was opened.
func BeforeOpening(run *result.Run) string {
	most := 0.0
	for _, c := range run.Cells {
		most = max(most, c.Metrics[result.RSSBefore])
	}
	if most == 0 {
		return "an unknown part"
	}
	return "up to " + FormatValue(most, result.Bytes)
}

func not(yes bool) string {
	if yes {
		return ""
	}
	return "not "
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func newTable(head ...string) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	row := table.Row{}
	for _, h := range head {
		row = append(row, h)
	}
	t.AppendHeader(row)
	return t
}

// table prints a workload: one table per group of columns, then the footnotes.
func (p *printer) table(t Table) {
	w := t.Workload
	p.line("%s", w.ID)
	p.line("  %s; %s", w.Title, Rounds(t))
	for _, c := range w.Conditions {
		p.line("  - %s", c)
	}
	if each := EachRounds(t); each != "" {
		p.line("  - %s", each)
	}
	p.line("  - data set %s%s; values compress %.2fx by snappy", FormatValue(float64(w.DataBytes), result.Bytes), p.ofMemory(w.DataBytes), w.Snappy)
	notes := &footnotes{}
	for _, group := range Groups(w.Columns) {
		p.line("%s", render(t, group, notes))
	}
	for i, note := range notes.list {
		p.line("  [%d] %s", i+1, note)
	}
	p.line("")
}

func (p *printer) ofMemory(size int64) string {
	if p.run.Machine.MemoryBytes == 0 {
		return ""
	}
	share := 100 * float64(size) / float64(p.run.Machine.MemoryBytes)
	if share > 20 {
		return fmt.Sprintf(" = %.0f %% of memory: the page cache may not hold it", share)
	}
	return fmt.Sprintf(" = %.2g %% of memory: the page cache holds all of it", share)
}

// Groups splits the columns by their group, in order of appearance.
func Groups(columns []result.Column) [][]result.Column {
	var split [][]result.Column
	at := map[string]int{}
	for _, c := range columns {
		i, known := at[c.Group]
		if !known {
			i = len(split)
			at[c.Group] = i
			split = append(split, nil)
		}
		split[i] = append(split[i], c)
	}
	return split
}

// growth prints how Cairn's times grow with the number of keys.
func (p *printer) growth() {
	for _, g := range Grow(p.tables) {
		p.line("HOW CAIRN'S TIMES GROW WITH THE NUMBER OF KEYS: %s", g.Name)
		p.line("%s", growthTable(g).Render())
		p.line("")
	}
}

// growthTable has a row for each time of Cairn, and a column for each number of keys.
func growthTable(g Growth) table.Writer {
	head := []string{"figure"}
	for _, n := range g.Counts {
		head = append(head, fmt.Sprintf("n=%d", n))
	}
	out := newTable(append(head, "as")...)
	for _, time := range g.Times {
		for _, l := range time.Lines {
			if l.Engine.Name == Subject {
				out.AppendRow(growthRow(time.Column, l, g.Counts))
			}
		}
	}
	return out
}

func growthRow(c result.Column, l GrowthLine, counts []int) table.Row {
	row := table.Row{c.Title}
	for _, f := range l.Figures {
		if f.Known() {
			row = append(row, FormatFigure(f, c.Unit))
		} else {
			row = append(row, "n/a")
		}
	}
	return append(row, FormatExponent(l, counts))
}

// footnotes numbers remarks, each once.
type footnotes struct{ list []string }

func (f *footnotes) mark(note string) string {
	for i, have := range f.list {
		if have == note {
			return fmt.Sprintf("[%d]", i+1)
		}
	}
	f.list = append(f.list, note)
	return fmt.Sprintf("[%d]", len(f.list))
}

func render(t Table, columns []result.Column, notes *footnotes) string {
	head := []string{"engine"}
	var align []table.ColumnConfig
	for i, c := range columns {
		head = append(head, c.Title)
		align = append(align, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	out := newTable(head...)
	out.SetColumnConfigs(align)
	for _, row := range t.Rows {
		line := table.Row{rowName(row, notes)}
		for _, c := range columns {
			line = append(line, cellText(t, row, c, notes))
		}
		out.AppendRow(line)
	}
	if ratios, any := ratioRow(t, columns); any {
		out.AppendFooter(ratios)
	}
	return out.Render()
}

func rowName(row Row, notes *footnotes) string {
	name := row.Marked(row.Engine.Name)
	if row.Unsynced != "" {
		name += " " + notes.mark(row.Engine.Name+": "+row.Unsynced+"; ranked last, its figures compare with nobody's")
	}
	if row.Loses != "" {
		name += " " + notes.mark(row.Engine.Name+": "+row.Loses)
	}
	for _, n := range row.Notes {
		name += " " + notes.mark(n)
	}
	return name
}

func cellText(t Table, row Row, c result.Column, notes *footnotes) string {
	switch row.Status {
	case result.OK:
	case result.Absent:
		return "n/a " + notes.mark(row.Engine.Name+": "+row.Reason)
	default:
		return strings.ToUpper(string(row.Status)) + " " + notes.mark(row.Engine.Name+": "+row.Reason)
	}
	f := row.Figures[c.Key]
	if !f.Known() {
		return "n/a " + notes.mark(row.Engine.Name+": "+f.None)
	}
	value := FormatFigure(f, c.Unit)
	if _, best, ok := t.Best(c.Key, AnyEngine); c.Ranked && ok && best.Median == f.Median && !row.Engine.Floor && row.Unsynced == "" {
		return "* " + value
	}
	return value
}

// ratioRow compares cairn with the best rival of each column.
func ratioRow(t Table, columns []result.Column) (row table.Row, any bool) {
	row = table.Row{"cairn / best rival"}
	gaps := map[string]Gap{}
	for _, g := range t.Gaps() {
		gaps[g.Column.Key] = g
	}
	for _, c := range columns {
		g, ok := gaps[c.Key]
		if !ok {
			row = append(row, "")
			continue
		}
		any = true
		row = append(row, FormatRatio(g.Ratio())+" "+g.Marked())
	}
	return row, any
}

func (p *printer) engines() {
	p.line("ENGINES: defaults, except for what stands below")
	for _, e := range p.run.Engines {
		p.line("  %-10s %s %s (%s)", e.Name, e.Module, e.Version, e.Title)
		if e.Absent != "" {
			p.line("             %s", e.Absent)
		}
		for _, s := range e.Settings {
			when := ""
			if s.When != "" {
				when = s.When + ": "
			}
			p.line("             %s%s (%s)", when, s.Option, s.Reason)
		}
	}
}
