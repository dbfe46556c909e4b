package workload

import (
	"testing"
	"time"
)

// One stall of 200 ms delays everything that was due in it; a closed loop would
// show one slow operation.
func TestAStallCountsForEveryOperationDueInIt(t *testing.T) {
	l := newOpenLoop(1000, 500*time.Millisecond)
	n := 0
	err := l.run(func() (bool, error) {
		if n++; n == 100 {
			time.Sleep(200 * time.Millisecond)
		}
		return n%2 == 0, nil
	})
	if err != nil || n != 500 || l.puts.TotalCount()+l.gets.TotalCount() != 500 {
		t.Fatalf("%v, %d operations", err, n)
	}
	late := 0
	for _, bar := range append(l.puts.Distribution(), l.gets.Distribution()...) {
		if time.Duration(bar.From) > 20*time.Millisecond {
			late += int(bar.Count)
		}
	}
	if late < 150 || late > 350 {
		t.Errorf("%d operations were late by more than 20 ms, want about 180", late)
	}
	if l.pauses != 1 || l.longest < 200*time.Millisecond || l.paused != l.longest {
		t.Errorf("%d pauses of %s, the longest %s: want the one stall", l.pauses, l.paused, l.longest)
	}
	if l.abandoned != 0 || len(l.seconds) != 1 || l.seconds[0].Ops != 500 || l.seconds[0].MaxNano < 190e6 {
		t.Errorf("%d abandoned, %+v", l.abandoned, l.seconds)
	}
}

func TestWhatCannotKeepUpGivesUp(t *testing.T) {
	l := newOpenLoop(1000, 100*time.Millisecond)
	if err := l.run(func() (bool, error) { time.Sleep(20 * time.Millisecond); return true, nil }); err != nil {
		t.Fatal(err)
	}
	if l.abandoned < 80 {
		t.Errorf("%d of 100 abandoned", l.abandoned)
	}
	rec := NewRecorder("")
	l.report(rec)
	if rec.Metrics["given_up"] != float64(l.abandoned) || len(rec.Notes) != 1 || rec.Metrics["rate"] != 1000 || len(rec.Series) == 0 {
		t.Errorf("%+v", rec)
	}
}

// A time too short for one operation is no reason to end with a fault.
func TestATimeInWhichNothingIsDone(t *testing.T) {
	for done, length := range map[int]time.Duration{1: 100 * time.Millisecond, 0: 0} {
		l, rec, n := newOpenLoop(1, length), NewRecorder(""), 0
		if err := l.run(func() (bool, error) { n++; return true, nil }); err != nil || n != done {
			t.Errorf("%s: %v, %d operations, want %d", length, err, n, done)
		}
		l.report(rec)
		rec.percentiles("get_", l.gets)
		if _, has := rec.Metrics["get_p50"]; has || rec.NA["get_max"] == "" {
			t.Errorf("%s: a time of gets, of which there was none: %v", length, rec.Metrics)
		}
		if worst, has := rec.Metrics["worst_second"]; has != (done > 0) || int(worst) != done || has == (rec.NA["worst_second"] != "") {
			t.Errorf("%s: %v %v", length, rec.Metrics, rec.NA)
		}
	}
}
