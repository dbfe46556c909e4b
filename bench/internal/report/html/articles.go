package html

import (
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/published"
)

// article is a publication beside what this run measured.
type article struct {
	Name, Source, Remarks string
	General               []published.Reason
	Special               []report.Lettered // marked at the figures they concern
	Sets                  []articleSet
	Measured              bool // this run repeats some of it
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
	all, err := report.Articles(tables)
	if err != nil {
		return nil, err
	}
	var views []article
	for _, a := range all {
		v := article{Name: a.Name, Source: a.Source, Remarks: a.Remarks, General: a.General, Special: a.Special, Measured: a.Measured}
		for _, s := range a.Sets {
			v.Sets = append(v.Sets, articleSetOf(s))
		}
		views = append(views, v)
	}
	return views, nil
}

func articleSetOf(s report.BesideSet) articleSet {
	set := articleSet{Title: s.Title, Other: s.Other}
	for _, t := range s.Tables {
		set.Columns = append(set.Columns, details(t.Workload.ID))
	}
	for _, r := range s.Rows {
		row := articleRow{Engine: r.Engine, Figure: r.Title, Published: r.Failed, Failed: r.Failed != "", Why: r.Why}
		if !row.Failed {
			row.Published = value(r.Value, r.Unit)
		}
		for _, c := range r.Measured {
			row.Measured = append(row.Measured, articleCellOf(c, r))
		}
		set.Rows = append(set.Rows, row)
	}
	return set
}

func articleCellOf(c report.BesideCell, r report.BesideRow) articleCell {
	switch {
	case r.Failed != "":
		return articleCell{Text: c.None}
	case !c.Known():
		return articleCell{Text: "n/a", Title: c.None}
	case c.OtherN:
		return articleCell{Text: value(c.Median, r.Unit), Ratio: "other n"}
	}
	return articleCell{Text: value(c.Median, r.Unit), Ratio: times(c.Ratio)}
}
