package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/published"
	"github.com/cairndb/cairn/bench/internal/result"
)

// article is a publication beside what this run measured.
type article struct {
	Name, Source, Remarks string
	General               []published.Reason
	Special               []lettered // marked at the figures they concern
	Sets                  []articleSet
	Measured              bool // this run repeats some of it
}

type lettered struct {
	Letter string
	published.Reason
}

type articleSet struct {
	Title   string
	Other   string   // that the numbers of keys differ, and what that means
	Columns []string // the measured tables
	Rows    []articleRow
}

type articleRow struct {
	Engine, Figure, Published string
	Failed                    bool
	Measured                  []articleCell
	Why                       string // letters, or where to look
}

type articleCell struct {
	Text, Ratio string
	Title       string // why there is no figure
}

func articlesOf(tables []report.Table) ([]article, error) {
	all, err := published.Articles()
	if err != nil {
		return nil, err
	}
	var views []article
	for _, a := range all {
		v := article{Name: a.Name, Source: a.Source, Remarks: a.Remarks}
		for _, r := range a.Reasons {
			if r.General() {
				v.General = append(v.General, r)
				continue
			}
			v.Special = append(v.Special, lettered{string(rune('a' + len(v.Special))), r})
		}
		for _, s := range a.Sets {
			beside := report.Counterparts(tables, a, s)
			v.Measured = v.Measured || len(beside) > 0
			v.Sets = append(v.Sets, articleSetOf(s, beside, v))
		}
		views = append(views, v)
	}
	return views, nil
}

func articleSetOf(s published.Set, beside []report.Table, v article) articleSet {
	set := articleSet{Title: s.Title}
	for _, t := range beside {
		set.Columns = append(set.Columns, details(t.Workload))
	}
	set.Other = otherCounts(s, beside)
	for _, f := range s.Figures {
		row := articleRow{Engine: f.Engine, Figure: f.Title, Published: f.Failed, Failed: f.Failed != ""}
		if !row.Failed {
			row.Published = value(f.Value, f.Unit)
		}
		for _, t := range beside {
			row.Measured = append(row.Measured, besideCell(t, s, f))
		}
		row.Why = v.why(s, f)
		set.Rows = append(set.Rows, row)
	}
	return set
}

// why names the reasons that concern a figure.
func (v article) why(s published.Set, f published.Figure) string {
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
	}
	return "machine"
}

func besideCell(t report.Table, s published.Set, f published.Figure) articleCell {
	if f.Failed != "" {
		return articleCell{Text: "see its section"}
	}
	have, ok := t.Counterpart(f)
	if !ok {
		return articleCell{Text: "n/a", Title: have.None}
	}
	cell := articleCell{Text: value(have.Median, f.Unit), Ratio: times(have.Median / f.Value)}
	if whole := f.Unit == result.Nanos || f.Unit == result.Bytes; whole && s.N != t.Workload.N {
		cell.Ratio = "other n"
	}
	return cell
}

// otherCounts says that a set is repeated with another number of keys.
func otherCounts(s published.Set, beside []report.Table) string {
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
