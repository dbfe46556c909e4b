package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// A run that ended in the middle goes on with the table it was in; what was done before
// stays as it was, and what does not fit is refused with the file untouched.
func TestContinue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "part.json")
	args := func(engines string) []string {
		return []string{"run", "-suite", "w1/sound,w4/sound", "-n", "20", "-rounds", "2", "-engines", engines, "-sync", "off", "-settle=false",
			"-dir", t.TempDir(), "-continue", file}
	}
	if _, errs, err := call(t.Context(), args("bbolt,gomap")...); err != nil {
		t.Fatalf("begun: %v\n%s", err, errs)
	}
	whole, err := readRun(file)
	if err != nil || len(whole.Cells) != 8 || whole.Stopped != "" || len(whole.Continued) != 0 {
		t.Fatalf("%v: %+v", err, whole)
	}
	part := *whole
	part.Machine.Load, part.Machine.SyncDelay = "70.00 80.00 90.00", time.Hour
	part.Cells, part.Whole, part.Stopped = whole.Cells[:5], 4, "the first part" // the first round of both tables, and half of the next
	if err := writeJSON(file, &part); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := args("bbolt,pogreb")
	killed := leftover(t, other[slices.Index(other, "-dir")+1])
	if _, _, err := call(t.Context(), other...); exitCode(err) != 2 || !strings.Contains(err.Error(), "cannot be continued: the list of engines was") {
		t.Errorf("with another engine: %v", err)
	}
	if _, err := os.Stat(killed); err != nil {
		t.Error("a run that was refused has removed something")
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("a run that was refused has changed the file")
	}
	text, errs, err := call(t.Context(), args("bbolt,gomap")...)
	if err != nil {
		t.Fatalf("continued: %v\n%s", err, errs)
	}
	again, err := readRun(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Cells) != 8 || again.Stopped != "" || len(again.Continued) != 1 || !again.Started.Equal(whole.Started) || again.Elapsed <= whole.Elapsed {
		t.Errorf("%d cells, %q, continued %v, started %v, took %v", len(again.Cells), again.Stopped, again.Continued, again.Started, again.Elapsed)
	}
	if again.Machine.Load != part.Machine.Load || again.Machine.SyncDelay != time.Hour {
		t.Errorf("the conditions are not those of the first part: %+v", again.Machine)
	}
	for i, c := range again.Cells {
		if same := c.Elapsed == whole.Cells[i].Elapsed; same != (i < 4) {
			t.Errorf("cell %d (%s %s round %d): the same as before: %v", i, c.Engine, c.Workload, c.Round, same)
		}
	}
	if !strings.Contains(text, "in 2 parts, begun") {
		t.Error("the report does not say that the run was made in parts")
	}
	if _, errs, err := call(t.Context(), args("bbolt,gomap")...); err != nil {
		t.Fatalf("with nothing left to do: %v\n%s", err, errs)
	}
	again.Command = nil // each names a directory of its own
	idle, err := readRun(file)
	if err != nil {
		t.Fatal(err)
	}
	if idle.Command = nil; !reflect.DeepEqual(idle, again) {
		t.Errorf("with nothing left to do: continued %v, took %v, were %v, %v", idle.Continued, idle.Elapsed, again.Continued, again.Elapsed)
	}
	for name, what := range map[string]func(*result.Run){
		"the program":           func(r *result.Run) { r.Build = "other" },
		"the processor":         func(r *result.Run) { r.Machine.CPU = "other" },
		"the seed":              func(r *result.Run) { r.Data.Seed++ },
		"the number of records": func(r *result.Run) { r.Data.Records++ },
		"of workloads":          func(r *result.Run) { r.Workloads, r.Cells = r.Workloads[:1], nil },
	} {
		other := *whole
		what(&other)
		if err := writeJSON(file, &other); err != nil {
			t.Fatal(err)
		}
		if _, _, err := call(t.Context(), args("bbolt,gomap")...); exitCode(err) != 2 || !strings.Contains(err.Error(), name+" was ") || strings.Contains(err.Error(), "{") {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}

// leftover makes what the next run in a directory removes.
func leftover(t *testing.T, dir string) string {
	t.Helper()
	name, past := filepath.Join(dir, "cairn-bench-tmp-1"), time.Now().Add(-time.Hour)
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, past, past); err != nil {
		t.Fatal(err)
	}
	return name
}
