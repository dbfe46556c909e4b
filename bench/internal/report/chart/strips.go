package chart

import (
	"fmt"
	"math"
)

// Strip is one engine of a chart over time: a value for each second.
type Strip struct {
	Label  string
	Class  string
	Values []float64
	Text   string // what to remember of it, at the right
}

// The sizes of strips, in units of the viewBox.
const (
	stripsWidth = 620
	stripsLeft  = 110.0
	stripsRight = 480.0
	stripRow    = 40.0
)

// Strips draws one small curve under the other, all on the same scales. On a
// logarithmic scale nothing (a second in which no operation ended) is a gap.
func Strips(title string, strips []Strip, logarithmic bool) string {
	d := begin("strips", title, "a curve over time for each engine; the table below sums them up", stripsWidth, int(stripRow*float64(len(strips)))+22)
	seconds, low, high := stripFrame(strips, logarithmic)
	x := func(s int) float64 {
		return stripsLeft + (stripsRight-stripsLeft)*float64(s)/float64(max(seconds-1, 1))
	}
	for i, s := range strips {
		base := stripRow*float64(i+1) - 6
		y := func(v float64) float64 {
			if logarithmic {
				v = math.Log10(max(v, 1))
			}
			return base - (stripRow-10)*(v-low)/(high-low)
		}
		d.strip(s, base, x, y, logarithmic)
	}
	foot := stripRow*float64(len(strips)) + 12
	d.text("axis", stripsLeft, foot, "start", "0 s")
	d.text("axis", stripsRight, foot, "end", fmt.Sprintf("%d s", max(seconds-1, 0)))
	return d.end()
}

func (d *drawing) strip(s Strip, base float64, x func(int) float64, y func(float64) float64, gaps bool) {
	fmt.Fprintf(d, `<g class="row %s">`, s.Class)
	d.path("grid", fmt.Sprintf("M%.1f %.1fH%.1f", stripsLeft, base, stripsRight))
	d.text("label", stripsLeft-8, base-8, "end", short(s.Label))
	d.text("value", stripsWidth-2, base-8, "end", s.Text)
	var run [][2]float64
	flush := func() {
		if len(run) == 1 {
			run = append(run, [2]float64{run[0][0] + 1, run[0][1]})
		}
		if len(run) > 0 {
			d.path("line", polyline(run))
		}
		run = nil
	}
	for i, v := range s.Values {
		if gaps && v <= 0 {
			flush()
			continue
		}
		run = append(run, [2]float64{x(i), y(v)})
	}
	flush()
	d.WriteString("</g>")
}

func stripFrame(strips []Strip, logarithmic bool) (seconds int, low, high float64) {
	most, least := 0.0, math.Inf(1)
	for _, s := range strips {
		seconds = max(seconds, len(s.Values))
		for _, v := range s.Values {
			most = max(most, v)
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	switch {
	case most <= 0:
		return seconds, 0, 1
	case !logarithmic:
		return seconds, 0, most
	}
	low, high = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	return seconds, low, max(high, low+1)
}
