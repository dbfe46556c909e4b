package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// shown is what so many rounds of all cells have shown that take that long.
func shown(rounds int, spent time.Duration, took ...[]time.Duration) tally {
	so := tally{took: took, spent: spent}
	for range took {
		so.did = append(so.did, []int{rounds, rounds})
	}
	return so
}

func TestRoundsFollowWhatTheFirstTook(t *testing.T) {
	plan := planOf(10, 1, 3)
	plan.FitRounds(15*time.Minute, 0, 3)
	so := shown(1, 9*time.Minute, halves(2), halves(6), halves(1))
	r := &runner{plan: &plan, run: &result.Run{}}
	r.fit(1, so)
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(2, 0)); got != "3 1 3" || r.run.Rounds != 3 {
		t.Errorf("rounds %s, %d at most; want 3 1 3 and 3", got, r.run.Rounds)
	}
	plan = planOf(10, 1, 3)
	plan.FitRounds(15*time.Minute, 0, 3)
	plan.spread(1, so, only(1))
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(1, 1), plan.rounds(2, 0)); got != "1 2 2 1" {
		t.Errorf("rounds %s, where only the second table's matter and two fit; want 1 2 2 1", got)
	}
	fixed := planOf(1)
	r = &runner{plan: &fixed, run: &result.Run{}}
	if r.fit(1, shown(1, time.Hour, halves(60))); fixed.Rounds != 1 || fixed.Tables[0].Rounds != nil {
		t.Error("a plan without a choice of rounds was changed")
	}
}

// only the rounds of one table matter.
func only(table int) func(int, string) float64 {
	return func(t int, _ string) float64 {
		if t == table {
			return 1
		}
		return 0
	}
}

// halves are the times of the two engines of planOf.
func halves(minutes int) []time.Duration {
	return slices.Repeat([]time.Duration{time.Duration(minutes) * time.Minute / 2}, 2)
}

// After later rounds the time is spread anew: what turned out to take longer is done less
// often, and who no longer matters not at all.
func TestRoundsFollowWhatLaterOnesTook(t *testing.T) {
	plan := planOf(10, 1)
	plan.FitRounds(28*time.Minute, 0, 9)
	all := func(int, string) float64 { return 1 }
	plan.spread(1, shown(1, 4*time.Minute, halves(2), halves(2)), all)
	if got := plan.rounds(0, 0); got != 7 {
		t.Fatalf("%d rounds of 4 min in the 24 that are left; want 7 with the first", got)
	}
	so := shown(2, 10*time.Minute, halves(4), halves(4))
	so.did[1][0] = 1
	plan.spread(2, so, all)
	if got := fmt.Sprint(plan.Tables[0].Rounds, plan.Tables[1].Rounds); got != "[4 4] [4 4]" {
		t.Errorf("rounds %s; want those who had fewer to have as many", got)
	}
	plan.spread(3, shown(3, 16*time.Minute, halves(4), halves(4)), only(0))
	if got := fmt.Sprint(plan.Tables[0].Rounds, plan.Tables[1].Rounds); got != "[6 6] [3 3]" {
		t.Errorf("rounds %s; want all that is left for the first table", got)
	}
}

// More is at stake for who varies more and is in more comparisons.
func TestRoundsGoWhereMostIsAtStake(t *testing.T) {
	plan := planOf(2)
	plan.Engines[0].Info.Name = "steady"
	plan.FitRounds(time.Hour, 0, 15)
	plan.Budget = 12 * time.Minute
	plan.spread(1, shown(1, 2*time.Minute, halves(2)), func(_ int, engine string) float64 {
		if engine == "steady" {
			return 1
		}
		return 4
	})
	if got := fmt.Sprint(plan.Tables[0].Rounds); got != "[4 8]" {
		t.Errorf("rounds %s of 10 more; want about twice as many for four times the variance", got)
	}
}

// Who has fewer rounds than others has them at even distances.
func TestFewRoundsAreSpreadOverTheRun(t *testing.T) {
	plan := planOf(3)
	plan.Engines = append(plan.Engines, plan.Engines[0])
	plan.Tables[0].Rounds = []int{13, 4, 1}
	plan.Rounds = 13
	so := tally{did: [][]int{{1, 1, 1}}}
	times := [3][]int{{1}, {1}, {1}}
	for n := 1; n < plan.Rounds; n++ {
		plan.schedule(n, so)
		for _, c := range plan.turn(0, n+1) {
			so.did[0][c.engine]++
			times[c.engine] = append(times[c.engine], n+1)
		}
	}
	if got := fmt.Sprint(times); got != "[[1 2 3 4 5 6 7 8 9 10 11 12 13] [1 3 8 11] [1]]" {
		t.Errorf("rounds %s", got)
	}
}

// A tally has what the rounds took that are counted, whoever did them, stolen time left out
// of what a cell takes.
func TestTally(t *testing.T) {
	plan := planOf(10, 1)
	id, names := plan.Tables[1].Params.ID(), []string{"one", "two"}
	for e, name := range names {
		plan.Engines[e].Info.Name = name
	}
	r := &runner{plan: &plan, run: &result.Run{Cells: []result.Cell{
		{Workload: id, Engine: names[0], Round: 1, Elapsed: 2 * time.Second},
		{Workload: id, Engine: names[1], Round: 1, Elapsed: 3 * time.Second},
		{Workload: id, Engine: names[0], Round: 2, Elapsed: 16 * time.Second, Weather: &result.Weather{Stolen: 0.75}},
		{Workload: id, Engine: names[0], Round: 3, Elapsed: time.Hour},
	}}}
	so := r.tally(2)
	if got := fmt.Sprint(so.took, so.did, so.spent); got != "[[0s 0s] [3s 3s]] [[0 0] [2 1]] 21s" {
		t.Errorf("%s; want the means of two rounds and one, and their sum", got)
	}
}

// A run whose rounds take longer than their cells alone ends when nothing more fits.
func TestARunEndsWithItsBudget(t *testing.T) {
	var engines []engine.Driver
	for _, name := range []string{"cairn", "good"} {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, d)
	}
	w, err := workload.Find("w1/sound")
	if err != nil {
		t.Fatal(err)
	}
	plan := NewPlan(engines, []workload.Workload{w}, workload.Scale{Counts: []int{20}, ValueBytes: 64, Sync: []bool{false}, Seed: 1})
	plan.Matter, plan.Limit = true, time.Minute
	plan.FitRounds(3*time.Second, 0, 1_000)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := Run(ctx, plan, Config{Dir: t.TempDir(), Seed: 1})
	// If cells take as long as was planned, no round is left out that was.
	byItself := got.Stopped == "" || strings.Contains(got.Stopped, "what fits into 3s")
	if err != nil || !byItself || len(got.Cells) >= 2*1_000 {
		t.Errorf("%d cells, stopped %q, %v; want it to end by itself", len(got.Cells), got.Stopped, err)
	}
}
