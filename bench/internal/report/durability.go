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

// DurabilityTable is what counting the sync calls showed: first the engines that were
// asked for durable commits, then those that were not.
type DurabilityTable struct {
	Kinds []string // of commits, in order of appearance
	Rows  []DurabilityRow
}

// DurabilityRow is an engine in one mode.
type DurabilityRow struct {
	Engine result.Engine
	Sync   bool // what it was asked for
	Cells  []DurabilityCell
	Calls  string // of the whole run, as in "fdatasync 88, msync 88"; empty: none
}

// DurabilityCell is one kind of commit.
type DurabilityCell struct {
	Class   result.Class // empty: the engine has no such commit
	Counts  string       // commits / of these synced before / sync calls; empty if not counted
	Fault   string       // it was asked to sync and did not
	Remarks string       // the fault, or why nothing was counted; begins with the engine's name
}

// Durability sums up what was counted. Without counts it has no rows.
func Durability(run *result.Run) DurabilityTable {
	t := DurabilityTable{Kinds: kindsOf(run.Durability)}
	for _, sync := range []bool{true, false} {
		for _, e := range run.Engines {
			if row, ok := durabilityRow(run.Durability, e, sync, t.Kinds); ok {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}

// Unsynced names the engines that were asked to sync and did not, each once.
func (t DurabilityTable) Unsynced() []string {
	var names []string
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Fault != "" && !slices.Contains(names, row.Engine.Name) {
				names = append(names, row.Engine.Name)
			}
		}
	}
	return names
}

// Asked is the mode in words.
func (r DurabilityRow) Asked() string {
	if r.Sync {
		return "sync on"
	}
	return "sync off"
}

// Name is the class in words, a fault with its mark.
func (c DurabilityCell) Name() string {
	switch {
	case c.Class == "":
		return "n/a"
	case c.Fault != "":
		return "! " + string(c.Class)
	}
	return string(c.Class)
}

// Text is the cell in words: its class and its counts.
func (c DurabilityCell) Text() string {
	if c.Counts == "" {
		return c.Name()
	}
	return c.Name() + " (" + c.Counts + ")"
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

func durabilityRow(all []result.Durability, e result.Engine, sync bool, kinds []string) (row DurabilityRow, ok bool) {
	row = DurabilityRow{Engine: e, Sync: sync, Cells: make([]DurabilityCell, len(kinds))}
	for _, d := range all {
		if d.Engine == e.Name && d.Sync == sync {
			row.Cells[slices.Index(kinds, d.Kind)] = durabilityCell(d)
			row.Calls, ok = callsText(d.Calls), true
		}
	}
	return row, ok
}

func durabilityCell(d result.Durability) DurabilityCell {
	c := DurabilityCell{Class: d.Class}
	if d.Class == result.NotCounted {
		c.Remarks = d.Engine + ": " + d.Why
		return c
	}
	c.Counts = fmt.Sprintf("%d/%d/%d", d.Commits, d.Durable, d.Syncs)
	if c.Fault = d.Fault(); c.Fault != "" {
		c.Remarks = d.Engine + ": " + c.Fault
	}
	return c
}

func callsText(calls map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		all = append(all, fmt.Sprintf("%s %d", name, calls[name]))
	}
	return strings.Join(all, ", ")
}

// durability shows what counting the system calls gave, an engine and mode a line.
func (p *printer) durability() {
	d := Durability(p.run)
	if len(d.Rows) == 0 {
		return
	}
	p.line("DURABILITY, by counting the system calls of a separate run (acknowledged commits / of these synced before / sync calls)")
	t := newTable(append(append([]string{"engine", "asked"}, d.Kinds...), "calls of the run")...)
	notes := &footnotes{}
	for _, row := range d.Rows {
		line := table.Row{row.Engine.Name, row.Asked()}
		for _, c := range row.Cells {
			text := c.Text()
			if c.Remarks != "" {
				text += " " + notes.mark(c.Remarks)
			}
			line = append(line, text)
		}
		t.AppendRow(append(line, row.Calls))
	}
	p.line("%s", t.Render())
	for i, note := range notes.list {
		p.line("  [%d] %s", i+1, note)
	}
	p.line("")
}

// NotSynced says of each table in which Cairn was asked to sync and did not what it did
// instead. It is compared with nobody there.
func NotSynced(tables []Table) []string {
	var list []string
	for _, t := range tables {
		if row, ok := t.Find(Subject); ok && row.Unsynced != "" {
			list = append(list, t.Workload.ID+": "+row.Unsynced)
		}
	}
	return list
}

// notCompared introduces what NotSynced says.
const notCompared = "NOT COMPARED, for cairn was asked to sync and did not:"
