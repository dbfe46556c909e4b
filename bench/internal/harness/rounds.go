package harness

import (
	"cmp"
	"slices"
	"time"
)

// FitRounds spreads a budget over the cells, by estimates; Run spreads it anew when the
// first round has shown what they take. Every table is done once, then again, those that
// take least first. What is left goes, again and again, to the cell in which one more round,
// up to most, is worth most for the time it takes: it takes a part of 1/(m(m+1)) off the
// variance of a figure that has had m. So a figure of milliseconds is the median of many
// rounds, one of seconds of few (optimal computing budget allocation: Chen, Lin, Yucesan and
// Chick, Discrete Event Dynamic Systems 10, 2000).
//
// Where only those rounds matter that steady a ratio of Cairn to the best rival, what
// varies and is in many of them, as Cairn's figures are, gets more rounds, and what is
// in none gets no other: two thirds of the time would go to figures that no comparison uses.
// After each round what is left of the time is spread anew.
func (p *Plan) FitRounds(budget, syncDelay time.Duration, most int) {
	p.Budget, p.Most = budget, most
	so := newTally(p)
	so.took, so.spent = p.estimates(syncDelay), p.EstimateOnce(syncDelay)
	p.spread(1, so, nil)
}

// tally is what the rounds so far have shown.
type tally struct {
	took  [][]time.Duration // by table and engine: the mean of a cell
	did   [][]int           // by table and engine: how many
	spent time.Duration     // all together
}

func newTally(p *Plan) tally {
	so := tally{took: make([][]time.Duration, len(p.Tables)), did: make([][]int, len(p.Tables))}
	for t := range p.Tables {
		so.took[t], so.did[t] = make([]time.Duration, len(p.Engines)), make([]int, len(p.Engines))
	}
	return so
}

// spread decides on the rounds in all, n of which are done: stake says what the variance is
// that rounds take off, nil: the same for all, and all are begun anew.
func (p *Plan) spread(n int, so tally, stake func(table int, engine string) float64) {
	spent := so.spent
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
		p.Tables[t].Rounds = make([]int, len(p.Engines))
		for e, did := range so.did[t] {
			p.Tables[t].Rounds[e] = max(1, did)
		}
	}
	slices.SortStableFunc(cheapest, func(a, b int) int { return cmp.Compare(sum(so.took[a]), sum(so.took[b])) })
	var shares []share // of the cells that may get more rounds
	for _, t := range cheapest {
		if p.Most < 2 || stake == nil && !afford(sum(so.took[t])) {
			continue
		}
		for e, d := range p.Engines {
			one := share{&p.Tables[t].Rounds[e], so.took[t][e], 1}
			if stake == nil {
				*one.rounds = 2
			} else {
				one.stake = stake(t, d.Info.Name)
			}
			if one.worth() > 0 {
				shares = append(shares, one)
			}
		}
	}
	for len(shares) > 0 {
		most := 0
		for i, s := range shares {
			if s.worth() > shares[most].worth() {
				most = i
			}
		}
		if s := shares[most]; *s.rounds < p.Most && afford(s.once) {
			*s.rounds++
		} else {
			shares = slices.Delete(shares, most, most+1)
		}
	}
	p.Rounds = n
	for t, table := range p.Tables {
		for e, rounds := range table.Rounds {
			p.Rounds = max(p.Rounds, n+rounds-max(1, so.did[t][e]))
		}
	}
	if stake != nil {
		p.schedule(n, so)
	}
}

// schedule decides which cells are in the round after the n that are done: those that have
// fewer rounds than others have them at even distances. A machine's speed drifts, and what is
// compared should be of the same times.
func (p *Plan) schedule(n int, so tally) {
	left := max(1, p.Rounds-n)
	for t := range p.Tables {
		table := &p.Tables[t]
		if table.credit == nil {
			table.credit = make([]float64, len(p.Engines))
		}
		table.next = make([]bool, len(p.Engines))
		for e, rounds := range table.Rounds {
			more := rounds - max(1, so.did[t][e])
			if more <= 0 {
				continue
			}
			if table.credit[e] += float64(more) / float64(left); table.credit[e] >= 0.5 {
				table.next[e] = true
				table.credit[e]--
			}
		}
	}
}

// share is a cell's part of the time.
type share struct {
	rounds *int
	once   time.Duration // that one takes
	stake  float64       // the variance of one
}

// worth is what one more round takes off the variance, for the time it takes.
func (s share) worth() float64 {
	if s.once <= 0 {
		return 0
	}
	m := float64(*s.rounds)
	return s.stake / (m * (m + 1)) / s.once.Seconds()
}
