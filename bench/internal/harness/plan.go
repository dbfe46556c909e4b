package harness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Plan is what a run will do.
type Plan struct {
	Engines []engine.Driver
	Tables  []Table
	Rounds  int           // of the table that has most
	Most    int           // rounds, if the budget allows; 0: Rounds are what they are
	Budget  time.Duration // no table is begun again if it would end after this; 0: no bound
	Limit   time.Duration // for one cell; 0: by its estimate
	Unfit   []string      // workloads that do not go with the scale, and why
}

// Table is a workload with parameters: what all engines do in turn.
type Table struct {
	Workload workload.Workload
	Params   workload.Params
	Rounds   int // at most; 0: as many as the plan
}

// NewPlan lists the cells, for one round.
func NewPlan(engines []engine.Driver, workloads []workload.Workload, scale workload.Scale) Plan {
	p := Plan{Engines: engines, Rounds: 1}
	for _, w := range workloads {
		cells := w.Cells(scale)
		if len(cells) == 0 && w.Unfit != nil {
			p.Unfit = append(p.Unfit, fmt.Sprintf("%s/%s: %s", w.Name, w.Variant, w.Unfit(scale)))
		}
		for _, params := range cells {
			p.Tables = append(p.Tables, Table{Workload: w, Params: params})
		}
	}
	return p
}

// FitRounds spreads a budget over the tables, by estimates: each is done once, then
// those that take least are done again, and again, up to most rounds, as long as all
// fit. Run spreads it anew when the first round has shown what the tables take.
func (p *Plan) FitRounds(budget, syncDelay time.Duration, most int) {
	p.Budget, p.Most = budget, most
	once := make([]time.Duration, len(p.Tables))
	for i := range p.Tables {
		once[i] = p.tableEstimate(i, syncDelay)
	}
	p.spread(once, p.EstimateOnce(syncDelay))
}

// spread decides on the rounds after the first: each table takes what once says, and
// the first round of all has taken spent.
func (p *Plan) spread(once []time.Duration, spent time.Duration) {
	cheapest := make([]int, len(p.Tables))
	for i := range p.Tables {
		cheapest[i], p.Tables[i].Rounds = i, 1
	}
	slices.SortStableFunc(cheapest, func(a, b int) int { return cmp.Compare(once[a], once[b]) })
	p.Rounds = 1
	for round := 2; round <= p.Most; round++ {
		for _, i := range cheapest {
			if p.Tables[i].Rounds < round-1 || p.Budget > 0 && spent+once[i] > p.Budget {
				continue
			}
			spent += once[i]
			p.Tables[i].Rounds, p.Rounds = round, round
		}
	}
}

// Estimate guesses how long the whole plan takes.
func (p *Plan) Estimate(syncDelay time.Duration) time.Duration {
	total := p.verifyEstimate(syncDelay)
	for i := range p.Tables {
		total += time.Duration(p.rounds(i)) * p.tableEstimate(i, syncDelay)
	}
	return total
}

// EstimateOnce guesses how long the verification by counting syncs and the first round
// take.
func (p *Plan) EstimateOnce(syncDelay time.Duration) time.Duration {
	total := p.verifyEstimate(syncDelay)
	for i := range p.Tables {
		total += p.tableEstimate(i, syncDelay)
	}
	return total
}

func (p *Plan) verifyEstimate(syncDelay time.Duration) (total time.Duration) {
	for _, one := range p.probes() {
		total += one.estimate(syncDelay)
	}
	return total
}

// Cells counts the children there will be at most.
func (p *Plan) Cells() (count int) {
	for i := range p.Tables {
		count += p.rounds(i) * len(p.Engines)
	}
	return count
}

func (p *Plan) rounds(table int) int {
	if n := p.Tables[table].Rounds; n > 0 {
		return min(n, p.Rounds)
	}
	return p.Rounds
}

// tableEstimate guesses one round of one table.
func (p *Plan) tableEstimate(table int, syncDelay time.Duration) (total time.Duration) {
	for _, d := range p.Engines {
		total += cell{Table: p.Tables[table], driver: d}.estimate(syncDelay)
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
	return c.Workload.TimeOf(c.Params, c.driver.Info, syncDelay)
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
	for t := range p.Tables {
		if p.rounds(t) >= n {
			cells = append(cells, p.turn(t, n)...)
		}
	}
	return cells
}

// turn lists the cells of one table in a round.
func (p *Plan) turn(table, round int) []cell {
	cells := make([]cell, len(p.Engines))
	for i := range p.Engines {
		d := p.Engines[(i+round-1)%len(p.Engines)]
		cells[i] = cell{p.Tables[table], d, round, i + 1}
	}
	return cells
}
