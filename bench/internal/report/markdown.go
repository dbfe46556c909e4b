package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Markdown writes a table for each workload, of the columns that are ranked or were chosen, for
// documents and messages: the medians alone, the best store's bold; then how Cairn's times grow with
// the number of keys. First of all it says where Cairn did not sync though it was asked to.
// Text says how they were measured.
func Markdown(w io.Writer, run *result.Run) error {
	w = markdown{printable{w}}
	tables := Tabulate(run)
	if list := NotSynced(tables); len(list) > 0 {
		if _, err := fmt.Fprintf(w, "%s\n\n- %s\n\n", bold(notCompared), strings.Join(list, "\n- ")); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if _, err := fmt.Fprintf(w, "%s: %s; %s\n\n%s\n\n", t.Workload.ID, t.Workload.Title, Rounds(t), markdownTable(t)); err != nil {
			return err
		}
	}
	for _, g := range Grow(tables) {
		if _, err := fmt.Fprintf(w, "How Cairn's times grow with the number of keys: %s\n\n%s\n\n", g.Name, growthTable(g).RenderMarkdown()); err != nil {
			return err
		}
	}
	return nil
}

func markdownTable(t Table) string {
	columns := slices.DeleteFunc(slices.Clone(t.Workload.Columns), func(c result.Column) bool { return !c.Ranked && !t.Workload.Chosen })
	head := []string{""}
	for _, c := range columns {
		head = append(head, c.Title)
	}
	out := newTable(head...)
	for _, row := range t.Rows {
		if row.Engine.Floor || row.Status == result.Absent {
			continue
		}
		name := row.Marked(row.Engine.Name)
		if row.Engine.Name == Subject {
			name = bold(name)
		}
		line := table.Row{name}
		for _, c := range columns {
			line = append(line, markdownCell(t, row, c))
		}
		out.AppendRow(line)
	}
	return out.RenderMarkdown()
}

func markdownCell(t Table, row Row, c result.Column) string {
	f := row.Figures[c.Key]
	switch {
	case row.Status != result.OK:
		return string(row.Status)
	case !f.Known():
		return "n/a"
	}
	text := FormatValue(f.Median, c.Unit)
	if best, _, ok := t.Best(c.Key, AnyEngine); c.Ranked && ok && best == row.Engine.Name {
		return bold(text)
	}
	return text
}

// markdown passes on what is written to it without tags of HTML, which a name may hold.
type markdown struct{ w io.Writer }

func (m markdown) Write(b []byte) (int, error) {
	if _, err := m.w.Write(bytes.ReplaceAll(b, []byte("<"), []byte("&lt;"))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func bold(text string) string { return "**" + text + "**" }
