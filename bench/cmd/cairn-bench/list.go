package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/harness"
	"github.com/cairndb/cairn/bench/internal/workload"
)

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the engines and the workloads, and what each can do",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all strings.Builder
			listEngines(&all)
			listWorkloads(&all)
			_, err := io.WriteString(cmd.OutOrStdout(), all.String())
			return err
		},
	}
}

func listEngines(w io.Writer) {
	t := plainTable()
	head := table.Row{"engine", "version"}
	for _, a := range engine.Abilities {
		head = append(head, string(a))
	}
	t.AppendHeader(append(head, "what it is"))
	var remarks []string
	suite := harness.NewPlan(nil, workload.All(), workload.Scale{Sync: []bool{false}})
	for _, d := range engine.All() {
		row := table.Row{d.Info.Name, d.Version()}
		for _, a := range engine.Abilities {
			row = append(row, yesOrNo(d.Info, a))
		}
		t.AppendRow(append(row, d.Info.Title))
		remarks = append(remarks, remarksOn(d, suite.Tables)...)
	}
	fmt.Fprintln(w, t.Render())
	fmt.Fprintln(w, strings.Join(remarks, "\n"))
	fmt.Fprintln(w)
}

func yesOrNo(info engine.Info, a engine.Ability) string {
	switch {
	case info.Absent != "":
		return "?"
	case info.Can(a):
		return "yes"
	}
	return "-"
}

// remarksOn says why an engine cannot do something, and what is set in the tables of a suite.
func remarksOn(d engine.Driver, suite []harness.Table) []string {
	var out []string
	if d.Info.Absent != "" {
		out = append(out, fmt.Sprintf("  %s: %s", d.Info.Name, d.Info.Absent))
	}
	for _, a := range engine.Abilities {
		if why := d.Info.Cannot[a]; why != "" {
			out = append(out, fmt.Sprintf("  %s, no %s: %s", d.Info.Name, a, why))
		}
	}
	if d.Settings == nil {
		return out
	}
	for _, s := range harness.Settings(d, suite) {
		when := ""
		if s.When != "" {
			when = s.When + ": "
		}
		out = append(out, fmt.Sprintf("  %s sets %s%s (%s)", d.Info.Name, when, s.Option, s.Reason))
	}
	return out
}

func listWorkloads(w io.Writer) {
	t := plainTable()
	t.AppendHeader(table.Row{"workload", "variant", "quick n", "full n", "value bytes", "what it does"})
	for _, wl := range workload.All() {
		t.AppendRow(table.Row{wl.Name, wl.Variant, quickCounts(wl), fullCounts(wl), wl.ValueBytes, wl.Title})
	}
	fmt.Fprintln(w, t.Render())
}

// quickCounts are the quick suite's; with syncs it may have fewer, without more.
func quickCounts(w workload.Workload) string {
	switch {
	case w.QuickSynced > 0:
		return fmt.Sprintf("%s, with syncs %d", numbers(w.QuickN), w.QuickSynced)
	case w.LargeToo:
		return fmt.Sprintf("%s, without syncs %s", numbers(w.QuickN), numbers(w.FullN))
	}
	return numbers(w.QuickN)
}

// fullCounts are the full suite's.
func fullCounts(w workload.Workload) string {
	if w.Named {
		return "when it is named"
	}
	return numbers(w.FullCounts())
}

func numbers(ns []int) string { return strings.Trim(fmt.Sprint(ns), "[]") }

func plainTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Format.Header = text.FormatDefault
	return t
}
