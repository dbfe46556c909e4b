package html

import (
	"fmt"
	"math"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// summary is the first thing read.
type summary struct {
	Compared, Behind, Clearly int
	Worst                     *loss
	Why                       string // there is nothing to compare
	Bad                       []badCell
}

// loss is a figure in which Cairn is not the best.
type loss struct {
	Ratio       string
	Share       int // length of its bar, in per cent of the longest
	Headline    string
	Details     string
	Anchor      string
	Figure      string
	Cairn, Best string
	Winner      string
	Doubt       string
}

type badCell struct {
	Engine, Workload, Status, Reason string
	Round                            int
}

func summarise(run *result.Run, tables []report.Table) summary {
	var s summary
	for _, t := range tables {
		s.Compared += len(t.Gaps())
	}
	gaps := report.Behind(tables)
	s.Behind = len(gaps)
	for _, g := range gaps {
		if g.Doubt() == "" {
			s.Clearly++
		}
	}
	if s.Compared == 0 {
		s.Why = report.WhyNotCompared(tables)
	}
	if list := losses(tables, anchors(tables)); len(list) > 0 {
		s.Worst = &list[0]
	}
	for _, c := range run.Bad() {
		s.Bad = append(s.Bad, badCell{c.Engine, c.Workload, strings.ToUpper(string(c.Status)), c.Reason, c.Round})
	}
	return s
}

// Ahead is in how many figures Cairn is the best.
func (s summary) Ahead() int { return s.Compared - s.Behind }

// Doubtful is how many of the figures behind may be no difference.
func (s summary) Doubtful() int { return s.Behind - s.Clearly }

// losses lists where Cairn is behind, worst first. The lengths of their bars are
// logarithmic, for ratios run from 1 to hundreds.
func losses(tables []report.Table, ids map[string]string) []loss {
	gaps := report.Behind(tables)
	longest := 0.0
	for _, g := range gaps {
		if r := g.Ratio(); !math.IsInf(r, 0) {
			longest = max(longest, math.Log(r))
		}
	}
	var list []loss
	for _, g := range gaps {
		share := 100
		if r := g.Ratio(); !math.IsInf(r, 0) && longest > 0 {
			share = int(100 * math.Log(r) / longest)
		}
		list = append(list, loss{
			Ratio: times(g.Ratio()), Share: share, Headline: headline(g.Workload), Details: details(g.Workload),
			Anchor: figureAnchor(ids[g.Workload.ID], g.Column), Figure: figureName(g.Workload, g.Column),
			Cairn: figure(g.Cairn, g.Column.Unit), Best: figure(g.Best, g.Column.Unit), Winner: g.Marked(), Doubt: g.Doubt(),
		})
	}
	return list
}

// times prints a ratio with three digits and the sign of multiplication.
func times(r float64) string {
	switch {
	case math.IsInf(r, 0):
		return "∞"
	case r >= 99.95:
		return fmt.Sprintf("%.0f×", r)
	case r >= 9.995:
		return fmt.Sprintf("%.1f×", r)
	}
	return fmt.Sprintf("%.2f×", r)
}
