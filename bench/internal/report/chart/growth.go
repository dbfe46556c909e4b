package chart

import (
	"fmt"
	"math"
)

// Growth draws times against the number of keys, both on logarithmic axes: what does not
// depend on that number is level, what is proportional to it rises by a power of ten with
// each. counts, of which there are at least two, ascend.
func Growth(title string, lines []Line, counts []int, label func(nanos float64) string) string {
	d := begin("curve growth", title, "time with each number of keys; the table below has the same figures", curveWidth, curveHeight)
	first, last := math.Log10(float64(counts[0])), math.Log10(float64(counts[len(counts)-1]))
	x := func(n float64) float64 {
		return curveLeft + (curveRight-curveLeft)*(math.Log10(n)-first)/(last-first)
	}
	y := d.times(lines, label)
	for _, n := range counts {
		d.path("grid", fmt.Sprintf("M%.1f %.1fV%.1f", x(float64(n)), curveTop, curveBottom))
		d.text("axis", x(float64(n)), curveBottom+18, "middle", Count(n))
	}
	d.text("axis", (curveLeft+curveRight)/2, curveHeight-4, "middle", "keys")
	d.lines(lines, x, y)
	return d.end()
}

// Count writes a number of keys as people say it, if that is exact: 50 M, 20 k.
func Count(n int) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return fmt.Sprintf("%g M", float64(n)/1e6)
	case n >= 1000 && n%100 == 0:
		return fmt.Sprintf("%g k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
