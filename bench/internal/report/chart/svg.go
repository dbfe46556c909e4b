package chart

import (
	"fmt"
	"html"
	"strings"
)

// drawing collects an SVG element.
type drawing struct{ strings.Builder }

// begin opens the element. Title and desc are what a screen reader says.
func begin(kind, title, desc string, width, height int) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg class="chart %s" viewBox="0 0 %d %d" role="img" aria-label="%s">`, kind, width, height, html.EscapeString(title+": "+desc))
	return d
}

func (d *drawing) end() string {
	d.WriteString("</svg>")
	return d.String()
}

func (d *drawing) text(class string, x, y float64, anchor, s string) {
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, html.EscapeString(s))
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(d, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, x, y, w, h)
}

// path draws a line; data is in the language of the d attribute.
func (d *drawing) path(class, data string) {
	fmt.Fprintf(d, `<path class="%s" d="%s"/>`, class, data)
}

// polyline is the d attribute of a line through points.
func polyline(points [][2]float64) string {
	var b strings.Builder
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", letter, p[0], p[1])
	}
	return b.String()
}

// longestLabel is how many letters have room beside a bar, star included.
const longestLabel = 16

// short cuts a label that has no room, and leaves some for wide letters; tables have the whole name.
func short(label string) string {
	letters := []rune(label)
	if len(letters) <= longestLabel-1 {
		return label
	}
	return string(letters[:longestLabel-4]) + "…"
}
