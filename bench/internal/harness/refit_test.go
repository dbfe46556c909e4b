package harness

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

func TestRoundsFollowWhatTheFirstTook(t *testing.T) {
	plan := planOf(10, 1, 3)
	plan.FitRounds(15*time.Minute, 0, 3)
	took := [][]time.Duration{halves(2), halves(6), halves(1)}
	r := &runner{plan: &plan, run: &result.Run{}}
	r.fit(1, took, 9*time.Minute)
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(2, 0)); got != "3 1 3" || r.run.Rounds != 3 {
		t.Errorf("rounds %s, %d at most; want 3 1 3 and 3", got, r.run.Rounds)
	}
	plan = planOf(10, 1, 3)
	plan.FitRounds(15*time.Minute, 0, 3)
	plan.spread(1, took, 9*time.Minute, func(table int, _ string) bool { return table == 1 })
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(1, 1), plan.rounds(2, 0)); got != "1 2 2 1" {
		t.Errorf("rounds %s, where only the second table's matter and two fit; want 1 2 2 1", got)
	}
	fixed := planOf(1)
	r = &runner{plan: &fixed, run: &result.Run{}}
	if r.fit(1, [][]time.Duration{halves(60)}, time.Hour); fixed.Rounds != 1 || fixed.Tables[0].Rounds != nil {
		t.Error("a plan without a choice of rounds was changed")
	}
}

// halves are the times of the two engines of planOf.
func halves(minutes int) []time.Duration {
	return slices.Repeat([]time.Duration{time.Duration(minutes) * time.Minute / 2}, 2)
}

// After later rounds the time is spread anew: what turned out to take longer is done less
// often, and who no longer matters, or was not in the last round, not at all.
func TestRoundsFollowWhatLaterOnesTook(t *testing.T) {
	plan := planOf(10, 1)
	plan.FitRounds(28*time.Minute, 0, 9)
	all := func(int, string) bool { return true }
	plan.spread(1, [][]time.Duration{halves(2), halves(2)}, 4*time.Minute, all)
	if got := plan.rounds(0, 0); got != 7 {
		t.Fatalf("%d rounds of 4 min in the 24 that are left; want 7 with the first", got)
	}
	plan.Tables[1].Rounds = []int{1, 2}
	plan.spread(2, [][]time.Duration{halves(4), halves(4)}, 10*time.Minute, all)
	if got := fmt.Sprint(plan.Tables[0].Rounds, plan.Tables[1].Rounds); got != "[5 5] [1 5]" {
		t.Errorf("rounds %s; want 3 more of 2 min for each of three cells, none for who was out", got)
	}
	plan.spread(3, [][]time.Duration{halves(4), halves(4)}, 16*time.Minute, func(table int, _ string) bool { return table == 0 })
	if got := fmt.Sprint(plan.Tables[0].Rounds, plan.Tables[1].Rounds); got != "[6 6] [1 3]" {
		t.Errorf("rounds %s; want all that is left for the first table", got)
	}
}

// A tally has what the rounds took that are counted, whoever did them.
func TestTally(t *testing.T) {
	plan := planOf(10, 1)
	id, names := plan.Tables[1].Params.ID(), []string{"one", "two"}
	for e, name := range names {
		plan.Engines[e].Info.Name = name
	}
	r := &runner{plan: &plan, run: &result.Run{Cells: []result.Cell{
		{Workload: id, Engine: names[0], Round: 1, Elapsed: 2 * time.Second},
		{Workload: id, Engine: names[1], Round: 1, Elapsed: 3 * time.Second},
		{Workload: id, Engine: names[0], Round: 2, Elapsed: 4 * time.Second},
		{Workload: id, Engine: names[0], Round: 3, Elapsed: time.Hour},
	}}}
	took, spent := r.tally(2)
	if got := fmt.Sprint(took, spent); got != "[[0s 0s] [3s 3s]] 9s" {
		t.Errorf("%s; want the means of two rounds and one, and their sum", got)
	}
}
