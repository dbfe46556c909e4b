package chart

import (
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wellFormed parses a drawing and returns how many elements of each name it has.
func wellFormed(t *testing.T, svg string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return counts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
}

var barWidth = regexp.MustCompile(`<rect class="bar" x="112\.0" y="[\d.]+" width="([\d.]+)"`)

func widths(t *testing.T, svg string) []float64 {
	t.Helper()
	var all []float64
	for _, m := range barWidth.FindAllStringSubmatch(svg, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func TestBarsAreInProportion(t *testing.T) {
	svg := Bars("put", []Bar{
		{Label: "a", Value: 10, Low: 8, High: 12, Text: "10 ns", Best: true},
		{Label: "b", Value: 20, Low: 20, High: 20, Text: "20 ns"},
		{Label: "c", None: "n/a"},
	})
	counts := wellFormed(t, svg)
	w := widths(t, svg)
	if counts["rect"] != 2 || len(w) != 2 || math.Abs(w[1]/w[0]-2) > 0.01 || math.Abs(w[1]-(barsRight-barsLeft)) > 0.1 {
		t.Errorf("%d bars, %v wide", counts["rect"], w)
	}
	if strings.Count(svg, "whisker") != 1 || !strings.Contains(svg, "★ a<") || !strings.Contains(svg, ">n/a<") || !strings.Contains(svg, "a 10 ns, b 20 ns, c n/a") {
		t.Error(svg)
	}
}

func TestOneSlowEngineDoesNotHideTheOthers(t *testing.T) {
	svg := Bars("put", []Bar{{Value: 10, Text: "10"}, {Value: 11, Text: "11"}, {Value: 10_000, Text: "10000"}})
	w := widths(t, svg)
	if w[0] < (barsRight-barsLeft)/longest/2 || w[2] > barsRight-barsLeft+0.1 || strings.Count(svg, "notch") != 1 {
		t.Errorf("bars of %v; %d notches", w, strings.Count(svg, "notch"))
	}
	if zero := Bars("none", []Bar{{Value: 0, Text: "0"}, {None: "VOID"}}); strings.Contains(zero, "NaN") || strings.Contains(zero, "Inf") {
		t.Error(zero)
	}
}

func TestTextIsEscaped(t *testing.T) {
	evil := `<&"'>`
	for _, svg := range []string{
		Bars(evil, []Bar{{Label: evil, Text: evil}, {Label: evil, None: evil}}),
		Latency(evil, []Line{{Label: evil, Points: [][2]float64{{50, 10}, {100, 20}}}}, func(float64) string { return evil }),
		Growth(evil, []Line{{Label: evil, Points: [][2]float64{{1, 10}, {9, 20}}}}, []int{1, 9}, func(float64) string { return evil }),
		Strips(evil, []Strip{{Label: evil, Text: evil, Values: []float64{1, 2}}}, false),
	} {
		wellFormed(t, svg)
		if strings.Contains(svg, evil) {
			t.Error(svg)
		}
	}
}

func TestLatencyHasALineForEachEngine(t *testing.T) {
	lines := []Line{{Label: "a", Points: [][2]float64{{50, 100}, {99.9, 1e6}, {100, 2e6}}}, {Label: "b", Points: [][2]float64{{50, 120}, {100, 2e6}}}, {Label: "empty"}}
	svg := Latency("get", lines, func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) })
	wellFormed(t, svg)
	if n := strings.Count(svg, `class="line `); n != 2 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{">99.9<", ">max<", ">1e+07<", ">100<", ">a<", ">b<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, ">empty<") {
		t.Error(svg)
	}
}

func TestGrowthHasALineForEachEngine(t *testing.T) {
	counts := []int{1000, 100_000, 10_000_000}
	lines := []Line{{Label: "level", Points: [][2]float64{{1000, 100}, {100_000, 100}, {10_000_000, 100}}}, {Label: "grows", Points: [][2]float64{{1000, 100}, {10_000_000, 1e6}}}, {Label: "empty"}}
	svg := Growth("get", lines, counts, func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) })
	wellFormed(t, svg)
	for _, want := range []string{">1 k<", ">100 k<", ">10 M<", ">1e+06<", ">level<", ">grows<", `d="M64.0 340.0L352.0 340.0L640.0 340.0"`, `d="M64.0 340.0L640.0 14.0"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, ">empty<") {
		t.Error(svg)
	}
	for n, want := range map[int]string{10: "10", 1234: "1234", 1500: "1.5 k", 262_144: "262144", 2_500_000: "2.5 M", 1 << 20: "1048576"} {
		if got := Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestLabelsKeepApart(t *testing.T) {
	places := spread([]float64{100, 101, 102, 339, 340}, 14)
	for i := range places {
		for j := range i {
			if math.Abs(places[i]-places[j]) < 13.9 {
				t.Errorf("%v", places)
			}
		}
		if places[i] > curveBottom+8.1 {
			t.Errorf("%v is below the frame", places[i])
		}
	}
}

// A second without operations is a gap in a curve of latencies and the floor in one
// of rates.
func TestStallsAreSeen(t *testing.T) {
	values := []float64{5, 6, 0, 0, 7, 8}
	if n := strings.Count(Strips("late", []Strip{{Label: "a", Values: values}}, true), `class="line"`); n != 2 {
		t.Errorf("%d pieces, want 2", n)
	}
	if n := strings.Count(Strips("rate", []Strip{{Label: "a", Values: values}}, false), `class="line"`); n != 1 {
		t.Errorf("%d pieces, want 1", n)
	}
	if empty := Strips("none", []Strip{{Label: "a"}}, true); strings.Contains(empty, "NaN") || strings.Contains(empty, "Inf") {
		t.Error(empty)
	}
}
