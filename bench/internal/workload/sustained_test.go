package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// Every engine keeps its own rate unless one is given, and has every figure or a reason.
func TestSustained(t *testing.T) {
	w, err := Find("sustained")
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Find("cairn")
	if err != nil {
		t.Fatal(err)
	}
	for rate, id := range map[float64]string{0: "sustained/sound/n=300/v=1024/sync=off/0.5s", 400: "sustained/sound/n=300/v=1024/sync=off/rate=400/0.5s"} {
		p := w.Cells(Scale{Counts: []int{300}, Sync: []bool{false}, Seed: 1, Rate: rate, Seconds: 0.5})[0]
		if p.ID() != id {
			t.Errorf("%s, want %s", p.ID(), id)
		}
		rec, err := RunCell(w, d, t.TempDir(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range sustainedColumns {
			_, has := rec.Metrics[c.Key]
			if why := rec.NA[c.Key]; has == (why != "") || why != "" && (c.Key != "alone" || rate == 0) {
				t.Errorf("%s: %s: a figure %v, no figure because %q", p.ID(), c.Key, has, why)
			}
		}
		if got := rec.Metrics["rate"]; rate > 0 && got != rate || rate == 0 && (got < 0.55*rec.Metrics["alone"] || got > 0.65*rec.Metrics["alone"]) {
			t.Errorf("%s: the rate is %v, %v was done before", p.ID(), got, rec.Metrics["alone"])
		}
		if rec.Metrics["disk_longest"] == 0 || rec.Metrics["put_p50"] == 0 || len(rec.Series) == 0 || rec.Latency["put p99"] == 0 {
			t.Errorf("%s: %+v", p.ID(), rec)
		}
		if text := strings.Join(w.Conditions(p), "; "); strings.Contains(text, "every engine has its own") != (rate == 0) {
			t.Errorf("%s: %s", p.ID(), text)
		}
	}
}

// What is part of no suite is run when it is named.
func TestNamed(t *testing.T) {
	named := func(w Workload) bool { return w.Name == "sustained" }
	for _, full := range []bool{false, true} {
		all, err := Choose(nil, full)
		if err != nil || slices.ContainsFunc(all, named) {
			t.Errorf("full %v: %v, sustained is part of the suite %v", full, err, slices.ContainsFunc(all, named))
		}
	}
	if chosen, err := Choose([]string{"sustained"}, false); err != nil || len(chosen) != 1 {
		t.Errorf("%v, %d workloads", err, len(chosen))
	}
}

// Pauses of the disk are counted while the work lasts, and an error of either is told.
func TestDiskProbe(t *testing.T) {
	p, err := newDiskProbe(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.during(func() error { time.Sleep(20 * probeEvery); return nil })
	if err != nil || found.syncs < 3 || found.syncs > 20 || found.longest <= 0 {
		t.Errorf("%v, %+v", err, found)
	}
	p.close()
	if _, err := p.during(func() error { time.Sleep(3 * probeEvery); return nil }); err == nil {
		t.Error("a file that is closed was synced")
	}
}
