package html

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

//go:embed page.gohtml
var pageText string

//go:embed style.css
var styleText string

//go:embed script.js
var scriptText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	Style  template.CSS
	Script template.JS
	Raw    template.JS
	Name   string // of the file the raw figures are saved as

	Run      *result.Run
	Rounds   string // of the workloads
	Summary  summary
	Losses   []loss
	Matrix   matrix
	Sections []section
	Growth   []growth
	Durable  durability
	Articles []article
	Engines  []engineView
	Machine  []term
	Options  []term
	Rules    [][]piece
}

// Write writes the report.
func Write(w io.Writer, run *result.Run) error {
	raw, err := json.Marshal(run) // escapes <, > and &: it cannot end the script element
	if err != nil {
		return err
	}
	tables := report.Tabulate(run)
	ids := anchors(tables)
	list := losses(tables, ids)
	articles, err := articlesOf(tables)
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, page{
		Style: template.CSS(styleText), Script: template.JS(scriptText), Raw: template.JS(raw),
		Name:     "cairn-bench-" + run.Started.UTC().Format("20060102-150405") + ".json",
		Run:      run,
		Rounds:   report.Rounds(tables...),
		Summary:  summarise(run, tables, list),
		Losses:   list,
		Matrix:   matrixOf(run, tables, ids),
		Sections: sectionsOf(run, tables, ids),
		Growth:   growthOf(tables),
		Durable:  durabilityOf(run),
		Articles: articles,
		Engines:  enginesOf(run),
		Machine:  machineOf(run),
		Options:  optionsOf(run, tables),
		Rules:    rulesOf(report.Rules()),
	})
}

// Data returns the JSON of the run that a report, as Write writes it, carries; ok is false
// if page is none.
func Data(page []byte) (run []byte, ok bool) {
	_, rest, ok := bytes.Cut(page, []byte(`<script type="application/json" id="run">`))
	if !ok {
		return nil, false
	}
	run, _, ok = bytes.Cut(rest, []byte("</script>"))
	return run, ok
}
