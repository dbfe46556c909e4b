package harness

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// quickTimes are what the cells of the first round of a quick run took, on two cores, but
// for those that the note of the file names.
type quickTimes struct {
	SyncDelay     time.Duration                 `json:"sync_delay_ns"`
	VerifySeconds float64                       `json:"verify_seconds"`
	Seconds       map[string]map[string]float64 `json:"seconds"` // by workload and engine
}

func readQuickTimes(t *testing.T) (runs []quickTimes) {
	t.Helper()
	text, err := os.ReadFile("testdata/quick-times.json")
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	if err != nil || len(runs) == 0 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return runs
}

// quickPlan is the quick suite on every engine there is a driver file for, present or
// not.
func quickPlan(t *testing.T) Plan {
	t.Helper()
	workloads, err := workload.Choose(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	var engines []engine.Driver
	for _, d := range engine.All() {
		if d.Info.Title != fakeTitle {
			d.Info.Absent = ""
			engines = append(engines, d)
		}
	}
	return NewPlan(engines, workloads, workload.Scale{})
}

// The duration announced for the first round holds within 30 %, and no engine and no
// workload is far off in one direction, but for those that hardly take any time.
func TestTheQuickRunTakesWhatIsAnnounced(t *testing.T) {
	for _, run := range readQuickTimes(t) {
		plan := quickPlan(t)
		guessed, took := plan.EstimateOnce(run.SyncDelay).Seconds(), run.VerifySeconds
		byEngine := map[string][2]float64{}
		for _, table := range plan.Tables {
			var sum [2]float64
			for _, d := range plan.Engines {
				seconds, ok := run.Seconds[table.Params.ID()][d.Info.Name]
				if !ok {
					t.Fatalf("%s on %s was not measured", table.Params.ID(), d.Info.Name)
				}
				guess := cell{Table: table, driver: d}.estimate(run.SyncDelay).Seconds()
				of := byEngine[d.Info.Name]
				byEngine[d.Info.Name] = [2]float64{of[0] + guess, of[1] + seconds}
				sum, took = [2]float64{sum[0] + guess, sum[1] + seconds}, took+seconds
			}
			holds(t, table.Params.ID(), sum[0], sum[1], 0.5)
		}
		for name, of := range byEngine {
			holds(t, name, of[0], of[1], 0.5)
		}
		holds(t, "verification", plan.verifyEstimate(run.SyncDelay).Seconds(), run.VerifySeconds, 0.5)
		holds(t, "the first round", guessed, took, 0.3)
	}
}

// holds: a guess is within a part of what something took, if that was some seconds.
func holds(t *testing.T, what string, guess, took, within float64) {
	t.Helper()
	t.Logf("%-45s guessed %6.1f s, took %6.1f s", what, guess, took)
	if ratio := guess / took; took > 2 && (ratio > 1+within || ratio < 1-within) {
		t.Errorf("%s: guessed %.1f s, took %.1f s", what, guess, took)
	}
}

func TestTheVerificationIsPartOfTheEstimate(t *testing.T) {
	plan := quickPlan(t)
	const delay = time.Millisecond
	var cells time.Duration
	for _, once := range plan.estimates(delay) {
		cells += sum(once)
	}
	verification := plan.EstimateOnce(delay) - cells
	if verification <= 0 || plan.Estimate(delay) != plan.EstimateOnce(delay) {
		t.Errorf("verification %s, whole plan %s, first round %s", verification, plan.Estimate(delay), plan.EstimateOnce(delay))
	}
	p := NewProgress(&lockedBuffer{}, false)
	p.begin(&plan, delay, time.Now())
	for _, one := range plan.probes() {
		p.verifying(one)
		p.verified(one)
	}
	if p.left != cells {
		t.Errorf("when the verification is over %s are left, want %s", p.left, cells)
	}
}

func TestWhatAnEngineCannotDoTakesNoTime(t *testing.T) {
	for _, d := range quickPlan(t).Engines {
		if d.Info.Can(engine.CanGet) {
			continue
		}
		w, _ := workload.Find("load")
		p := workload.Params{Workload: "load", N: 1 << 20, ValueBytes: 100}
		if got := w.TimeOf(p, d.Info, time.Millisecond); got > time.Second {
			t.Errorf("%s: %s for a workload of which it can do nothing", d.Info.Name, got)
		}
	}
}
