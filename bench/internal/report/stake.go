package report

import (
	"math"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Stakes says what rounds of each engine are worth: the sum of the variances of a round, each
// of the logarithm of a figure, over the figures that are in a ratio of Cairn to the best
// rival. Where several may be the best, each has its part; who is in no ratio has none. After
// m rounds one more takes about stake/(m(m+1)) off the variance of these ratios.
func (t Table) Stakes() map[string]float64 {
	stakes, rows := map[string]float64{}, map[string]Row{}
	for _, r := range t.Rows {
		rows[r.Engine.Name] = r
	}
	add := func(engine string, col result.Column, part float64) {
		stakes[engine] += part * rows[engine].Figures[col.Key].variance(col.Unit)
	}
	for _, col := range t.Workload.Columns {
		near := t.near(col)
		for _, rival := range near {
			add(rival, col, 1/float64(len(near)))
		}
		if len(near) > 0 {
			add(Subject, col, 1)
		}
	}
	return stakes
}

// near lists the rivals of Cairn that may be the best in a ranked column: whoever is no further behind than two standard
// deviations of what usually lies between two medians of as many rounds: a time that is twice the best after a round of
// both, or a fourth more after ten, is out. So bad luck alone ends the race for one rival in forty.
func (t Table) near(col result.Column) (names []string) {
	_, best, ok := t.Best(col.Key, rivalIn(col))
	if !col.Ranked || !ok || !t.has(Subject, col) {
		return nil
	}
	for _, r := range t.Rows {
		have := r.Figures[col.Key]
		if !have.Known() || !rivalIn(col)(r) || r.Engine.Floor || r.Unsynced != "" {
			continue
		}
		apart := usualScatter(col.Unit) * math.Sqrt(1/float64(have.Rounds)+1/float64(best.Rounds))
		if col.Unit.Ratio(have.Median, best.Median) <= math.Exp(2*apart) {
			names = append(names, r.Engine.Name)
		}
	}
	return names
}

func (t Table) has(engine string, col result.Column) bool {
	row, ok := t.Find(engine)
	return ok && row.Figures[col.Key].Known()
}

// variance of one round's logarithm: what the rounds show and what is usual, which counts
// as two of them. No more than of a third up or down: what varies by more than that is not
// steadied by some rounds more.
func (f Figure) variance(u result.Unit) float64 {
	if f.Median <= u.Least() {
		return 0
	}
	const most = 0.3
	usual := usualScatter(u)
	return min((2*usual*usual+f.squares)/float64(2+f.Rounds-1), most*most)
}

// usualScatter is the usual standard deviation of a round's logarithm, on two shared cores.
func usualScatter(u result.Unit) float64 {
	switch u {
	case result.Nanos, result.NanosPerOp:
		return 0.25
	case result.BytesPerOp, result.AllocsPerOp:
		return 0.15
	}
	return 0.05
}

// logSquares is the sum of the squared distances of the logarithms of values from their
// mean; 0 if one has none.
func logSquares(values []float64) float64 {
	mean, squares := 0.0, 0.0
	for _, v := range values {
		if v <= 0 {
			return 0
		}
		mean += math.Log(v) / float64(len(values))
	}
	for _, v := range values {
		squares += (math.Log(v) - mean) * (math.Log(v) - mean)
	}
	return squares
}
