package html

import (
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// durability is how each engine's sync calls were counted.
type durability struct {
	Kinds []string
	Rows  []durabilityRow
	Notes []string
}

type durabilityRow struct {
	Engine, Class string
	Asked         string
	Cells         []durabilityCell
	Calls         string
}

type durabilityCell struct {
	Text, Counts string
	Class        string
	Note         int // 0: none
}

func durabilityOf(run *result.Run) durability {
	table := report.Durability(run)
	d := durability{Kinds: table.Kinds}
	for _, row := range table.Rows {
		r := durabilityRow{Engine: row.Engine.Name, Class: classOf(row.Engine), Asked: row.Asked(), Calls: row.Calls}
		if row.Calls == "" {
			r.Calls = "none seen"
		}
		for _, c := range row.Cells {
			r.Cells = append(r.Cells, d.cell(row, c))
		}
		d.Rows = append(d.Rows, r)
	}
	return d
}

func (d *durability) cell(row report.DurabilityRow, c report.DurabilityCell) durabilityCell {
	cell := durabilityCell{Text: c.Name(), Counts: c.Counts}
	switch {
	case c.Fault != "":
		cell.Class = "bad"
	case c.Counts == "":
		cell.Class = "none"
	case row.Sync:
		cell.Class = "synced"
	}
	if c.Remarks != "" {
		cell.Note = note(&d.Notes, c.Remarks)
	}
	return cell
}

// Number is the number of the note at an index.
func (durability) Number(index int) int { return index + 1 }
