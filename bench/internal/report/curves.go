package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Curve is the latency distribution of an engine: at each percentile the median over
// the rounds that have it.
type Curve struct {
	Engine result.Engine
	Points []Percentile // ascending
}

// Percentile is a point of a distribution: this share of the operations took at most
// so long.
type Percentile struct {
	Percentile float64 // 0 to 100; 100 is the slowest operation
	Nanos      float64
}

// Series is one round of a timed measurement, second by second.
type Series struct {
	Engine  result.Engine
	Round   int
	Seconds []result.Second
}

// Operations lists what a workload has distributions of, sorted.
func Operations(run *result.Run, workload string) []string {
	var ops []string
	for _, c := range run.Cells {
		if c.Workload != workload || c.Status != result.OK {
			continue
		}
		for key := range c.Latency {
			if op, _, ok := percentileOf(key); ok && !slices.Contains(ops, op) {
				ops = append(ops, op)
			}
		}
	}
	slices.Sort(ops)
	return ops
}

// percentileOf reads a key of a cell's latencies, as in "put p99.9".
func percentileOf(key string) (op string, percentile float64, ok bool) {
	at := strings.LastIndex(key, " p")
	if at < 0 {
		return "", 0, false
	}
	percentile, err := strconv.ParseFloat(key[at+2:], 64)
	return key[:at], percentile, err == nil && percentile >= 0 && percentile <= 100
}

// LatencyCurves returns the distributions of the engines that count and have one.
func LatencyCurves(run *result.Run, workload, op string) []Curve {
	var curves []Curve
	for _, e := range run.Engines {
		at := map[float64][]float64{}
		for _, c := range counted(run, workload, e.Name) {
			for key, nanos := range c.Latency {
				if of, percentile, ok := percentileOf(key); ok && of == op {
					at[percentile] = append(at[percentile], nanos)
				}
			}
		}
		c := Curve{Engine: e}
		for percentile, nanos := range at {
			c.Points = append(c.Points, Percentile{percentile, Summarise(nanos).Median})
		}
		slices.SortFunc(c.Points, func(a, b Percentile) int { return cmp.Compare(a.Percentile, b.Percentile) })
		if len(c.Points) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// WorstSeries returns for each engine the round with the slowest single operation:
// stalls are what a time series is looked at for, and an average hides them.
func WorstSeries(run *result.Run, workload string) []Series {
	var all []Series
	for _, e := range run.Engines {
		var worst Series
		most := -1.0
		for _, c := range counted(run, workload, e.Name) {
			for _, s := range c.Series {
				if s.MaxNano > most {
					most, worst = s.MaxNano, Series{e, c.Round, c.Series}
				}
			}
		}
		if most >= 0 {
			all = append(all, worst)
		}
	}
	return all
}

// counted are an engine's cells of a workload, none if any of them does not count.
func counted(run *result.Run, workload, engine string) []result.Cell {
	cells := cellsOf(run, workload, engine)
	for _, c := range cells {
		if c.Status != result.OK {
			return nil
		}
	}
	return cells
}
