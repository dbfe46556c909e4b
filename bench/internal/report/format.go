package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// FormatValue prints a number with two or three digits and a unit people read; what is too little to
// mean anything as less than the least that does, which stands for it in ratios.
func FormatValue(v float64, unit result.Unit) string {
	if least := unit.Least(); v > 0 && v < least {
		return "<" + FormatValue(least, unit)
	}
	switch unit {
	case result.NanosPerOp, result.Nanos:
		return scale(v, []step{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}})
	case result.Bytes, result.BytesPerOp:
		return scale(v, []step{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}})
	}
	return digits(v)
}

type step struct {
	size float64
	name string
}

func scale(v float64, steps []step) string {
	use := steps[0]
	for _, s := range steps {
		if math.Abs(v) >= s.size*0.9995 {
			use = s
		}
	}
	return digits(v/use.size) + " " + use.name
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a < 0.0095: // two digits would be a zero that it is not
		return strconv.FormatFloat(v, 'f', 1-int(math.Floor(math.Log10(a))), 64)
	}
	return fmt.Sprintf("%.2f", v)
}

// FormatFigure adds the spread, where it means anything: "+-" for a confidence interval, "~" for a range.
func FormatFigure(f Figure, unit result.Unit) string {
	text := FormatValue(f.Median, unit)
	if f.Rounds < 2 || f.High < unit.Least() {
		return text
	}
	mark := "~"
	if f.Interval {
		mark = "+-"
	}
	return fmt.Sprintf("%s %s%.0f%%", text, mark, 100*f.Spread())
}

// FormatRatio prints how many times one figure is another.
func FormatRatio(r float64) string {
	if math.IsInf(r, 1) {
		return "more than none"
	}
	return digits(r) + "x"
}

// Took says how long a run was, and when its parts began if there were several.
func Took(run *result.Run) string {
	text := run.Elapsed.Round(100 * time.Millisecond).String()
	if len(run.Continued) == 0 {
		return text
	}
	text += fmt.Sprintf(" in %d parts, begun", 1+len(run.Continued))
	for i, at := range append([]time.Time{run.Started}, run.Continued...) {
		if i > 0 {
			text += ","
		}
		text += at.UTC().Format(" 2006-01-02 15:04")
	}
	return text
}
