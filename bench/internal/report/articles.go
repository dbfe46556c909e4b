package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report/published"
	"github.com/cairndb/cairn/bench/internal/result"
)

// Beside is an article beside what a run measured.
type Beside struct {
	published.Article
	General  []published.Reason // concern all of it
	Special  []Lettered         // concern the figures that have their letter
	Sets     []BesideSet
	Measured bool // the run repeats some of it
}

// Lettered is a reason that figures refer to.
type Lettered struct {
	Letter string
	published.Reason
}

// BesideSet is a table of an article and the measured tables that repeat it.
type BesideSet struct {
	published.Set
	Tables []Table
	Other  string // that the numbers of keys differ, and what that means; empty if they do not
	Rows   []BesideRow
}

// BesideRow is a published figure.
type BesideRow struct {
	published.Figure
	Measured []BesideCell // of each table
	Why      string       // letters of reasons, or where to look
}

// BesideCell is a measured figure in the published unit.
type BesideCell struct {
	Figure
	Ratio  float64 // of measured to published; 0: they do not compare
	OtherN bool    // they do not because the numbers of keys differ
}

// Articles puts every published figure beside the measured ones that repeat it.
func Articles(tables []Table) ([]Beside, error) {
	all, err := published.Articles()
	if err != nil {
		return nil, err
	}
	var views []Beside
	for _, a := range all {
		v := Beside{Article: a}
		v.split()
		for _, s := range a.Sets {
			beside := Counterparts(tables, a, s)
			v.Measured = v.Measured || len(beside) > 0
			v.Sets = append(v.Sets, v.set(s, beside))
		}
		views = append(views, v)
	}
	return views, nil
}

// split gives letters to the reasons that do not concern everything.
func (v *Beside) split() {
	for _, r := range v.Reasons {
		if r.General() {
			v.General = append(v.General, r)
			continue
		}
		v.Special = append(v.Special, Lettered{string(rune('a' + len(v.Special))), r})
	}
}

func (v *Beside) set(s published.Set, beside []Table) BesideSet {
	set := BesideSet{Set: s, Tables: beside, Other: otherCounts(s, beside)}
	for _, f := range s.Figures {
		row := BesideRow{Figure: f, Why: v.why(s, f)}
		for _, t := range beside {
			row.Measured = append(row.Measured, besideCell(t, s, f))
		}
		set.Rows = append(set.Rows, row)
	}
	return set
}

// why names the reasons that concern a figure.
func (v *Beside) why(s published.Set, f published.Figure) string {
	var letters []string
	for _, l := range v.Special {
		if l.Applies(s, f) {
			letters = append(letters, l.Letter)
		}
	}
	switch {
	case len(letters) > 0:
		return strings.Join(letters, ", ")
	case len(v.General) > 0:
		return "general"
	case f.Unit == result.BytesPerOp || f.Unit == result.AllocsPerOp:
		return "versions"
	}
	return "machine"
}

func besideCell(t Table, s published.Set, f published.Figure) BesideCell {
	if f.Failed != "" {
		return BesideCell{Figure: Figure{None: "see its section"}}
	}
	have, ok := t.Counterpart(f)
	if !ok {
		return BesideCell{Figure: have}
	}
	if whole := f.Unit == result.Nanos || f.Unit == result.Bytes; whole && s.N != t.Workload.N {
		return BesideCell{Figure: have, OtherN: true}
	}
	return BesideCell{Figure: have, Ratio: have.Median / f.Value}
}

// otherCounts says that a set is repeated with another number of keys.
func otherCounts(s published.Set, beside []Table) string {
	var counts []string
	for _, t := range beside {
		if n := fmt.Sprint(t.Workload.N); s.N > 0 && t.Workload.N != s.N && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	if len(counts) == 0 {
		return ""
	}
	return fmt.Sprintf("Measured with %s keys, published with %d: sizes and totals do not compare, nor does what takes longer per key the more keys there are.",
		strings.Join(counts, " and "), s.N)
}
