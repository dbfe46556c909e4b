package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

// saved writes a small run to a file; cairn's puts take so long.
func saved(t *testing.T, name string, put float64) string {
	t.Helper()
	w := result.Workload{ID: "w1/sound/n=3/v=5/sync=on", Name: "w1", Title: "W1 lifecycle: all of it", N: 3, Sync: true,
		Columns: []result.Column{{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp, Ranked: true}}}
	run := &result.Run{Schema: result.Schema, Rounds: 1, Workloads: []result.Workload{w}, Engines: []result.Engine{{Name: "cairn"}, {Name: "bbolt"}}}
	for engine, v := range map[string]float64{"cairn": put, "bbolt": 100} {
		run.Cells = append(run.Cells, result.Cell{Workload: w.ID, Engine: engine, Round: 1, Status: result.OK, Metrics: map[string]float64{"put": v}})
	}
	var text bytes.Buffer
	if err := run.Encode(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReportOfASavedRun(t *testing.T) {
	file := saved(t, "a.json", 250)
	for format, want := range map[string]string{"text": "2.50x", "json": `"schema": "cairn-bench/1"`, "benchstat": "BenchmarkW1/", "markdown": "| **cairn** | 250 ns |", "html": "<!DOCTYPE html>"} {
		out, _, err := call(t.Context(), "report", file, "-format", format)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", format, err, out)
		}
	}
	for args, want := range map[string]string{"-workload w1/n=3 -column put": "| bbolt | **100 ns** |", "-workload w2": `no workload "w2"`, "-column get": `no column "get"`} {
		out, _, err := call(t.Context(), append([]string{"report", file, "-format", "markdown"}, strings.Fields(args)...)...)
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, want) {
			t.Errorf("%s: %s", args, out)
		}
	}
	page := filepath.Join(t.TempDir(), "out.html")
	out, _, err := call(t.Context(), "report", file, "-html", page)
	text, reading := os.ReadFile(page)
	if err != nil || reading != nil || out != "" || !strings.Contains(string(text), "2.50×") {
		t.Errorf("-html: %v %v, on standard output %q", err, reading, out)
	}
	if left, _ := os.ReadDir(filepath.Dir(page)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCompareExitCodes(t *testing.T) {
	a, b, near := saved(t, "a.json", 250), saved(t, "b.json", 500), saved(t, "c.json", 260)
	other := filepath.Join(t.TempDir(), "none.json")
	if err := os.WriteFile(other, []byte(`{"schema":"cairn-bench/1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{a, b}, 0, "0 of 1 cells moved by at most 20 %"},
		{[]string{a, b, "-fail-above", "20"}, 1, "0 of 1 cells moved by at most 20 %"},
		{[]string{a, b, "-fail-above", "101"}, 0, "1 of 1 cells moved by at most 101 %"},
		{[]string{a, near, "-fail-above", "20"}, 0, "1 of 1 cells"},
		{[]string{a, b, "-format", "json"}, 0, `"moved_percent": 100`},
		{[]string{a, other}, 0, "nothing in both runs"},
		{[]string{a, other, "-fail-above", "20"}, 1, "nothing in both runs"},
	} {
		out, _, err := call(t.Context(), append([]string{"compare"}, c.args...)...)
		if exitCode(err) != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, want %d\n%s", c.args, exitCode(err), c.code, out)
		}
	}
}

func TestWrongUsageOfReports(t *testing.T) {
	file := saved(t, "a.json", 250)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"schema":"other"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report"}, {"report", file, file}, {"report", file, "-format", "pdf"}, {"report", "nosuch.json"}, {"report", broken},
		{"compare", file}, {"compare", file, broken}, {"compare", file, file, "-format", "html"}, {"compare", file, file, "-fail-above", "-1"}, {"compare", file, file, "-fail-above", "NaN"}, {"compare", file, file, "-fail-above", "Inf"},
		{"run", "-n", "10", "-html", filepath.Join(t.TempDir(), "nosuch", "out.html")},
	} {
		if _, _, err := call(t.Context(), args...); exitCode(err) != 2 {
			t.Errorf("%v: %v is exit code %d, want 2", args, err, exitCode(err))
		}
	}
}

// A report that was cut short, and a page that is none, are told as what they are.
func TestAReportThatIsNotWhole(t *testing.T) {
	page := filepath.Join(t.TempDir(), "out.html")
	if _, _, err := call(t.Context(), "report", saved(t, "a.json", 250), "-html", page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inside := bytes.Index(text, []byte(`"schema"`))
	for _, cut := range []string{string(text[:100]), string(text[:inside]), string(text[:inside+200]), "\n<html></html>"} {
		if err := os.WriteFile(page, []byte(cut), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := call(t.Context(), "report", page); exitCode(err) != 2 || !strings.Contains(err.Error(), "not whole, or holds no run") {
			t.Errorf("of %d bytes: %v", len(cut), err)
		}
	}
}

func TestRunWritesThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "out.html")
	_, errs, err := call(t.Context(), "run", "-n", "30", "-rounds", "1", "-engines", "cairn,gomap", "-suite", "w1", "-sync", "off", "-settle=false", "-dir", t.TempDir(), "-html", page)
	text, reading := os.ReadFile(page)
	if err != nil || reading != nil || !strings.Contains(string(text), "cairn was not run beside a rival") || !strings.Contains(errs, "the report for browsers is "+page) {
		t.Errorf("%v %v\n%s", err, reading, errs)
	}
}

func TestWhichRunsLeaveAPage(t *testing.T) {
	for _, c := range []struct {
		flags flags
		want  string
	}{
		{flags{}, defaultPage}, {flags{quick: true, counts: []int{5}}, defaultPage}, {flags{full: true}, defaultPage},
		{flags{counts: []int{5}}, ""}, {flags{suite: []string{"w1"}}, ""}, {flags{html: "none"}, noPage}, {flags{quick: true, html: "none"}, noPage}, {flags{counts: []int{5}, html: "x.html"}, "x.html"},
	} {
		for range 2 { // a run asks twice
			if c.flags.choosePage(); c.flags.html != c.want {
				t.Errorf("%q, want %q", c.flags.html, c.want)
			}
		}
	}
}
