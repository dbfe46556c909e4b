package workload

import (
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// What cannot do some of the operations has no CPU time and no peak of memory to be compared,
// whatever it has used; what does all of them has.
func TestUsageIsOfTheWholeWork(t *testing.T) {
	const left = "it did not do all of the work: "
	for _, c := range []struct {
		engine, workload string
		want             string // why there is no CPU time; empty: there is
	}{
		{"pogreb", "ycsb", left + "E scans"},
		{"pogreb", "load", left + "scan keys, 100-key scan"},
		{"pogreb", "w1/sound", left + "iterate keys"},
		{"pogreb", "w4/sound", ""},
		{"goleveldb", "ycsb", ""},
		{"goleveldb", "load", ""},
		{"floor", "w1/sound", left + "get rnd, delete rnd, iterate keys, iterate pairs"},
	} {
		w, err := Find(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		d, err := engine.Find(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		p := w.Cells(Scale{Counts: []int{60}, Sync: []bool{false}, Seed: 1})[0]
		rec, err := RunCell(w, d, t.TempDir(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{result.CPU, result.PeakRSS} {
			if _, has := rec.Metrics[key]; rec.NA[key] != c.want || has && c.want != "" {
				t.Errorf("%s on %s: %s %v, reason %q, want %q", c.engine, p.ID(), key, has, rec.NA[key], c.want)
			}
		}
	}
}

func TestCPUWithoutFiguresStaysAsItIs(t *testing.T) {
	columns := []result.Column{{Key: "put", Title: "put", Unit: result.NanosPerOp}, {Key: "disk", Title: "disk", Unit: result.Bytes}}
	for _, c := range []struct {
		what string
		none map[string]string
		want string
	}{
		{"everything done", nil, ""},
		{"no size", map[string]string{"disk": "no disk"}, ""},
		{"no puts", map[string]string{"put": "no puts"}, "it did not do all of the work: put"},
		{"nothing", map[string]string{"put": "no puts", "disk": "no disk"}, ""},
		{"no puts and no CPU time", map[string]string{"put": "no puts", result.CPU: "several processes"}, "several processes"},
	} {
		r := recorded(map[string]float64{"put": 1, "disk": 2, result.CPU: 3})
		for key, why := range c.none {
			r.None(why, key)
		}
		r.onlyWholeWork(columns)
		if _, has := r.Metrics[result.CPU]; r.NA[result.CPU] != c.want || has != (c.want == "") {
			t.Errorf("%s: CPU time %v, reason %q, want %q", c.what, has, r.NA[result.CPU], c.want)
		}
	}
}

// The total of W1 has the iteration of pairs in it.
func TestTotalIsOfTheWholeWork(t *testing.T) {
	w, err := Find("w1/sound")
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Find("goleveldb")
	if err != nil {
		t.Fatal(err)
	}
	blind := d
	blind.Info.Cannot = map[engine.Ability]string{engine.CanPairs: "it is blind"}
	for want, d := range map[string]engine.Driver{"": d, "all has the iteration of pairs in it: it is blind": blind} {
		rec, err := RunCell(w, d, t.TempDir(), Params{Workload: w.Name, Variant: w.Variant, N: 30, ValueBytes: 64, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, has := rec.Metrics["total"]; rec.NA["total"] != want || has != (want == "") {
			t.Errorf("total %v, reason %q, want %q", has, rec.NA["total"], want)
		}
	}
}

// The store of who cannot scan lacks the inserts of E: its size is no figure. Who has no files
// has that reason.
func TestSizesAreOfTheWholeSet(t *testing.T) {
	const left = "it lacks the inserts of E: "
	w, err := Find("ycsb")
	if err != nil {
		t.Fatal(err)
	}
	p := w.Cells(Scale{Counts: []int{60}, Sync: []bool{false}, Seed: 1})[0]
	for _, name := range []string{"pogreb", "goleveldb", "gomap"} {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := RunCell(w, d, t.TempDir(), p)
		if err != nil {
			t.Fatal(err)
		}
		want := d.Info.Cannot[engine.CanDisk]
		if why, no := d.Info.Cannot[engine.CanScan]; no && want == "" {
			want = left + why
		}
		for _, key := range []string{"disk", "disk_allocated"} {
			if _, has := rec.Metrics[key]; rec.NA[key] != want || has != (want == "") {
				t.Errorf("%s: %s %v, reason %q, want %q", name, key, has, rec.NA[key], want)
			}
		}
	}
}
