package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/cairndb/cairn/bench/internal/result"
)

// unsyncedLast orders rows that are otherwise in the order of the engines.
func unsyncedLast(a, b Row) int {
	return cmp.Compare(min(1, len(a.Unsynced)), min(1, len(b.Unsynced)))
}

// durability shows what counting the system calls gave, an engine and mode a line.
func (p *printer) durability() {
	if len(p.run.Durability) == 0 {
		return
	}
	p.line("DURABILITY, by counting the system calls of a separate run (acknowledged commits / of these synced before / sync calls)")
	kinds := kindsOf(p.run.Durability)
	t := newTable(append(append([]string{"engine", "asked"}, kinds...), "calls of the run")...)
	notes := &footnotes{}
	for _, mode := range []bool{true, false} {
		for _, e := range p.run.Engines {
			if row := durabilityRow(p.run.Durability, e.Name, mode, kinds, notes); row != nil {
				t.AppendRow(row)
			}
		}
	}
	p.line("%s", t.Render())
	for i, note := range notes.list {
		p.line("  [%d] %s", i+1, note)
	}
	p.line("")
}

func kindsOf(all []result.Durability) []string {
	var kinds []string
	for _, d := range all {
		if !slices.Contains(kinds, d.Kind) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

func durabilityRow(all []result.Durability, engine string, sync bool, kinds []string, notes *footnotes) table.Row {
	asked := "sync off"
	if sync {
		asked = "sync on"
	}
	row, found, calls := table.Row{engine, asked}, false, ""
	for _, kind := range kinds {
		text := "n/a"
		for _, d := range all {
			if d.Engine == engine && d.Sync == sync && d.Kind == kind {
				text, found, calls = durabilityText(d, notes), true, callsText(d.Calls)
			}
		}
		row = append(row, text)
	}
	if !found {
		return nil
	}
	return append(row, calls)
}

func callsText(calls map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		all = append(all, fmt.Sprintf("%s %d", name, calls[name]))
	}
	return strings.Join(all, ", ")
}

func durabilityText(d result.Durability, notes *footnotes) string {
	if d.Class == result.NotCounted {
		return string(d.Class) + " " + notes.mark(d.Engine+": "+d.Why)
	}
	text := fmt.Sprintf("%s (%d/%d/%d)", d.Class, d.Commits, d.Durable, d.Syncs)
	if fault := d.Fault(); fault != "" {
		return "! " + text + " " + notes.mark(d.Engine+": "+fault)
	}
	return text
}
