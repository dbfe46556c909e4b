package chart

import (
	"fmt"
	"slices"
)

// Bar is one row of a bar chart.
type Bar struct {
	Label            string
	Value, Low, High float64
	Text             string // the figure as people read it
	None             string // drawn in place of a bar
	Best             bool
	Class            string // subject, rival, floor
}

// The sizes of a bar chart, in units of the viewBox.
const (
	barsWidth = 380
	barsLeft  = 112.0 // end of the labels
	barsRight = 292.0 // end of the bars
	barRow    = 21.0
	barThick  = 13.0
)

// longest is how many medians the scale holds at most: one slow engine must not make
// all others invisible.
const longest = 6

// Bars draws a row for each bar on one linear scale from zero.
func Bars(title string, bars []Bar) string {
	d := begin("bars", title, describe(bars), barsWidth, int(barRow*float64(len(bars)))+4)
	limit := scaleOf(bars)
	for i, b := range bars {
		d.bar(b, barRow*float64(i)+2, limit)
	}
	return d.end()
}

// scaleOf is the value at the right end.
func scaleOf(bars []Bar) float64 {
	var values []float64
	most := 0.0
	for _, b := range bars {
		if b.None == "" {
			values = append(values, b.Value)
			most = max(most, b.Value, b.High)
		}
	}
	if len(values) == 0 || most <= 0 {
		return 1
	}
	slices.Sort(values)
	if middle := values[len(values)/2]; middle > 0 {
		return min(most, longest*middle)
	}
	return most
}

func (d *drawing) bar(b Bar, y, limit float64) {
	middle := y + barRow/2
	label := short(b.Label)
	if b.Best {
		label = "★ " + label
	}
	fmt.Fprintf(d, `<g class="row %s">`, b.Class)
	d.text("label", barsLeft-6, middle+4, "end", label)
	if b.None != "" {
		d.text("none", barsLeft+2, middle+4, "start", b.None)
		d.WriteString("</g>")
		return
	}
	at := func(v float64) float64 { return barsLeft + (barsRight-barsLeft)*min(max(v, 0)/limit, 1) }
	d.rect("bar", barsLeft, middle-barThick/2, max(at(b.Value)-barsLeft, 1), barThick)
	if b.Value > limit {
		d.notch(middle)
	} else if b.High > b.Low {
		d.path("whisker", fmt.Sprintf("M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6", at(b.Low), middle, at(b.High),
			at(b.Low), middle-3, at(b.High), middle-3))
	}
	d.text("value", barsWidth-2, middle+4, "end", b.Text)
	d.WriteString("</g>")
}

// notch marks a bar that goes on beyond the scale.
func (d *drawing) notch(middle float64) {
	d.path("notch", fmt.Sprintf("M%.1f %.1fl6 -17M%.1f %.1fl6 -17", barsRight-16, middle+8.5, barsRight-11, middle+8.5))
}

func describe(bars []Bar) string {
	s := ""
	for i, b := range bars {
		if i > 0 {
			s += ", "
		}
		if b.None != "" {
			s += b.Label + " " + b.None
			continue
		}
		s += b.Label + " " + b.Text
	}
	return s
}
