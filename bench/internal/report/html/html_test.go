package html

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cairndb/cairn/bench/internal/result"
)

// all returns the elements of a tree that match.
func all(n *html.Node, match func(*html.Node) bool) []*html.Node {
	var found []*html.Node
	if n.Type == html.ElementNode && match(n) {
		found = append(found, n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		found = append(found, all(c, match)...)
	}
	return found
}

func element(name, class string) func(*html.Node) bool {
	return func(n *html.Node) bool {
		return n.Data == name && (class == "" || slices.Contains(strings.Fields(attr(n, "class")), class))
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return strings.TrimSpace(b.String())
}

func parse(t *testing.T, run *result.Run) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(render(t, run)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestHostileNamesStayText(t *testing.T) {
	doc := parse(t, sample())
	if bad := all(doc, func(n *html.Node) bool { return n.Data == "img" || attr(n, "onload") != "" || attr(n, "onerror") != "" }); len(bad) > 0 {
		t.Errorf("%d elements came out of a name", len(bad))
	}
	if scripts := all(doc, element("script", "")); len(scripts) != 2 {
		t.Errorf("%d scripts, want the data and ours", len(scripts))
	}
	for _, n := range all(doc, func(n *html.Node) bool { return attr(n, "href") != "" || attr(n, "src") != "" }) {
		if href := attr(n, "href"); !strings.HasPrefix(href, "#") && href != "data:," {
			t.Errorf("%s goes to %q %q", n.Data, href, attr(n, "src"))
		}
	}
	if !strings.Contains(textOf(doc), "message of liar: "+hostile) {
		t.Error("the message of a void cell is not there as it was")
	}
}

func TestEveryLinkHasItsTarget(t *testing.T) {
	doc := parse(t, sample())
	ids := map[string]int{}
	for _, n := range all(doc, func(n *html.Node) bool { return attr(n, "id") != "" }) {
		ids[attr(n, "id")]++
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the id %q", n, id)
		}
	}
	for _, a := range all(doc, element("a", "")) {
		if id, ours := strings.CutPrefix(attr(a, "href"), "#"); ours && ids[id] == 0 {
			t.Errorf("nothing has the id %q of the link %q", id, textOf(a))
		}
	}
}

func TestMatrixHasEveryEngineAndCell(t *testing.T) {
	run := sample()
	matrix := all(parse(t, run), element("table", "matrix"))[0]
	heads := all(all(matrix, element("thead", ""))[0], element("th", ""))
	for i, e := range run.Engines {
		if textOf(heads[i+1]) != e.Name {
			t.Errorf("column %d is %q, want %q", i, textOf(heads[i+1]), e.Name)
		}
	}
	rows := all(matrix, element("tr", "figure"))
	if want := 3 * 5; len(rows) != want { // five ranked columns
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	for _, row := range append(rows, all(matrix, element("tr", "overall"))...) {
		cells := all(row, element("td", ""))
		if len(cells) != len(run.Engines) {
			t.Fatalf("%d cells for %d engines", len(cells), len(run.Engines))
		}
		for i, c := range cells {
			if links := all(c, element("a", "")); len(links) != 1 || textOf(c) == "" {
				t.Errorf("the cell of %s is empty or no link", run.Engines[i].Name)
			}
		}
	}
	put := all(rows[0], element("td", ""))
	for i, want := range []string{"★best1.00×", "3.61×", "7.96×", "VOID", "CRASHED", "HUNG", "FAILED", "n/a", "70.6×", "87.1×"} {
		if got := textOf(put[i]); got != want {
			t.Errorf("put of engine %d: %q, want %q", i, got, want)
		}
	}
}

// An engine without a figure has its word and its reason, and no bar.
func TestNothingMissingIsAZero(t *testing.T) {
	doc := parse(t, sample())
	reasons := textOf(doc)
	for _, want := range []string{"gomap: keeps nothing on disk", "pebble: cannot delete " + hostile, "pebble: puts one by one", "absent: message of absent: "} {
		if !strings.Contains(reasons, want) {
			t.Errorf("%q is not explained", want)
		}
	}
	for _, table := range all(doc, element("table", "figures")) {
		for _, c := range all(all(table, element("tbody", ""))[0], element("td", "")) {
			switch text := textOf(c); {
			case text == "":
				t.Errorf("an empty cell in %.60s", textOf(table))
			case (text == "0" || strings.HasPrefix(text, "0 ")) && !countsSeconds(table):
				t.Errorf("a zero: %q", text)
			}
		}
	}
	for _, svg := range all(doc, element("svg", "bars")) {
		rows := all(svg, element("g", "row"))
		if len(rows) != 10 {
			t.Errorf("%d rows in a chart", len(rows))
		}
		for _, row := range rows {
			bars, words := all(row, element("rect", "bar")), all(row, element("text", "none"))
			if len(bars)+len(words) != 1 {
				t.Errorf("%s has %d bars and %d words", textOf(row), len(bars), len(words))
			}
			name := textOf(all(row, element("text", "label"))[0])
			if want, ok := map[string]string{"liar": "VOID", "crasher": "CRASHED", "hanger": "HUNG", "failing": "FAILED", "absent": "n/a"}[name]; ok && (len(words) != 1 || textOf(words[0]) != want) {
				t.Errorf("%s has a bar or another word than %s", textOf(row), want)
			}
		}
	}
}

// countsSeconds is the table that counts seconds, where a zero is a count.
func countsSeconds(table *html.Node) bool {
	return strings.Contains(textOf(all(table, element("caption", ""))[0]), "Over time")
}

func TestTablesSayWhatTheyAre(t *testing.T) {
	for _, table := range all(parse(t, sample()), element("table", "")) {
		if captions := all(table, element("caption", "")); len(captions) != 1 || textOf(captions[0]) == "" {
			t.Errorf("a table without a caption: %.80s", textOf(table))
		}
		for _, th := range all(table, element("th", "")) {
			if s := attr(th, "scope"); s != "col" && s != "row" {
				t.Errorf("head %q has scope %q", textOf(th), s)
			}
		}
		if box := table.Parent; !slices.Contains(strings.Fields(attr(box, "class")), "box") || attr(box, "tabindex") != "0" || attr(box, "aria-label") == "" {
			t.Errorf("a table outside of a box that scrolls and has a name: %.80s", textOf(table))
		}
	}
}

func TestRawDataAreTheRun(t *testing.T) {
	run := sample()
	for _, script := range all(parse(t, run), element("script", "")) {
		if attr(script, "type") != "application/json" {
			continue
		}
		var got result.Run
		if err := json.Unmarshal([]byte(textOf(script)), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Engines, run.Engines) || len(got.Cells) != len(run.Cells) || got.Cells[0].Metrics["put"] != run.Cells[0].Metrics["put"] {
			t.Error("the data are not those of the run")
		}
		return
	}
	t.Error("no data")
}

func TestData(t *testing.T) {
	run := sample()
	run.Cells[0].Notes = []string{"</script> <script>"}
	var page bytes.Buffer
	if err := Write(&page, run); err != nil {
		t.Fatal(err)
	}
	raw, ok := Data(page.Bytes())
	got, err := result.Decode(bytes.NewReader(raw))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if a, b := got.Cells[0], run.Cells[0]; !reflect.DeepEqual(a.Metrics, b.Metrics) || !slices.Equal(a.Notes, b.Notes) || len(got.Cells) != len(run.Cells) {
		t.Errorf("%+v is not %+v", a, b)
	}
	for _, page := range []string{"", "<html>", `<script type="application/json" id="run">{}`} {
		if raw, ok := Data([]byte(page)); ok {
			t.Errorf("%q has the data %q", page, raw)
		}
	}
}

func TestSectionsSayWhatTheBriefAsks(t *testing.T) {
	text := textOf(parse(t, sample()))
	for _, want := range []string{
		"Where Cairn loses", "Cells that do not count", "Published figures beside measured ones", "Fairness rules", "Machine and options",
		"Every read is compared with the expected bytes", // of the guide
		"CRASHED", "p99.9", "seconds without any", "not verified: ", "published data: ", "freelist.go freelist.write", "v1.2.3", "Sync = true", "250 µs", // bolt: 2.498 s for 10,000
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

// Totals and sizes of other numbers of keys are not compared with published ones.
func TestPublishedTotalsNeedTheSameCount(t *testing.T) {
	run := sample()
	run.Workloads = run.Workloads[:1]
	run.Workloads[0].Columns = append(run.Workloads[0].Columns, result.Column{Key: "total", Title: "total", Group: "totals", Unit: result.Nanos})
	for i := range run.Cells {
		if run.Cells[i].Metrics != nil {
			run.Cells[i].Metrics["total"] = 4.07e9
		}
	}
	same := textOf(parse(t, run))
	run.Workloads[0].N = 300
	other := textOf(parse(t, run))
	for _, want := range []string{"other n", "Measured with 300 keys, published with 10000"} {
		if !strings.Contains(other, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if !strings.Contains(same, "4.07 s 0.50×") || strings.Contains(other, "4.07 s 0.50×") { // bolt published 8.137 s
		t.Error("totals are compared with another count, or not with the same")
	}
}

func TestFiguresOfOneTitleAreToldApart(t *testing.T) {
	w := result.Workload{Columns: []result.Column{{Key: "a", Title: "p99", Group: "puts"}, {Key: "b", Title: "p99", Group: "gets"}, {Key: "c", Title: "max", Group: "gets"}}}
	for i, want := range []string{"puts: p99", "gets: p99", "max"} {
		if got := figureName(w, w.Columns[i]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEmptyRun(t *testing.T) {
	text := textOf(parse(t, &result.Run{Schema: result.Schema}))
	if !strings.Contains(text, "nothing compared") {
		t.Error("a run without anything does not say so")
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{"w1/sound/n=300": "w1-sound-n-300", hostile: "script-title-style-img-src-x-onerror-alert-1-svg-onload-alert-2", "": ""} {
		if got := slug(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestGrowth: a workload with two numbers of keys has a chart and a table for each ranked
// time, and one that stands alone none.
func TestGrowth(t *testing.T) {
	run := sample()
	page := render(t, run)
	_, section, ok := strings.Cut(page, `<section id="growth"`)
	section, _, _ = strings.Cut(section, "</section>")
	if !ok || !strings.Contains(page, `<a href="#growth">`) {
		t.Fatal("no section on growth")
	}
	if n := strings.Count(section, `<svg class="chart curve growth"`); n != 3 {
		t.Errorf("%d charts, want those of put, get and delete", n)
	}
	for _, want := range []string{"5 keys</th>", "500 keys</th>", `<td class="num none" title="cannot delete `, ">n^0.00</td>", ">n/a</td>"} {
		if !strings.Contains(section, want) {
			t.Errorf("no %s in %s", want, section)
		}
	}
	run.Workloads = run.Workloads[:2]
	if page := render(t, run); strings.Contains(page, `id="growth"`) || strings.Contains(page, "#growth") {
		t.Error("a section on growth, though nothing has several numbers of keys")
	}
}
