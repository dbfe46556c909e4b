package report

import (
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

func TestWeather(t *testing.T) {
	run := &result.Run{}
	if got := Weather(run); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for i := range 20 {
		run.Cells = append(run.Cells, result.Cell{Weather: &result.Weather{Stolen: float64(i) / 100, Sync: time.Duration(20-i) * time.Millisecond}}, result.Cell{})
	}
	const want = "of the processors' time the host gave others 10 % during the middle cell, 17 % in one of ten, 19 % at worst; an fsync before a cell took 11.0 ms, 18.0 ms, 20.0 ms"
	if got := Weather(run); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
