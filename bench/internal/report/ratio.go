package report

import (
	"math"

	"github.com/cairndb/cairn/bench/internal/result"
)

// ToBest is the row's figure divided by the best store's of a ranked column: 1 is
// the best. A floor may be below 1. It is +Inf where the best is nothing at all and
// this is not.
func (t Table) ToBest(row Row, c result.Column) (ratio float64, ok bool) {
	have := row.Figures[c.Key]
	_, best, any := t.Best(c.Key, AnyEngine)
	if !c.Ranked || !have.Known() || !any {
		return 0, false
	}
	return c.Unit.Ratio(have.Median, best.Median), true
}

// Overall is the geometric mean of the row's ratios to the best over columns, and
// over how many of those that anybody has a figure for it was taken.
func (t Table) Overall(row Row, columns []result.Column) (mean float64, of, all int) {
	sum := 0.0
	for _, c := range columns {
		if _, _, any := t.Best(c.Key, AnyEngine); !any || !c.Ranked {
			continue
		}
		all++
		if r, ok := t.ToBest(row, c); ok && !math.IsInf(r, 0) && r > 0 {
			sum += math.Log(r)
			of++
		}
	}
	if of == 0 {
		return 0, 0, all
	}
	return math.Exp(sum / float64(of)), of, all
}
