package html

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cairndb/cairn/bench/internal/result"
)

// cellsOf is a table as its texts, the spaces between words single.
func cellsOf(table *html.Node) [][]string {
	var rows [][]string
	for _, tr := range all(all(table, element("tbody", ""))[0], element("tr", "")) {
		var row []string
		for _, c := range all(tr, func(n *html.Node) bool { return n.Data == "th" || n.Data == "td" }) {
			row = append(row, strings.Join(strings.Fields(textOf(c)), " "))
		}
		rows = append(rows, row)
	}
	return rows
}

func TestDurabilityTableMarksFaults(t *testing.T) {
	doc := parse(t, sample())
	table := all(doc, element("table", "durability"))[0]
	want := [][]string{
		{"cairn", "sync on", "every commit 30/30/38", "grouped 40/40/19", "fdatasync 79, fsync 7"},
		{"boltdb", "sync on", "! none 30/0/0 [1]", "n/a", "none seen"},
		{"pebble", "sync on", "could not be counted [2]", "n/a", "none seen"},
		{"cairn", "sync off", "some commits 30/1/7", "n/a", "none seen"},
	}
	if got := cellsOf(table); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if bad := all(table, element("td", "bad")); len(bad) != 1 || !strings.HasPrefix(textOf(bad[0]), "! none") {
		t.Errorf("%d cells are marked", len(bad))
	}
	text := textOf(doc)
	for _, want := range []string{"boltdb: NOT SYNCED: asked for durable commits, it acknowledged 30 commits (put) and synced none", "pebble: no tracer " + hostile, "engines were asked to sync and did not (counted): boltdb"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

func TestWithoutCountsNoDurability(t *testing.T) {
	run := sample()
	run.Durability = nil
	doc := parse(t, run)
	if len(all(doc, element("table", "durability"))) > 0 || strings.Contains(textOf(doc), "asked to sync and did not (counted)") {
		t.Error("durability without counts")
	}
}

func TestFactsNameTheUsersRecords(t *testing.T) {
	run := sample()
	run.Data = result.Data{Seed: 1, PoolBytes: 123_000, File: "real" + hostile + ".jsonl", Records: 420, Skipped: 3, KeyField: "id"}
	want := "seed 1; 420 records of real" + hostile + ".jsonl, 123 kB together, 3 malformed ones left out, keys from field id; snappy"
	if text := textOf(parse(t, run)); !strings.Contains(text, want) {
		t.Errorf("%q is not in the page", want)
	}
}

func TestEveryTableSaysItsRounds(t *testing.T) {
	run := sample()
	last := run.Workloads[1].ID
	run.Cells = slices.DeleteFunc(run.Cells, func(c result.Cell) bool { return c.Workload == last && c.Round == 2 && c.Engine != "cairn" })
	doc := parse(t, run)
	if !strings.Contains(textOf(all(doc, element("p", "lead"))[0]), "1 to 2 rounds of each") {
		t.Error("the head does not say how many rounds there are")
	}
	for i, want := range []string{"2 rounds", "1 to 2 rounds"} {
		section := all(doc, element("article", "workload"))[i]
		if got := textOf(all(section, element("span", "rounds"))[0]); got != want {
			t.Errorf("workload %d: %q, want %q", i, got, want)
		}
		for _, table := range all(section, element("table", "figures")) {
			if caption := textOf(all(table, element("caption", ""))[0]); !strings.Contains(caption, want) && !strings.Contains(caption, "Over time") {
				t.Errorf("%q does not say %q", caption, want)
			}
		}
	}
}

// Kinds of figures are counted apart: the worst of one kind hides the other kinds.
func TestLossesAreCountedByKind(t *testing.T) {
	doc := parse(t, sample())
	rows := cellsOf(all(doc, element("table", "kinds"))[0])
	if len(rows) != 2 || rows[0][0] != "time" || rows[1][0] != "space" {
		t.Fatalf("%q", rows)
	}
	losses := all(doc, element("table", "losses"))[0]
	for _, row := range rows {
		behind := len(all(losses, func(n *html.Node) bool { return n.Data == "tr" && attr(n, "data-kind") == row[0] }))
		if count, _, _ := strings.Cut(row[1], " "); count != string(rune('0'+behind)) {
			t.Errorf("%s: behind in %s, listed are %d", row[0], row[1], behind)
		}
	}
}
