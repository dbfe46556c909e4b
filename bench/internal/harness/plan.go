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
	Subject string // the engine all are compared with
	Tables  []Table
	Rounds  int           // of the cell that has most
	Matter  bool          // more rounds only for engines that may be the best in something
	Most    int           // rounds, if the budget allows; 0: Rounds are what they are
	Budget  time.Duration // no table is begun again if it would end after this; 0: no bound
	Limit   time.Duration // for one cell; 0: by its estimate
	Unfit   []string      // workloads that do not go with the scale, and why
}

// Table is a workload with parameters: what all engines do in turn.
type Table struct {
	Workload workload.Workload
	Params   workload.Params
	Rounds   []int // by engine of the plan; nil: as many as the plan
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

// FitRounds spreads a budget over the cells, by estimates; Run spreads it anew when the
// first round has shown what they take. Every table is done once, then again, those that
// take least first. What is left is spread so that all cells get the same time, those of
// the subject four times as much: again and again the one that has had least is done once
// more, up to most rounds. So a figure of milliseconds is the median of many rounds, one
// of seconds of few; and what is in every ratio is the steadiest (as in Dunnett's design
// of comparisons with a control, JASA 50, 1955, where the control gets more; and its figures
// vary two to four times as much as those of engines that do nothing in the background).
//
// Where only those matter that may be the best in something, each round decides which
// these are, and the others are not done again: two thirds of the time would go to
// figures that no comparison uses. What is left of the time is then spread anew.
func (p *Plan) FitRounds(budget, syncDelay time.Duration, most int) {
	p.Budget, p.Most = budget, most
	p.spread(1, p.estimates(syncDelay), p.EstimateOnce(syncDelay), nil)
}

// spread decides on the rounds after those that are done, at least the first: once says by
// table and engine what a cell takes, what is done has taken spent, and matters says whose
// rounds matter, nil: everybody's. Whoever was not in the last round stays out.
func (p *Plan) spread(done int, once [][]time.Duration, spent time.Duration, matters func(table int, engine string) bool) {
	afford := func(more time.Duration) bool {
		if p.Budget > 0 && spent+more > p.Budget {
			return false
		}
		spent += more
		return true
	}
	cheapest := make([]int, len(p.Tables))
	for t := range p.Tables {
		cheapest[t] = t
		rounds := slices.Repeat([]int{1}, len(p.Engines))
		for e := range rounds {
			if done > 1 {
				rounds[e] = min(p.rounds(t, e), done)
			}
		}
		p.Tables[t].Rounds = rounds
	}
	slices.SortStableFunc(cheapest, func(a, b int) int { return cmp.Compare(sum(once[a]), sum(once[b])) })
	var shares []share // of the cells that may get more rounds
	for _, t := range cheapest {
		if p.Most < 2 || matters == nil && !afford(sum(once[t])) {
			continue
		}
		for e, d := range p.Engines {
			one := share{&p.Tables[t].Rounds[e], once[t][e], 1}
			if d.Info.Name == p.Subject {
				one.weight = 4
			}
			if matters == nil {
				*one.rounds = 2
			}
			if one.once > 0 && (matters == nil || *one.rounds == done && matters(t, d.Info.Name)) {
				shares = append(shares, one)
			}
		}
	}
	for len(shares) > 0 {
		least := 0
		for i, s := range shares {
			if s.had() < shares[least].had() {
				least = i
			}
		}
		if s := shares[least]; *s.rounds < p.Most && afford(s.once) {
			*s.rounds++
		} else {
			shares = slices.Delete(shares, least, least+1)
		}
	}
	p.Rounds = 1
	for _, t := range p.Tables {
		p.Rounds = max(p.Rounds, slices.Max(append(t.Rounds, 1)))
	}
}

// share is a cell's part of the time.
type share struct {
	rounds *int
	once   time.Duration // that one takes
	weight int
}

// had is the time that the cell has had, by its weight.
func (s share) had() time.Duration {
	return time.Duration(*s.rounds) * s.once / time.Duration(s.weight)
}

func sum(times []time.Duration) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return total
}

// Estimate guesses how long the whole plan takes.
func (p *Plan) Estimate(syncDelay time.Duration) time.Duration {
	total := p.verifyEstimate(syncDelay)
	for t, once := range p.estimates(syncDelay) {
		for e := range once {
			total += time.Duration(p.rounds(t, e)) * once[e]
		}
	}
	return total
}

// EstimateOnce guesses how long the verification by counting syncs and the first round
// take.
func (p *Plan) EstimateOnce(syncDelay time.Duration) time.Duration {
	total := p.verifyEstimate(syncDelay)
	for _, once := range p.estimates(syncDelay) {
		total += sum(once)
	}
	return total
}

// estimates guesses what each cell takes, by table and engine.
func (p *Plan) estimates(syncDelay time.Duration) [][]time.Duration {
	all := make([][]time.Duration, len(p.Tables))
	for t := range p.Tables {
		for e, d := range p.Engines {
			all[t] = append(all[t], cell{Table: p.Tables[t], driver: d, engine: e}.estimate(syncDelay))
		}
	}
	return all
}

func (p *Plan) verifyEstimate(syncDelay time.Duration) (total time.Duration) {
	for _, one := range p.probes() {
		total += one.estimate(syncDelay)
	}
	return total
}

// Cells counts the children there will be at most.
func (p *Plan) Cells() (count int) {
	for t := range p.Tables {
		for e := range p.Engines {
			count += p.rounds(t, e)
		}
	}
	return count
}

// rounds is how often an engine does a table.
func (p *Plan) rounds(table, engine int) int {
	if each := p.Tables[table].Rounds; each != nil {
		return each[engine]
	}
	return p.Rounds
}

// cell is one child to be.
type cell struct {
	Table
	table  int // its place in the plan
	driver engine.Driver
	engine int // its place in the plan
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
		cells = append(cells, p.turn(t, n)...)
	}
	return cells
}

// turn lists the cells of one table in a round.
func (p *Plan) turn(table, round int) []cell {
	var cells []cell
	for i := range p.Engines {
		if e := (i + round - 1) % len(p.Engines); p.rounds(table, e) >= round {
			cells = append(cells, cell{p.Tables[table], table, p.Engines[e], e, round, len(cells) + 1})
		}
	}
	return cells
}
