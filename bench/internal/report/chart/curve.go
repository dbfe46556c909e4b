package chart

import (
	"fmt"
	"math"
	"slices"
)

// Line is one engine of a curve.
type Line struct {
	Label  string
	Class  string       // subject, rival, floor
	Points [][2]float64 // percentile (0 to 100), or number of keys, and nanoseconds, ascending
}

// The frame of a curve, in units of the viewBox.
const (
	curveWidth, curveHeight = 760, 380
	curveLeft, curveRight   = 64.0, 640.0
	curveTop, curveBottom   = 14.0, 340.0
)

// Latency draws latency against percentile. Both axes are logarithmic: across, each
// step is a tenth of the operations left; the last place is the slowest of all.
func Latency(title string, lines []Line, label func(nanos float64) string) string {
	d := begin("curve", title, "latency at each percentile; the table below has the same figures", curveWidth, curveHeight)
	last := tenths(lines)
	x := func(p float64) float64 { return curveLeft + (curveRight-curveLeft)*rank(p, last)/(last+0.5) }
	y := d.times(lines, label)
	for i := 0.0; i <= last; i++ {
		p := 100 * (1 - math.Pow(10, -i))
		d.path("grid", fmt.Sprintf("M%.1f %.1fV%.1f", x(p), curveTop, curveBottom))
		d.text("axis", x(p), curveBottom+18, "middle", percent(p))
	}
	d.text("axis", x(100), curveBottom+18, "middle", "max")
	d.text("axis", (curveLeft+curveRight)/2, curveHeight-4, "middle", "percentile of operations")
	d.lines(lines, x, y)
	return d.end()
}

func (d *drawing) lines(lines []Line, x, y func(float64) float64) {
	ends := make([]float64, len(lines))
	for i, l := range lines {
		var points [][2]float64
		for _, p := range l.Points {
			points = append(points, [2]float64{x(p[0]), y(p[1])})
		}
		if len(points) == 0 {
			continue
		}
		ends[i] = points[len(points)-1][1]
		d.path(fmt.Sprintf("line %s line%d", l.Class, i%12), polyline(points))
	}
	for i, place := range spread(ends, 14) {
		if len(lines[i].Points) == 0 {
			continue
		}
		d.path(fmt.Sprintf("leader %s line%d", lines[i].Class, i%12), polyline([][2]float64{{curveRight + 1, ends[i]}, {curveRight + 14, place}}))
		d.text("label "+lines[i].Class, curveRight+18, place+4, "start", short(lines[i].Label))
	}
}

// times draws the axis of nanoseconds, in powers of ten, and returns where one stands on it.
func (d *drawing) times(lines []Line, label func(nanos float64) string) (y func(float64) float64) {
	low, high := powers(lines)
	y = func(ns float64) float64 {
		return curveBottom - (curveBottom-curveTop)*(math.Log10(max(ns, 1))-low)/(high-low)
	}
	for e := low; e <= high; e++ {
		d.path("grid", fmt.Sprintf("M%.1f %.1fH%.1f", curveLeft, y(math.Pow(10, e)), curveRight))
		d.text("axis", curveLeft-8, y(math.Pow(10, e))+4, "end", label(math.Pow(10, e)))
	}
	return y
}

// tenths finds how many tenths the greatest percentile below 100 leaves.
func tenths(lines []Line) (last float64) {
	last = 1
	for _, l := range lines {
		for _, p := range l.Points {
			if p[0] < 100 {
				last = max(last, math.Ceil(rank(p[0], math.Inf(1))-1e-9))
			}
		}
	}
	return last
}

// powers finds the powers of ten that hold all times.
func powers(lines []Line) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, p := range l.Points {
			low = min(low, math.Floor(math.Log10(max(p[1], 1))))
			high = max(high, math.Ceil(math.Log10(max(p[1], 1))))
		}
	}
	if math.IsInf(low, 0) {
		return 0, 1
	}
	return low, max(high, low+1)
}

// rank is the place of a percentile: 90 is at 1, 99 at 2, 99.9 at 3.
func rank(p, last float64) float64 {
	if p >= 100 {
		return last + 0.5
	}
	return -math.Log10(1 - p/100)
}

func percent(p float64) string { return fmt.Sprintf("%.6g", p) }

// spread moves places apart until none is nearer than gap to the next.
func spread(places []float64, gap float64) []float64 {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if places[a] < places[b] {
			return -1
		}
		return 1
	})
	out := slices.Clone(places)
	for i := 1; i < len(order); i++ {
		out[order[i]] = max(out[order[i]], out[order[i-1]]+gap)
	}
	limit := curveBottom + 8
	for i := len(order) - 1; i >= 0; i-- {
		out[order[i]] = min(out[order[i]], limit)
		limit = out[order[i]] - gap
	}
	return out
}
