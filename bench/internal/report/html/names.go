package html

import (
	"fmt"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// anchors gives each workload an id for links: its own name where that is possible,
// so that a link to a section holds from run to run.
func anchors(tables []report.Table) map[string]string {
	ids, taken := map[string]string{}, map[string]bool{}
	for i, t := range tables {
		id := "w-" + slug(t.Workload.ID)
		if taken[id] {
			id = fmt.Sprintf("%s-%d", id, i)
		}
		taken[id] = true
		ids[t.Workload.ID] = id
	}
	return ids
}

// slug keeps letters, digits and single hyphens.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// headline is the part of a title before its colon, as in "W1 lifecycle".
func headline(w result.Workload) string {
	name, _, _ := strings.Cut(w.Title, ":")
	if name == "" {
		return w.Name
	}
	return name
}

// details is the part of an ID that tells cells of one workload apart.
func details(id string) string {
	_, rest, ok := strings.Cut(id, "/")
	if !ok {
		return id
	}
	return strings.ReplaceAll(rest, "/", " · ")
}

// figureAnchor is the id of a column's chart.
func figureAnchor(section string, c result.Column) string {
	return section + "--" + slug(c.Key)
}

// figureName is a column's title where its group is not beside it: with the group if
// another column of the workload has the same title.
func figureName(w result.Workload, c result.Column) string {
	for _, other := range w.Columns {
		if other.Title == c.Title && other.Key != c.Key {
			return c.Group + ": " + c.Title
		}
	}
	return c.Title
}

// classOf is how charts and tables paint an engine.
func classOf(e result.Engine) string {
	switch {
	case e.Name == report.Subject:
		return "subject"
	case e.Floor:
		return "floor"
	}
	return "rival"
}

// typographic writes the intervals of text reports with proper signs.
func typographic(s string) string {
	return strings.NewReplacer("+-", "±", " us", " µs").Replace(s)
}

func figure(f report.Figure, unit result.Unit) string {
	return typographic(report.FormatFigure(f, unit))
}

func value(v float64, unit result.Unit) string { return typographic(report.FormatValue(v, unit)) }
