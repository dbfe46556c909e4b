package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// term is a line of a list of facts.
type term struct{ Name, Text string }

// engineView is an engine with everything that is set and that it cannot do.
type engineView struct {
	Name, Class, Title, Module, Version, Absent string
	Settings                                    []result.Setting
	Cannot                                      []term
}

func enginesOf(run *result.Run) []engineView {
	var all []engineView
	for _, e := range run.Engines {
		v := engineView{Name: e.Name, Class: classOf(e), Title: e.Title, Module: e.Module, Version: e.Version, Absent: e.Absent, Settings: e.Settings}
		for ability, why := range e.Cannot {
			v.Cannot = append(v.Cannot, term{ability, why})
		}
		slices.SortFunc(v.Cannot, func(a, b term) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, v)
	}
	return all
}

func machineOf(run *result.Run) []term {
	m := run.Machine
	terms := []term{
		{"system", strings.TrimSpace(fmt.Sprintf("%s/%s %s", m.OS, m.Arch, m.Kernel))},
		{"processor", unknown(m.CPU)},
		{"cores for Go", fmt.Sprint(m.Cores)},
		{"memory", "unknown"},
		{"load at the start", unknown(m.Load)},
		{"Go", strings.TrimSpace(m.Go + " " + strings.Join(m.Environment, " "))},
		{"file system", unknown(m.Filesystem)},
		{"read-ahead of its disk", unknown(m.ReadAhead)},
		{"one sync", "a write of 4 KiB with fsync takes " + value(float64(m.SyncDelay), result.Nanos) + " (median of 15)"},
	}
	if m.MemoryBytes > 0 {
		terms[3].Text = value(float64(m.MemoryBytes), result.Bytes)
	}
	if m.Volatile {
		terms = append(terms, term{"attention", "this file system is memory: syncs cost nothing here and keep nothing"})
	}
	return terms
}

func optionsOf(run *result.Run, tables []report.Table) []term {
	d := run.Data
	terms := []term{
		{"command", strings.Join(run.Command, " ")},
		{"started", run.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"took", report.Took(run)},
		{"rounds", fmt.Sprintf("%s of a workload, in %d turns, interleaved, starting engine rotated, one process per cell", report.Rounds(tables...), run.Rounds)},
		{"between cells", "dirty pages are written back"},
		{"data", fmt.Sprintf("seed %d; %s; snappy %.2f× in blocks of 4 KiB, %.2f× in blocks of 32 KiB", d.Seed, report.DataText(d), d.Snappy4K, d.Snappy32K)},
		{"memory figures", "peak RSS is of the whole process, of which " + report.BeforeOpening(run) + " are the laboratory, its data and keys"},
		{"written", "what the block device wrote from the opening of the engine until everything dirty was written back, by whomever"},
	}
	if !run.Settled {
		terms[4].Text = "nothing is done: dirty pages of one cell may be written back in the next"
	}
	if run.Stopped != "" {
		terms = append(terms, term{"rounds left out", "only " + run.Stopped})
	}
	if weather := report.Weather(run); weather != "" {
		terms = append(terms, term{"weather", weather})
	}
	return terms
}

func unknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// piece is a part of a sentence.
type piece struct {
	Text string
	Code bool // stood between back quotes
}

func rulesOf(rules []string) [][]piece {
	var all [][]piece
	for _, r := range rules {
		var pieces []piece
		for i, text := range strings.Split(r, "`") {
			pieces = append(pieces, piece{text, i%2 == 1})
		}
		all = append(all, pieces)
	}
	return all
}
