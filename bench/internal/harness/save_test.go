package harness

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// A file that cannot be written in the middle used to end the run, and what it had measured
// was lost. It is told of once, and tried again.
func TestAFailedSaveDoesNotEndTheRun(t *testing.T) {
	var out bytes.Buffer
	why, tries := error(errors.New("no space left")), 0
	r := &runner{plan: &Plan{Tables: []Table{{Params: workload.Params{Workload: "w4"}}}}, run: &result.Run{}, cfg: Config{
		Progress: NewProgress(&out, false),
		Save:     func(*result.Run) error { tries++; return why },
	}}
	next := func() string {
		out.Reset()
		r.saved = r.saved.Add(-saveEvery)
		r.save(0, 1)
		return out.String()
	}
	if said := next(); !strings.Contains(said, "warning") || !strings.Contains(said, "no space left") {
		t.Errorf("the first failure: %q", said)
	}
	if said := next(); said != "" {
		t.Errorf("the second, alike: %q", said)
	}
	why = nil
	if said := next(); !strings.Contains(said, "saved again") {
		t.Errorf("when it can be written: %q", said)
	}
	if said := next(); said != "" || tries != 4 {
		t.Errorf("after that: %q, in all %d tries", said, tries)
	}
}

func TestARunWhoseSavesFailIsWhole(t *testing.T) {
	d, err := engine.Find("good")
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Find("w1")
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, workload.Scale{Counts: []int{20}, ValueBytes: 64, Sync: []bool{false}, Seed: 1})
	run, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1, Save: func(*result.Run) error { tries++; return errors.New("no space left") }})
	if err != nil || tries == 0 || len(run.Cells) != 1 || run.Stopped != "" {
		t.Errorf("%v after %d tries: %+v", err, tries, run)
	}
}
