package harness

import (
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Plan is what a run will do.
type Plan struct {
	Engines []engine.Driver
	Tables  []Table
	Rounds  int           // at most
	Budget  time.Duration // no further round begins if it would end after this; 0: no bound
	Limit   time.Duration // for one cell; 0: by its estimate
}

// Table is a workload with parameters: what all engines do in turn.
type Table struct {
	Workload workload.Workload
	Params   workload.Params
}

// NewPlan lists the cells. Rounds 0 means as many of up to most as fit the
// budget, and at least one.
func NewPlan(engines []engine.Driver, workloads []workload.Workload, scale workload.Scale) Plan {
	p := Plan{Engines: engines, Rounds: 1}
	for _, w := range workloads {
		for _, params := range w.Cells(scale) {
			p.Tables = append(p.Tables, Table{w, params})
		}
	}
	return p
}

// FitRounds sets Rounds to what fits the budget: at least one, at most most.
func (p *Plan) FitRounds(budget, syncDelay time.Duration, most int) {
	p.Budget = budget
	p.Rounds = most
	if round := p.roundEstimate(syncDelay); budget > 0 && round > 0 {
		p.Rounds = max(1, min(most, int(budget/round)))
	}
}

// Estimate guesses how long the whole plan takes.
func (p *Plan) Estimate(syncDelay time.Duration) time.Duration {
	return time.Duration(p.Rounds) * p.roundEstimate(syncDelay)
}

func (p *Plan) roundEstimate(syncDelay time.Duration) time.Duration {
	var total time.Duration
	for _, c := range p.round(1) {
		total += c.estimate(syncDelay)
	}
	return total
}

// cell is one child to be.
type cell struct {
	Table
	driver engine.Driver
	round  int
	place  int
}

func (c cell) estimate(syncDelay time.Duration) time.Duration {
	if c.driver.Info.Absent != "" {
		return 0
	}
	return c.Workload.Estimate(c.Params, c.driver.Info, syncDelay)
}

// limit is the time after which the cell counts as hung: far more than it takes.
func (c cell) limit(p *Plan, syncDelay time.Duration) time.Duration {
	if p.Limit > 0 {
		return p.Limit
	}
	return 2*time.Minute + 20*c.estimate(syncDelay)
}

// round lists the cells of a round, counted from 1. Each round begins with the
// engine after the one the round before began with.
func (p *Plan) round(n int) []cell {
	var cells []cell
	for _, t := range p.Tables {
		for i := range p.Engines {
			d := p.Engines[(i+n-1)%len(p.Engines)]
			cells = append(cells, cell{t, d, n, i + 1})
		}
	}
	return cells
}
