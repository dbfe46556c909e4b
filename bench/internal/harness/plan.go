package harness

import (
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
	Rounds  int           // of the run: some cells are not in all of them
	Matter  bool          // more rounds only where they steady a ratio of Cairn to the best rival
	Most    int           // rounds, if the budget allows; 0: Rounds are what they are
	Budget  time.Duration // no table is begun again if it would end after this; 0: no bound
	Limit   time.Duration // for one cell; 0: by its estimate
	Unfit   []string      // workloads that do not go with the scale, and why
}

// Table is a workload with parameters: what all engines do in turn.
type Table struct {
	Workload workload.Workload
	Params   workload.Params
	Rounds   []int // by engine of the plan, in all; nil: as many as the plan

	next   []bool    // by engine: is in the next round; nil: in all up to its last
	credit []float64 // by engine: of a round, what is due and not yet done
	due    []float64 // by engine: of being the first of a turn, what is due and not yet had
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
	limit := 2*time.Minute + 20*c.estimate(syncDelay)
	if c.Params.Memory > 0 {
		limit = max(limit, boundedPatience) // what it takes within a bound nobody can estimate
	}
	return limit
}

// round lists the cells of a round, counted from 1, the next one.
func (p *Plan) round(n int) []cell {
	var cells []cell
	for t := range p.Tables {
		cells = append(cells, p.turn(t, n)...)
	}
	return cells
}

// turn lists the cells of one table in the next round, in the order of the rows, round and round,
// from the one that is due, so that each of those that meet is first about as often.
func (p *Plan) turn(table, round int) []cell {
	var in []int
	for e := range p.Engines {
		if p.in(table, e, round) {
			in = append(in, e)
		}
	}
	first := p.Tables[table].first(in, len(p.Engines))
	var cells []cell
	for _, e := range slices.Concat(in[first:], in[:first]) {
		cells = append(cells, cell{p.Tables[table], table, p.Engines[e], e, round, len(cells) + 1})
	}
	return cells
}

// first chooses the place of the engine that begins a turn of those in it, and keeps account of that.
func (t *Table) first(in []int, engines int) (place int) {
	if t.due == nil {
		t.due = make([]float64, engines)
	}
	const same = 1e-9 // sums of fractions
	for i, e := range in {
		if t.due[e] += 1 / float64(len(in)); t.due[e] > t.due[in[place]]+same {
			place = i
		}
	}
	if len(in) > 0 {
		t.due[in[place]]--
	}
	return place
}

// in reports whether an engine does a table in a round, the next one.
func (p *Plan) in(table, engine, round int) bool {
	if next := p.Tables[table].next; next != nil {
		return next[engine]
	}
	return p.rounds(table, engine) >= round
}
