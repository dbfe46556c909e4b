package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cairndb/cairn"
	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// statsDocument is the JSON of stats. Sizes are in bytes. Totals since Open are
// left out: this process has just opened the store.
type statsDocument struct {
	Store              string           `json:"store"`
	Seq                uint64           `json:"seq"`
	DiskBytes          int64            `json:"disk_bytes"`
	LogBytes           int64            `json:"log_bytes"`
	RawBytes           int64            `json:"raw_bytes"`
	Entries            uint64           `json:"entries"`
	Tables             int              `json:"tables"`
	Runs               int              `json:"runs"`
	SpaceAmplification float64          `json:"space_amplification"`
	CompactionDebt     int64            `json:"compaction_debt_bytes"`
	MemoryUsed         int64            `json:"memory_used_bytes"`
	MemoryLimit        int64            `json:"memory_limit_bytes"`
	Levels             []levelDocument  `json:"levels"`
	Recovery           recoveryDocument `json:"recovery"`
}

type levelDocument struct {
	Level  int   `json:"level"`
	Tables int   `json:"tables"`
	Bytes  int64 `json:"bytes"`
}

func newStats(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats STORE",
		Short: "Print sizes and shape of a store",
		Long: `Print the sizes and the shape of a store, and what had to be recovered to read it.
Rows include deletes and superseded versions; writes still in the log are not in
them.

JSON: one object, sizes in bytes: store, seq, disk_bytes, log_bytes, raw_bytes,
entries, tables, runs, space_amplification, compaction_debt_bytes,
memory_used_bytes, memory_limit_bytes, levels [{level, tables, bytes}], recovery
{needed, dropped_bytes, dropped_segment, dropped_offset, seconds}.`,
		Example: "  cairn stats ./store\n  cairn stats ./store --json | jq .disk_bytes",
		Args:    arguments(1, 1),
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, args []string) error {
			p, err := locate(args[0])
			if err != nil {
				return err
			}
			return a.readWith(ctx, p, &cairn.Options{}, func(db *cairn.DB) error {
				doc := newStatsDocument(p.at, db.Stats())
				if a.json {
					return a.out.document(doc)
				}
				return a.printStats(doc)
			})
		}),
	}
}

func newStatsDocument(dir string, s cairn.Stats) *statsDocument {
	doc := &statsDocument{
		Store: dir, Seq: s.Seq, DiskBytes: s.DiskBytes, LogBytes: s.LogBytes, RawBytes: s.RawBytes,
		Entries: s.Entries, Tables: s.Tables, Runs: s.Runs, SpaceAmplification: s.SpaceAmplification,
		CompactionDebt: s.CompactionDebt, MemoryUsed: s.MemoryUsed, MemoryLimit: s.MemoryLimit,
		Levels: []levelDocument{}, Recovery: newRecoveryDocument(s.Recovery),
	}
	for i, l := range s.Levels {
		doc.Levels = append(doc.Levels, levelDocument{Level: i, Tables: l.Tables, Bytes: l.Bytes})
	}
	return doc
}

func (a *app) printStats(d *statsDocument) error {
	t := newTable()
	rows := []table.Row{
		{"store", printable(d.Store)},
		{"sequence", d.Seq},
		{"on disk", size(d.DiskBytes)},
		{"  of it log", size(d.LogBytes)},
		{"keys and values, uncompressed", size(d.RawBytes)},
		{"rows in tables", humanize.Comma(int64(d.Entries))},
		{"tables", d.Tables},
		{"places a read looks into", d.Runs},
		{"space amplification", strconv.FormatFloat(d.SpaceAmplification, 'f', 2, 64)},
		{"compaction debt", size(d.CompactionDebt)},
		{"memory", fmt.Sprintf("%s of %s", size(d.MemoryUsed), size(d.MemoryLimit))},
		{"recovery", d.Recovery.text(d.LogBytes)},
	}
	t.AppendRows(rows)
	levels := newTable()
	levels.AppendHeader(table.Row{"level", "tables", "size"})
	for _, l := range d.Levels {
		levels.AppendRow(table.Row{l.Level, l.Tables, size(l.Bytes)})
	}
	levels.SetColumnConfigs([]table.ColumnConfig{{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight}})
	return a.out.write([]byte(t.Render() + "\n\n" + levels.Render() + "\n"))
}

// newTable returns a table without frame: fit for a pipe too.
func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	return t
}

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
