package html

import (
	"math"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// summary is the first thing read.
type summary struct {
	Compared, Behind, Clearly int
	Worst                     *loss
	Kinds                     []kindSum
	Why                       string // there is nothing to compare
	Bad                       []badCell
	Unsynced                  []string // engines that were asked to sync and did not
	NotSynced                 []string // tables in which Cairn did not, and what it did
}

// kindSum sums up the figures of one kind.
type kindSum struct {
	Kind                      string
	Compared, Behind, Clearly int
	Worst                     *loss // nil: behind in none
}

// Ahead is in how many figures of the kind Cairn is the best.
func (k kindSum) Ahead() int { return k.Compared - k.Behind }

// Doubtful is how many of the figures behind may be no difference.
func (k kindSum) Doubtful() int { return k.Behind - k.Clearly }

// loss is a figure in which Cairn is not the best.
type loss struct {
	Ratio       string
	Kind        string // of the figure
	Share       int    // length of its bar, in per cent of the longest
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

func summarise(run *result.Run, tables []report.Table, list []loss) summary {
	s := summary{Kinds: kindSums(tables, list), Unsynced: report.Durability(run).Unsynced(), NotSynced: report.NotSynced(tables)}
	for _, k := range s.Kinds {
		s.Compared += k.Compared
		s.Behind += k.Behind
		s.Clearly += k.Clearly
	}
	if s.Compared == 0 {
		s.Why = report.WhyNotCompared(tables)
	}
	if len(list) > 0 {
		s.Worst = &list[0]
	}
	for _, c := range run.Bad() {
		s.Bad = append(s.Bad, badCell{c.Engine, c.Workload, strings.ToUpper(string(c.Status)), c.Reason, c.Round})
	}
	return s
}

// kindSums counts the figures of each kind; list is where Cairn is behind, worst first.
func kindSums(tables []report.Table, list []loss) []kindSum {
	sums := []kindSum{{Kind: "time"}, {Kind: "space"}, {Kind: "allocations"}, {Kind: "other"}}
	of := func(kind string) *kindSum {
		return &sums[slices.IndexFunc(sums, func(k kindSum) bool { return k.Kind == kind })]
	}
	for _, t := range tables {
		for _, g := range t.Gaps() {
			of(kindOf(g.Column.Unit)).Compared++
		}
	}
	for i, l := range list {
		k := of(l.Kind)
		k.Behind++
		if l.Doubt == "" {
			k.Clearly++
		}
		if k.Worst == nil {
			k.Worst = &list[i]
		}
	}
	return slices.DeleteFunc(sums, func(k kindSum) bool { return k.Compared == 0 })
}

// kindOf sorts figures by what they cost: space is of disk and memory.
func kindOf(unit result.Unit) string {
	switch unit {
	case result.Nanos, result.NanosPerOp:
		return "time"
	case result.Bytes:
		return "space"
	case result.BytesPerOp, result.AllocsPerOp:
		return "allocations"
	}
	return "other"
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
			Ratio: times(g.Ratio()), Kind: kindOf(g.Column.Unit), Share: share, Headline: headline(g.Workload), Details: details(g.Workload.ID),
			Anchor: figureAnchor(ids[g.Workload.ID], g.Column), Figure: figureName(g.Workload, g.Column),
			Cairn: figure(g.Cairn, g.Column.Unit), Best: figure(g.Best, g.Column.Unit), Winner: g.Marked(), Doubt: g.Doubt(),
		})
	}
	return list
}

// times prints a ratio with the sign of multiplication.
func times(r float64) string {
	if math.IsInf(r, 0) {
		return "∞"
	}
	return strings.TrimSuffix(report.FormatRatio(r), "x") + "×"
}
