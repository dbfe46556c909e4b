package report

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cairndb/cairn/bench/internal/result"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\tc": "a\nb c", "\x1b[2J": "?[2J", "\x00\r\a\x7f": "????", "\u009b31m": "?31m", "\x9b31m": "?31m", "größer ‡ 1×": "größer ‡ 1×",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// hostile is a run with something for a terminal, and for a reader of Markdown, in every
// text that a file or an engine gives.
func hostile() *result.Run {
	const bad = "\x1b]0;x\a\u009b2J\x9b\x7f\r<img src=x>"
	run := sample()
	run.Stopped, run.Machine.CPU, run.Machine.Kernel, run.Machine.Filesystem = bad, bad, bad, bad
	w := &run.Workloads[0]
	w.ID += bad
	w.Title, w.Conditions, w.Columns[0].Title = bad, []string{bad}, bad
	for i := range run.Cells {
		c := &run.Cells[i]
		c.Workload, c.Reason, c.Notes, c.NA = w.ID, bad, []string{bad}, map[string]string{"close": bad}
		delete(c.Metrics, "close")
		if c.Engine == "slow" {
			c.Engine = "slow" + bad
		}
	}
	run.Engines[2] = result.Engine{Name: "slow" + bad, Title: bad, Version: bad, Settings: []result.Setting{{Option: bad, Reason: bad}}}
	run.Durability = []result.Durability{{Engine: "rival", Kind: bad, Class: result.NotCounted, Why: bad, Calls: map[string]int{bad: 1}}}
	return run
}

// What a saved run or an engine says used to reach the terminal as it is, and Markdown.
func TestNoReportSteersATerminal(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *result.Run) error{"text": Text, "markdown": Markdown, "benchstat": Benchstat} {
		var out bytes.Buffer
		if err := write(&out, hostile()); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 }); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%s: a control character at %d of %q", name, i, text)
		}
		if !strings.Contains(text, "img src=x") {
			t.Errorf("%s shows nothing of it: %q", name, text)
		}
		if name == "markdown" && strings.Contains(text, "<img") {
			t.Errorf("a tag: %q", text)
		}
	}
}
