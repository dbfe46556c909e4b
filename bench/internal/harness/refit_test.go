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
	r := &runner{plan: &plan, run: &result.Run{}, took: [][]time.Duration{halves(2), halves(6), halves(1)}}
	r.fit(9 * time.Minute)
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(2, 0)); got != "3 1 3" || r.run.Rounds != 3 {
		t.Errorf("rounds %s, %d at most; want 3 1 3 and 3", got, r.run.Rounds)
	}
	plan = planOf(10, 1, 3)
	plan.FitRounds(15*time.Minute, 0, 3)
	took := [][]time.Duration{halves(2), halves(6), halves(1)}
	plan.spread(took, 9*time.Minute, func(table int, _ string) bool { return table == 1 })
	if got := fmt.Sprint(plan.rounds(0, 0), plan.rounds(1, 0), plan.rounds(1, 1), plan.rounds(2, 0)); got != "1 2 2 1" {
		t.Errorf("rounds %s, where only the second table's matter and two fit; want 1 2 2 1", got)
	}
	fixed := planOf(1)
	r = &runner{plan: &fixed, run: &result.Run{}, took: [][]time.Duration{halves(60)}}
	if r.fit(time.Hour); fixed.Rounds != 1 || fixed.Tables[0].Rounds != nil {
		t.Error("a plan without a choice of rounds was changed")
	}
}

// halves are the times of the two engines of planOf.
func halves(minutes int) []time.Duration {
	return slices.Repeat([]time.Duration{time.Duration(minutes) * time.Minute / 2}, 2)
}
