package harness

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Where cells take longer than was planned there are fewer rounds: what is left is no more than the
// budget, but for the first round, which is made however long it takes.
func TestTheTimeLeftIsWithinTheBudget(t *testing.T) {
	plan := planOf(10, 1)
	plan.Budget, plan.Rounds = 100*time.Second, 5
	p := NewProgress(nil, false)
	p.budget, p.started = plan.Budget, time.Now().Add(-30*time.Second)
	p.left, p.first = 110*time.Second, 22*time.Second
	within := func(what string, least, most time.Duration) {
		t.Helper()
		if left := p.timeLeft(); left > most || left < least {
			t.Errorf("%s: %s are left, want %s to %s", what, left, least, most)
		}
	}
	within("planned", 40*time.Second, 70*time.Second)
	p.once = [][]time.Duration{{10 * time.Second}, {time.Second}}
	slow := cell{Table: plan.Tables[0], round: 1}
	p.done(slow, result.Cell{Status: result.OK, Elapsed: 100 * time.Second})
	within("ten times as slow, in the first round", 120*time.Second, 120*time.Second)
	p.first = 0
	within("and after it", 40*time.Second, 70*time.Second)
	p.started = time.Now().Add(-time.Hour)
	within("when the time is over", 0, 0)
	p.budget = 0
	within("without a budget", 1000*time.Second, 1000*time.Second)
}
