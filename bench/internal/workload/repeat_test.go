package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// recorded is a recorder with figures.
func recorded(metrics map[string]float64) *Recorder {
	r := NewRecorder("")
	for key, value := range metrics {
		r.Set(key, value)
	}
	return r
}

func TestRepeatsAreCombined(t *testing.T) {
	a := recorded(map[string]float64{"put": 9, "put_B": 40, "put_allocs": 1, "get": 1, result.PeakRSS: 70, result.RSSBefore: 50})
	b := recorded(map[string]float64{"put": 1, "put_B": 3100, "put_allocs": 3, "get": 2, result.PeakRSS: 90, result.RSSBefore: 60})
	c := recorded(map[string]float64{"put": 2, "put_B": 40, "put_allocs": 2, "get": 3, result.PeakRSS: 80, result.RSSBefore: 40, "some": 5})
	d := recorded(map[string]float64{"put": 4, "put_B": 20, "put_allocs": 0, "get": 4, result.PeakRSS: 60, result.RSSBefore: 30, "some": 8})
	a.Latency = map[string]float64{"put p99": 3}
	b.Latency = map[string]float64{"put p99": 9}
	c.Latency = map[string]float64{"put p99": 4}
	a.Series, b.Series = []result.Second{{Ops: 1}}, []result.Second{{Ops: 2}}
	a.Note("one")
	c.Note("two")
	d.Note("one")
	b.None("it would not", "get")
	c.None("it could not", "scan")

	odd, even := combine([]*Recorder{a, b, c}), combine([]*Recorder{a, b, c, d})
	for _, of := range []struct {
		what string
		rec  *Recorder
		want map[string]float64
	}{
		{"of three", odd, map[string]float64{"put": 2, "put_B": 1060, "put_allocs": 2, "some": 5, result.PeakRSS: 70, result.RSSBefore: 50}},
		{"of four", even, map[string]float64{"put": 3, "put_B": 800, "put_allocs": 1.5, "some": 6.5, result.PeakRSS: 70, result.RSSBefore: 50}},
	} {
		if fmt.Sprint(of.rec.Metrics) != fmt.Sprint(of.want) {
			t.Errorf("%s: %v, want %v", of.what, of.rec.Metrics, of.want)
		}
		if fmt.Sprint(of.rec.NA) != "map[get:it would not scan:it could not]" || fmt.Sprint(of.rec.Notes) != "[one two]" {
			t.Errorf("%s: reasons %v, notes %v", of.what, of.rec.NA, of.rec.Notes)
		}
		if of.rec.Latency["put p99"] != 4 || len(of.rec.Series) != 1 || of.rec.Series[0].Ops != 1 {
			t.Errorf("%s: percentiles %v, series %v", of.what, of.rec.Latency, of.rec.Series)
		}
	}
}

// Every repeat has an empty directory, and leaves nothing behind; one that is not
// repeated has the cell's own.
func TestRepeatsHaveNewDirectories(t *testing.T) {
	for _, times := range []int{1, 2, 5} {
		dir, calls := t.TempDir(), 0
		rec, err := repeat(times, dir, func(rec *Recorder, sub string) error {
			calls++
			rec.Set("call", float64(calls))
			if found, err := os.ReadDir(sub); err != nil || len(found) > 0 || (sub == dir) != (times == 1) {
				t.Errorf("%d repeats, %s of %s: %d files, %v", times, sub, dir, len(found), err)
			}
			return os.WriteFile(filepath.Join(sub, "data"), []byte("x"), 0o600)
		})
		if err != nil || calls != times || rec.Metrics["call"] != float64(times+1)/2 {
			t.Errorf("%d repeats: %d calls, %v, %v", times, calls, rec, err)
		}
		if left, _ := os.ReadDir(dir); times > 1 && len(left) > 0 {
			t.Errorf("%d repeats: %s is left", times, left[0].Name())
		}
	}
}

func TestTheFirstErrorEndsTheRepeats(t *testing.T) {
	calls, fire := 0, errors.New("the disk is on fire")
	_, err := repeat(5, t.TempDir(), func(*Recorder, string) error {
		if calls++; calls == 3 {
			return fire
		}
		return nil
	})
	if calls != 3 || !errors.Is(err, fire) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestWhatIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Params
		want int
	}{
		{"w0/sound", Params{N: 20_000}, 3}, {"w0/sound", Params{N: 500_000}, 1}, {"w0/published", Params{N: 20_000}, 1},
		{"w1/sound", Params{N: 2_000}, 1}, {"w2/sound", Params{N: 500, Sync: true}, 1},
		{"w4/sound", Params{N: 10}, 15}, {"w4/sound", Params{N: 10_000}, 1}, {"w4/published", Params{N: 10}, 1},
		{"large", Params{N: 8, ValueBytes: 1 << 20}, 5}, {"large", Params{N: 512, ValueBytes: 16 << 10}, 5},
		{"large", Params{N: 8, ValueBytes: 1 << 20, Sync: true}, 3}, {"large", Params{N: 512, ValueBytes: 16 << 10, Sync: true}, 1},
		{"large", Params{N: 512, ValueBytes: 1 << 20}, 1}, {"large", Params{N: 8192, ValueBytes: 16 << 10}, 1},
	} {
		w, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Repeats(c.p); got != c.want {
			t.Errorf("%s with %d: %d repeats, want %d", c.name, c.p.N, got, c.want)
		}
	}
}

// The process starts once, however often its work is repeated; what finds that it can
// do nothing is not repeated.
func TestEstimatesCountTheRepeats(t *testing.T) {
	took := starting + time.Second
	w := Workload{Estimate: func(Params, engine.Info, time.Duration) time.Duration { return took }, Repeat: func(Params) int { return 3 }}
	if got := w.TimeOf(Params{}, engine.Info{}, 0); got != starting+3*time.Second {
		t.Errorf("three repeats of a second: %s", got)
	}
	if took = idle; w.TimeOf(Params{}, engine.Info{}, 0) != idle {
		t.Errorf("nothing, repeated, takes %s", w.TimeOf(Params{}, engine.Info{}, 0))
	}
}
